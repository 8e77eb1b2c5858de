#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# How --pair and --ref name functions, by symbol, offset and line, and what these functions give and take.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/resources

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "resources: functions by offset and by source line" {
	local offset line file

	file=$TARGETS/resources
	offset=$(readelf -sW "$file" | awk '$8 == "widget_unref" { print $2; exit }')
	line=$(awk '/^static .*widget_ref\(/ { print NR + 2; exit }' \
		"$SOURCE_DIR/test/targets/heap/resources.c")
	record_attached resources --no-heap \
		--ref "widget=widget_new:ret | heap/resources.c:$line:arg1 / resources+0x$offset:arg1"
	assert_kind widget
}

@test "resources: a wrong definition gives one line" {
	local spec

	for spec in 'fopen:ret' 'fopen / fclose:arg1' 'fopen:ret / fclose:ret' 'fopen:arg9 / fclose:arg1' \
		'fopen:ret fail=x / fclose:arg1' 'a__b=fopen:ret / fclose:arg1' ' / ' 'fopen:ret /  / x:arg1'; do
		run -2 "$BIN/leakrec" --pair "$spec" -p 1
		assert_equal "lines for $spec" "${#lines[@]}" 1
		run -2 "$BIN/leakprobe" add --pid 1 --pair "$spec"
		assert_equal "lines for $spec" "${#lines[@]}" 1
	done
	run -1 "$BIN/leakrec" --pair 'no_such_function:ret / fclose:arg1' -p $$
	[[ $output == *"defines no_such_function"* ]]
	run -1 "$BIN/leakrec" --no-heap -o perf.data -p $$
	[[ $output == *"nothing to record"* ]]
	run -2 "$BIN/leakprobe" add --lib /lib/x86_64-linux-gnu/libc.so.6 --pair "$FILES"
	[[ $output == *"go with --pid"* ]]
}

@test "resources: a reference that a GObject has too many" {
	local glib

	glib=$(ldconfig -p | awk '$1 == "libgobject-2.0.so.0" { print $NF; exit }')
	[[ -n $glib ]] || require_program libgobject-2.0.so.0
	cat >objects.c <<-'END'
		#include <stdio.h>
		/* Of <glib-object.h>, which is in a package of its own. */
		void *g_object_new(unsigned long type, const char *first, ...);
		void *g_object_ref(void *object);
		void g_object_unref(void *object);
		#define G_TYPE_OBJECT (20UL << 2)

		static void *remembered;

		__attribute__((noinline)) void remember(void *object) { remembered = g_object_ref(object); }
		__attribute__((noinline)) void show(void *object) { g_object_unref(g_object_ref(object)); }

		int main(void)
		{
			for (int i = 0; i < 100; i++) {
				void *object = g_object_new(G_TYPE_OBJECT, NULL);

				show(object);
				if (i % 25 == 0)
					remember(object);
				g_object_unref(object);
			}
			return 0;
		}
	END
	gcc -g -O1 -o objects objects.c "$glib"
	"$BIN/leakrec" --no-heap -o perf.data \
		--ref 'object=g_object_new:ret | g_object_ref:arg1 / g_object_unref:arg1' -- ./objects \
		2>leakrec.err
	parse
	grep -q '^# resource object: 100 given, 96 taken, 204 references added, 200 dropped; 4 held$' leaks
	assert_equal "objects" "$(grep -cE '^leak .* kind=object count=1 refs=3 unrefs=2$' leaks)" 4
	# This is the only stack that adds references and never drops them.
	assert_equal "culprits" "$(with_stacks | awk '/^refs \+1 -0 g_object_ref / { getline; getline; print $1 }' |
		grep -c '^remember+')" 4
}

# The function's first instructions clear what its argument points to. The C library also has old versions of
# timer_delete(), for programs linked long ago, and they come first in its table.
@test "resources: a taking function that clears the handle, and the newest version of a function" {
	require_program cc
	cat >clears.c <<-'END'
		#include <stdlib.h>
		#include <signal.h>
		#include <time.h>

		struct db { int fd; };
		__attribute__((noinline)) struct db *db_open(void) { return malloc(sizeof(struct db)); }
		__attribute__((noinline)) void db_close(struct db **p)
		{
			struct db *db = *p;

			*p = 0;
			if (db)
				free(db);
		}
		int main(void)
		{
			struct sigevent none = {.sigev_notify = SIGEV_NONE};
			timer_t timer;

			for (int i = 0; i < 10; i++) {
				struct db *db = db_open();

				if (i > 1)
					db_close(&db);
				timer_create(CLOCK_MONOTONIC, &none, &timer);
				if (i > 2)
					timer_delete(timer);
			}
			return 0;
		}
	END
	# A function that ends by a jump into another file (here: malloc) is left out, and a line says so.
	cc -O2 -g -rdynamic -o clears clears.c
	"$BIN/leakrec" --no-heap --pair 'db=db_open:ret / db_close:*arg1' -o perf.data -- ./clears 2>leakrec.err
	grep -q '^leakrec: .*cannot record db_open of .*/clears: it ends in a function of another file' leakrec.err ||
		fail "$(cat leakrec.err)"
	cc -O2 -g -fno-optimize-sibling-calls -rdynamic -o clears clears.c
	"$BIN/leakrec" --no-heap --pair 'db=db_open:ret / db_close:*arg1' \
		--pair 'timer=timer_create:*arg3 fail!=0 / timer_delete:arg1' -o perf.data -- ./clears 2>leakrec.err
	parse
	grep -q '^# resource db: 10 given, 8 taken; 2 held$' leaks || fail "$(grep '^# resource' leaks)"
	grep -q '^# resource timer: 10 given, 7 taken; 3 held$' leaks || fail "$(grep '^# resource' leaks)"
}

