#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Resources that are no memory: what functions of the user's choice give and take.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

FILES='file=fopen|fdopen:ret / fclose:arg1'
SLOTS='slot=slot_get:*arg2 size=arg1 fail<0 / slot_put:*arg1'
WIDGETS='widget=widget_new:ret | widget_ref:arg1 / widget_unref:arg1'
NESTED='nested=inner_make|outer_make:ret / inner_drop|outer_drop:arg1'

# held KIND: the leaks of that kind, by the lines.
held() {
	grep -cE "^leak .* kind=$1( |\$)" leaks || true
}

# assert_kind KIND...: as many given, taken and held as the target says.
assert_kind() {
	local kind wrong=0

	for kind; do
		grep -q "^# resource $kind: $(truth "${kind}_given") given, $(truth "${kind}_taken") taken[,;]" leaks ||
			wrong=1
		assert_equal "$kind held" "$(held "$kind")" "$(truth "${kind}_held")" || wrong=1
	done
	if ((wrong)); then
		cat truth leakrec.err
		grep '^#' leaks
		return 1
	fi
}

@test "resources: exact counts of each kind, by programs and by perf events" {
	record_attached resources --pair "$FILES" --pair "$SLOTS" --pair "$NESTED" --ref "$WIDGETS"
	assert_kind file slot widget nested
	assert_no_unexpected
	assert_equal "sizes" "$(awk '$1 == "leak" && /kind=slot/ { print $2 }' leaks | sort -u)" 100
	# A stack says who left it open.
	grep -A4 '^leak .* kind=file' leaks | grep -q 'open_log'
	rm -f target.in target.out
	record_attached resources --perf-events --pair "$FILES" --pair "$NESTED" --ref "$WIDGETS"
	assert_kind file widget nested
	assert_no_unexpected
}

@test "resources: an object's references are told stack by stack" {
	record_attached resources --no-heap --ref "$WIDGETS"
	assert_kind widget
	assert_summary held_blocks 0
	assert_summary allocations 0
	assert_equal "counts" "$(grep -cE '^leak .* kind=widget count=1 refs=3 unrefs=2$' leaks)" 3
	# Three references from as many stacks, two given back.
	assert_equal "histories" "$(grep -c '^refs ' leaks)" 15
	awk '/^refs \+1 -0 widget_ref / { getline; getline; if (/forget_a_reference/) n++ }
		END { exit n != 3 }' leaks
}

@test "resources: what leakprobe was told is recorded by any recorder" {
	start_target resources
	add_probes --pid "$RECORDED_PID" --pair "$FILES" --ref "$WIDGETS"
	attach
	go_target
	finish_target
	finish_leakrec
	parse
	assert_kind file widget
	grep -q "all\|added" leakprobe.out
}

@test "resources: perf's own recording of them is read, too" {
	local group events=()

	require_program perf
	start_target resources
	add_probes --pid "$RECORDED_PID" --no-heap --pair "$FILES" --ref "$WIDGETS"
	kill_now "$RECORDED_PID"
	for group in $(added_groups); do
		events+=(-e "$group:*")
	done
	perf record -q -g -B -m 8192 -o perf.data "${events[@]}" -- "$TARGETS/resources" \
		>truth 2>record.err || fail "perf record: $(cat record.err)"
	parse
	assert_kind file widget
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

@test "resources: reports show one kind, and leakfollow follows it" {
	record_attached resources --pair "$FILES" --ref "$WIDGETS"
	"$BIN/leakparse" --kind file <perf.data >leaks 2>leakparse.err
	assert_equal "leaks" "$(grep -c '^leak ' leaks)" "$(truth file_held)"
	assert_summary held_blocks 0
	grep -q '^leakparse: file: 50 given, 45 taken, 5 still held$' leakparse.err
	"$BIN/leakparse" --kind memory <perf.data >leaks 2>/dev/null
	assert_equal "memory" "$(grep -c 'kind=' leaks)" 0
	"$BIN/leakparse" --summary <perf.data >screen 2>/dev/null
	grep -q '^5 file handles in 1 stack, held at the end: 50 given, 45 taken, 50 failed$' screen
	"$BIN/leakparse" --kind file --format json <perf.data 2>/dev/null | grep -q '"kind":"file"'
	"$BIN/leakparse" --kind file --format folded <perf.data 2>/dev/null | grep -q ';open_log;.* 5$'
	"$BIN/leakparse" --kind file --format tree <perf.data 2>/dev/null | grep -q '5 *total'
	"$BIN/leakfollow" --kind file <perf.data >follow 2>/dev/null
	assert_equal "entered" "$(grep -c '^enter' follow)" 50
	assert_equal "exited" "$(grep -c '^exit' follow)" 45
}

@test "resources: mistakes are told in one line" {
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

@test "resources: of a command, from its first instruction, in any of its libraries" {
	record_command resources --pair "$FILES" --ref "$WIDGETS"
	assert_kind file widget
	run -1 "$BIN/leakrec" -o perf.data --pair 'no_such_function:ret / fclose:arg1' -- true
	[[ $output == *"defines no_such_function"* ]]
}

@test "resources: leakprobe lists and deletes them" {
	start_target resources
	add_probes --pid "$RECORDED_PID" --no-heap --ref "$WIDGETS"
	assert_equal "probes" "${#OWN_EVENTS[@]}" 4
	"$BIN/leakprobe" list >listed
	grep -qE ':widget__unref__widget_unref +widget_unref ' listed
	"$BIN/leakprobe" del --pid "$RECORDED_PID"
	assert_equal "probes left" "$(uprobe_events | grep -c widget__)" 0
	kill_now "$RECORDED_PID"
}

@test "resources: a program's own pool, by what it says itself" {
	for engine in "" --perf-events; do
		# shellcheck disable=SC2086 # none, or one
		record_attached pools $engine
		assert_kind pool
		assert_summary held_bytes "$(truth held_bytes)"
		assert_equal "bytes" "$(awk '$1 == "leak" && /kind=pool/ { n += $2 } END { print n }' leaks)" \
			"$(truth pool_bytes)"
		assert_no_unexpected
		rm -f target.in target.out
	done
	"$BIN/leakparse" --kind pool --summary <perf.data 2>/dev/null | grep -q '^   main < .* at pools.c:'
	# Who took it is known, where a pool's function is, and where a line of main() is.
	grep -A3 '^leak 48 .* kind=pool' leaks | grep -q 'use+0x'
	grep -A1 '^leak 100 .* kind=pool' leaks | grep -q 'main+0x'
	start_target pools
	add_probes --pid "$RECORDED_PID"
	attach
	go_target
	finish_target
	finish_leakrec
	parse
	assert_kind pool
}

# held_by PID: the descriptors that the recording says process PID holds, but for those of --kind others.
held_by() {
	awk -v pid="$1" '$1 == "leak" && $6 == pid && / kind=fd/ { print $3 }' leaks | sort
}

@test "resources: file descriptors, by all the ways that open and close them" {
	local pid

	record_attached descriptors --no-heap --with fd
	# What /bin/true opens to load its libc, it closes.
	assert_equal "held" "$(held fd)" "$(truth fd_held)"
	assert_no_unexpected
	grep -A2 '^leak .* openat .* kind=fd' leaks | grep -q 'use_files+0x'
	rm -f target.in target.out
	# The kernel's tracepoints do not tell which two a pipe has.
	record_attached descriptors --no-heap --with fd --perf-events
	assert_equal "held" "$(held fd)" $(($(truth fd_held) - $(truth pair_held)))
	# What is held is what the process has: of files, /proc says so, too.
	rm -f target.in target.out
	start_target descriptors
	attach --no-heap --with fd
	find "/proc/$RECORDED_PID/fd" -printf '%f\n' >before
	pid=$RECORDED_PID
	go_target
	finish_target
	finish_leakrec
	parse
	for fd in $(held_by "$pid"); do
		! grep -qx "$((fd))" before || fail "descriptor $((fd)) was open before"
	done
}

# A proxy serves requests, and some clients connect and say nothing: their connections stay open.
is_listening() {
	grep -qi ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp
}

@test "resources: what handles were held for comes with those that held most first" {
	record_command "descriptors" --no-heap --with fd
	"$BIN/leakparse" -i perf.data >leaks
	awk '$1 == "history" && $2 != "all" {
		nr = split(substr($4, length("held_blocks=") + 1), held, ",")
		for (most = i = 0; ++i <= nr;)
			if (held[i] > most)
				most = held[i]
		print most + 0
	}' leaks >most
	[[ $(sort -u most | wc -l) -ge 2 ]]
	sort -rn most | diff most -
}

@test "resources: descriptors of a server that clients make it keep" {
	local port=$((20000 + $$ % 20000)) pid idle=() i fd

	require_program tinyproxy
	printf '%s\n' "Port $port" "Listen 127.0.0.1" "Timeout 600" "MaxClients 100" \
		"LogFile \"$PWD/proxy.log\"" "PidFile \"$PWD/proxy.pid\"" "Allow 127.0.0.1" >proxy.conf
	tinyproxy -d -c proxy.conf >proxy.out 2>&1 3>&- &
	pid=$!
	STARTED_PIDS+=("$pid")
	wait_until 60 is_listening "$port"
	attach -p "$pid" --no-heap --with fd
	for ((i = 0; i < 20; i++)); do
		exec {fd}<>"/dev/tcp/127.0.0.1/$port"
		printf 'GET / HTTP/1.0\r\n\r\n' >&"$fd"
		cat <&"$fd" >/dev/null
		exec {fd}>&-
	done
	has_sockets() { (($(find "/proc/$pid/fd" -lname 'socket:*' | wc -l) == $1)); }
	wait_until 60 has_sockets 1 # it listens
	for ((i = 0; i < 7; i++)); do
		exec {fd}<>"/dev/tcp/127.0.0.1/$port"
		idle+=("$fd")
	done
	wait_until 60 has_sockets 8
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	parse
	assert_equal "connections" "$(grep -cE '^leak .* accept4? .* kind=fd' leaks)" 7
	"$BIN/leakparse" --kind fd --summary <perf.data >screen
	grep -qE '^[0-9]+\. [a-z-]+: 7 fds' screen
	for fd in "${idle[@]}"; do
		exec {fd}>&-
	done
	kill_now "$pid"
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
	# Of what added references, only this has nothing that drops them.
	assert_equal "culprits" "$(awk '/^refs \+1 -0 g_object_ref / { getline; getline; print $1 }' leaks |
		grep -c '^remember+')" 4
}

# The function clears what its argument points to in its first instructions. Of timer_delete() the C library has
# versions for programs linked long ago, which come first in its table.
@test "resources: a taker that clears the handle, and the newest version of a function" {
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
	# A function that ends in another file's (here: a jump to malloc) is left out, and a line says so.
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
	# Not one, of the part.
	grep -q '^# resource lease: 3 given, 1 taken; ' leaks || fail "$(grep '^# resource' leaks)"
}