# gcc inlines the beginning of grab() into its callers, and makes a function of its own of the rest.
@test "resources: a function by its line, that the compiler has split" {
	require_program gcc
	cat >split.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>

		struct lease { int n, *log, refs[4]; };
		struct lease *grab(int n, struct lease *have)
		{
			if (have)
				return have;
			struct lease *l = malloc(sizeof(*l));
			if (!l) { fprintf(stderr, "no memory for %d\n", n); abort(); }
			l->log = malloc(n);
			for (int i = 0; i < 4; i++)
				l->refs[i] = i * n;
			fprintf(stderr, "new %d\n", n);
			return l;
		}
		struct lease *again(int n, struct lease *have) { return grab(n + 1, have); }
		__attribute__((noinline)) void drop(struct lease *l) { free(l->log); free(l); }
		struct lease *(*volatile call)(int, struct lease *) = grab;
		int main(void)
		{
			struct lease *l = call(1, NULL);

			call(2, l);
			call(3, l);
			drop(again(4, l));
			return 0;
		}
	END
	gcc -O2 -g -rdynamic -o split split.c
	nm split | grep -q ' grab\.part\.0$' || fail "gcc has not split it"
	"$BIN/leakrec" --no-heap --pair 'lease=split.c:9:ret / drop:arg1' -o perf.data -- ./split 2>leakrec.err
	parse
	# All calls are recorded, not just those of the outlined part.
	grep -q '^# resource lease: 3 given, 1 taken; ' leaks || fail "$(grep '^# resource' leaks)"
}

# From DWARF 5 on, clang calls the unit's own file number 0.
@test "resources: a function by its line, built by clang" {
	require_program clang
	cat >lines.c <<-'END'
		#include <stdlib.h>
		__attribute__((noinline)) void *acquire(void)
		{
			return malloc(1);
		}
		__attribute__((noinline)) void let_go(void *what) { free(what); }
		int main(void)
		{
			let_go(acquire());
			return acquire() == NULL;
		}
	END
	clang -O1 -gdwarf-5 -fno-optimize-sibling-calls -rdynamic -o lines lines.c
	"$BIN/leakrec" --no-heap --pair 'thing=lines.c:4:ret / let_go:arg1' -o perf.data -- ./lines 2>leakrec.err ||
		fail "$(cat leakrec.err)"
	parse
	grep -q '^# resource thing: 2 given, 1 taken; 1 held$' leaks || fail "$(grep '^# resource' leaks)"
}

@test "resources: a function by its line, in a separate debug file that nobody else could write" {
	require_program cc
	require_program objcopy
	mkdir .debug
	cat >lines.c <<-'END'
		#include <stdlib.h>
		__attribute__((noinline)) void *acquire(void)
		{
			return malloc(1);
		}
		__attribute__((noinline)) void let_go(void *what) { free(what); }
		int main(void)
		{
			for (int i = 0; i < 3; i++) {
				void *what = acquire();

				if (i)
					let_go(what);
			}
			return 0;
		}
	END
	cc -O1 -g -fno-optimize-sibling-calls -rdynamic -o lines lines.c
	objcopy --only-keep-debug lines .debug/lines.debug
	objcopy --strip-debug --add-gnu-debuglink=.debug/lines.debug lines
	"$BIN/leakrec" --no-heap --pair 'thing=lines.c:4:ret / let_go:arg1' -o perf.data -- ./lines 2>leakrec.err ||
		fail "$(cat leakrec.err)"
	parse
	grep -q '^# resource thing: 3 given, 2 taken; 1 held$' leaks || fail "$(grep '^# resource' leaks)"
	chown 1 .debug/lines.debug
	run -1 "$BIN/leakrec" --no-heap --pair 'thing=lines.c:4:ret / let_go:arg1' -o perf.data -- ./lines
	[[ $output == *"the debugging information of its files has no function at lines.c:4"* ]] || fail "$output"
}
