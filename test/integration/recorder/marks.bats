#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Marks, by time and by SIGUSR1. perf reads a recording with marks.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

# The marks of perf.data: "NUMBER BY_SIGNAL TIME" each.
marks() {
	perf script -i perf.data -F event,time,trace 2>/dev/null |
		sed -nE 's/^ *([0-9.]+): *leakrec:mark: number=([0-9]+) by_signal=([01]).*/\2 \3 \1/p'
}

has_intervals() {
	(($(grep -c '^interval ' changes) >= $1))
}

has_marked() {
	grep -q "mark $1\$" leakrec.err
}

@test "marks: each SIGUSR1 sets one, and recording continues" {
	local engine

	for engine in "" --perf-events; do
		start_target leaky_daemon --requests 1000000 --interval-us 1000
		# shellcheck disable=SC2086 # none, or one
		attach $engine
		go_target
		for number in 1 2 3; do
			kill -USR1 "$LEAKREC_PID"
			wait_until 60 has_marked "$number"
		done
		kill -INT "$LEAKREC_PID"
		finish_leakrec
		kill_now "$RECORDED_PID"
		parse
		assert_equal "marks" "$(marks | cut -d' ' -f1,2 | paste -sd,)" "1 1,2 1,3 1"
		rm -f target.in target.out
	done
}

@test "marks: a clock sets them on time" {
	start_target leaky_daemon --requests 1000000 --interval-us 1000
	attach -d 2.1 --mark-every 0.5
	go_target
	finish_leakrec
	kill_now "$RECORDED_PID"
	marks >listed
	assert_equal "marks" "$(cut -d' ' -f1,2 listed | paste -sd,)" "1 0,2 0,3 0,4 0"
	awk 'NR > 1 && ($3 - last > 0.500002 || $3 - last < 0.499998) { exit 1 } { last = $3 }' listed ||
		fail "not each half second: $(cat listed)"
}

@test "marks: a pipe holds them, compressed or not" {
	local level

	for level in "" -z; do
		# shellcheck disable=SC2086 # none, or one
		"$BIN/leakrec" $level --mark-every 0.1 -d 1 -o - -- "$TARGETS/leaky_daemon" \
			--requests 1000000 --interval-us 1000 2>leakrec.err >perf.pipe
		kill -KILL "$(sed -n 's/.* goes on as process //p' leakrec.err)"
		perf script -i perf.pipe -F event 2>/dev/null | grep -c leakrec:mark >count
		(($(cat count) >= 8)) || fail "$(cat count) marks in a second"
	done
}

@test "marks: --diff shows what leaked between them, and nothing else" {
	start_target leaky_daemon --requests 1500 --interval-us 1000
	attach --mark-every 0.4
	go_target
	finish_target
	finish_leakrec
	parse
	"$BIN/leakparse" --diff -i perf.data >changes
	(($(grep -c ^interval changes) >= 4)) || fail "$(cat changes)"
	# Prints "INTERVAL PLACE BLOCKS SHARE" of the leak, and the largest other change.
	awk '$1 == "interval" { nr++; place = 0; next }
		$1 == "change" { place++; blocks = $3; bytes = $2; share = $5 + 0; next }
		/^\tquery_font\+/ { if (bytes != blocks * 3072) exit 1; print nr, place, blocks, share }' changes >leak
	assert_equal "leaked blocks" "$(awk '{ sum += $3 } END { print sum }' leak)" "$(truth held_3072)"
	# Besides its cache, which it fills at the start, and the leak, the daemon holds only what it needs for a
	# request: less than ten leaked blocks. On a busy machine, it starts late.
	filled=$(awk '$1 == "interval" { nr++ } /^\tfill_cache\+/ { last = nr } END { print last + 0 }' changes)
	awk -v filled="$filled" '$1 > filled && $3 >= 10 { n++; if ($2 != 1 || $4 < 40) bad = 1 }
		END { exit bad || !n }' leak || fail "$(cat leak changes)"
	# The sum of all changes is what is held at the end.
	assert_equal "bytes" "$(awk '$1 == "interval" { sum += $6 } END { print sum }' changes)" \
		"$(sed -nE 's/^# summary.* held_bytes=([0-9]+).*/\1/p' leaks)"
	"$BIN/leakparse" --from 0 --to 1h -i perf.data >all
	assert_equal "in one interval" "$(awk '$1 == "interval" { print $6, $7 }' all)" \
		"$(awk '$1 == "interval" { a += $6; b += $7 } END { printf "%+d %+d", a, b }' changes)"
	"$BIN/leakparse" --diff --size 3072 --limit 1 -i perf.data | awk '$1 == "change"' >sized
	assert_equal "of one size" "$(awk '{ sum += $3 } END { print sum }' sized)" \
		"$(truth held_3072)"
}

# Between two requests the daemon sleeps, and holds only its cache and what it has leaked.
is_between_requests() {
	[[ $(awk '{ print $1 }' "/proc/$RECORDED_PID/syscall") == 230 ]] # clock_nanosleep
}

# Stops the daemon between two requests, sets a mark, and continues the daemon.
mark_between_requests() {
	local number="$1"

	while true; do
		wait_until 60 is_between_requests
		kill -STOP "$RECORDED_PID"
		wait_until 60 grep -q '^State:.T' "/proc/$RECORDED_PID/status"
		is_between_requests && break
		kill -CONT "$RECORDED_PID"
	done
	kill -USR1 "$LEAKREC_PID"
	wait_until 60 has_marked "$number"
	kill -CONT "$RECORDED_PID"
}

# has_answered N: true if the daemon has slept N times, once after each request.
has_answered() {
	(($(awk '/^voluntary_ctxt/ { print $2 }' "/proc/$RECORDED_PID/status") >= $1))
}

@test "marks: between two moments with equal other memory, only the leak shows" {
	local switches

	start_target leaky_daemon --requests 1000000 --interval-us 2000
	attach
	go_target
	# By then it has replaced all cache entries that it ever replaces: 4 of 40, in 40 requests.
	switches=$(awk '/^voluntary_ctxt/ { print $2 }' "/proc/$RECORDED_PID/status")
	wait_until 60 has_answered $((switches + 100))
	mark_between_requests 1
	switches=$(awk '/^voluntary_ctxt/ { print $2 }' "/proc/$RECORDED_PID/status")
	wait_until 60 has_answered $((switches + 300))
	mark_between_requests 2
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	kill_now "$RECORDED_PID"
	"$BIN/leakparse" --diff -i perf.data | awk '$1 == "interval" { n = $4 == "mark-1" } n' >changes
	awk '$1 == "change" && !n++ { if ($2 != $3 * 3072 || $3 < 30 || $5 + 0 < 99) bad = 1; next }
	     $1 == "change" && $5 + 0 > 1 { bad = 1 }
	     END { exit bad || n < 1 }' changes || fail "$(cat changes)"
	sed -n '/^change/,/^change.*/ { /query_font/p; }' changes | grep -q query_font ||
		fail "the first is not the leak: $(cat changes)"
	# The same by call paths: no other changes are shown.
	"$BIN/leakparse" --diff --format tree -i perf.data |
		awk '/mark 1\) to .*mark 2\)/ { n = 1 } !NF { n = 0 } n' >paths
	grep -q query_font paths || fail "$(cat paths)"
	run ! grep -Eq 'fill_cache|replace_cached|parse_request|append' paths
	assert_equal "blocks by call paths" "$(awk '/total$/ { print $4 }' paths)" \
		"$(awk '$1 == "interval" { print $7 }' changes)"
}

@test "marks: --every prints while the recording comes in" {
	local parser_pid

	start_target leaky_daemon --requests 1000000 --interval-us 1000
	go_target
	# It has filled its cache, and has replaced all entries that it ever replaces.
	wait_until 60 has_answered 100
	"$BIN/leakrec" -p "$RECORDED_PID" -o - 2>leakrec.err |
		"$BIN/leakparse" --every 0.2 --limit 1 >changes 2>leakparse.err &
	parser_pid=$!
	wait_until 60 has_intervals 4
	kill -0 "$RECORDED_PID"
	kill_now "$RECORDED_PID"
	wait "$parser_pid"
	# At that moment other functions of the daemon hold less than four leaked blocks.
	awk '$1 == "change" && $2 == $3 * 3072 { n++; next }
		$1 == "change" && ($2 > 4 * 3072 || $2 < -4 * 3072) { bad = 1 }
		END { exit bad || !n }' changes || fail "$(cat changes)"
}

# Prints the program's own marks in perf.data, in order: "PID TEXT".
own_marks() {
	perf script -i perf.data -F event,tid,trace 2>/dev/null |
		sed -nE 's/^ *([0-9]+) .*:leak_mark(_[0-9]+)?: \([0-9a-f]+\) text="(.*)"$/\1 \3/p'
}

# Sets ENGINES to the options that choose how to record: Linux 6.12 to 6.19 take all of them.
find_engines() {
	local major minor

	ENGINES=("" --perf-events)
	IFS=.- read -r major minor _ </proc/sys/kernel/osrelease
	((major != 6 || minor < 12)) || ENGINES+=("--record-by multi")
	((major < 6)) || ENGINES+=("--record-by single")
}

@test "marks: set by the program and by its children" {
	local engine

	find_engines
	for engine in "${ENGINES[@]}"; do
		# shellcheck disable=SC2086 # none, or one
		record_command "marked_requests --requests 3 --fork 1" $engine
		own_marks >listed
		assert_equal "marks" "$(wc -l <listed)" "$(truth marks)"
		assert_equal "processes" "$(cut -d' ' -f1 listed | uniq | wc -l)" 2
		assert_equal "before" "$(grep -c 'before request$' listed)" 6
		assert_equal "after" "$(grep -c 'after request [123]' listed)" 6
		assert_equal "what is below a leaf's stack pointer" "$(truth leaf_sum_kept)" 1
		assert_truth
		# Request N leaks N blocks, and the text cannot control a terminal.
		"$BIN/leakparse" --diff -i perf.data >changes
		awk '$1 == "interval" && $4 == "mark:before\\x20request" { print $5, $6, $7 }' changes >found
		for number in 1 2 3 1 2 3; do
			printf '%s\n' "mark:after\x20request\x20$number\x1b[2J +${number}00 +$number"
		done >expected
		diff expected found
	done
}

@test "marks: of a process that is attached to, in its libraries, with leakprobe's probes" {
	cat >library.c <<-'END'
		#include <leaktools/leak_probes.h>
		void in_library(const char *text) { LEAK_MARK(text); }
	END
	cat >program.c <<-'END'
		#include <leaktools/leak_probes.h>
		#include <stdio.h>
		#include <stdlib.h>
		void in_library(const char *text);
		int main(void)
		{
			setvbuf(stdout, NULL, _IONBF, 0);
			puts("ready");
			getchar();
			in_library("in a library");
			free(malloc(1));
			LEAK_MARK("in the program, with a text that is longer than sixty-three bytes");
			getchar(); /* With perf events, leakrec reads the library's text from the process. */
			return 0;
		}
	END
	gcc -O2 -fPIC -shared -I"$SOURCE_DIR/include" -o libmarked.so library.c
	gcc -O2 -I"$SOURCE_DIR/include" -o marked program.c -L. -lmarked -Wl,-rpath,"$PWD"
	has_texts() {
		"$BIN/leakparse" --diff -i perf.data >changes 2>leakparse.err || (($? == 1)) || return # still being written
		grep -qF ' mark:in\x20the\x20program' changes && grep -qF ' mark:in\x20a\x20library' changes
	}
	for made_by in leakrec leakprobe; do
		mkfifo target.in
		./marked <target.in >target.out 3>&- &
		RECORDED_PID=$!
		exec {TARGET_IN}>target.in
		wait_until 60 grep -q ready target.out
		if [[ $made_by == leakprobe ]]; then
			add_probes --pid "$RECORDED_PID"
			"$BIN/leakprobe" list >listed
			grep -q 'leakprobe_libmarked_so_.*:leak_mark *LEAK_MARK() .*libmarked.so' listed
		fi
		attach
		echo >&"$TARGET_IN"
		wait_until 60 has_texts
		echo >&"$TARGET_IN"
		finish_leakrec
		exec {TARGET_IN}>&-
		own_marks | cut -d' ' -f2- >found
		printf '%s\n' "in a library" \
			"in the program, with a text that is longer than sixty-three byt" >expected
		diff expected found
		rm target.in target.out
	done
	grep -q 'libmarked.so' leakprobe.out
}

@test "marks: a text that is not in memory is not waited for" {
	local engine lasts

	find_engines
	# A thread counts the accesses to the missing page that wait for it, and ends the wait.
	cat >unread.c <<-'END'
		#include <leaktools/leak_probes.h>
		#include <fcntl.h>
		#include <linux/userfaultfd.h>
		#include <poll.h>
		#include <pthread.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/ioctl.h>
		#include <sys/mman.h>
		#include <sys/syscall.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static const char constant[4096] __attribute__((aligned(4096))) = "in the file";
		static char changed[32], *missing;
		static int nr_waits;
		static void *serve(void *fd)
		{
			struct pollfd wanted = {*(int *)fd, POLLIN, 0};
			struct uffdio_zeropage zero = {{(unsigned long)missing, 4096}, 0, 0};
			struct uffd_msg message;
			while (poll(&wanted, 1, -1) == 1 && read(wanted.fd, &message, sizeof(message)) > 0) {
				__atomic_add_fetch(&nr_waits, 1, __ATOMIC_SEQ_CST);
				ioctl(wanted.fd, UFFDIO_ZEROPAGE, &zero);
			}
			return NULL;
		}
		static void set_marks(void)
		{
			char on_stack[32];
			madvise((void *)constant, sizeof(constant), MADV_DONTNEED);
			LEAK_MARK(constant);
			LEAK_MARK(missing);
			LEAK_MARK(NULL);
			snprintf(changed, sizeof(changed), "changed");
			LEAK_MARK(changed);
			snprintf(on_stack, sizeof(on_stack), "on the stack");
			LEAK_MARK(on_stack);
		}
		int main(int argc, char **argv)
		{
			int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
			struct uffdio_api api = {UFFD_API, 0, 0};
			struct uffdio_register range = {{0, 4096}, UFFDIO_REGISTER_MODE_MISSING, 0};
			pthread_t thread;
			missing = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			range.range.start = (unsigned long)missing;
			if (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range) ||
			    pthread_create(&thread, NULL, serve, &fd))
				return 1;
			set_marks();
			if (fork() == 0) {
				set_marks();
				sleep(argc > 1 ? atoi(argv[1]) : 0);
				_exit(0);
			}
			wait(NULL);
			printf("missing %p\nwaits %d\n", missing, nr_waits);
			return 0;
		}
	END
	gcc -O2 -D_GNU_SOURCE -I"$SOURCE_DIR/include" -o unread unread.c -lpthread
	for engine in "${ENGINES[@]}"; do
		lasts=
		# With perf events, leakrec reads "changed" from the process, on a busy machine some time later.
		[[ $engine != --perf-events ]] || lasts=5
		# shellcheck disable=SC2086 # words
		"$BIN/leakrec" $engine -o perf.data -- ./unread $lasts >unread.out 2>leakrec.err
		own_marks | cut -d' ' -f2- >found
		for _ in parent child; do
			printf '%s\n' "in the file" "(text at $(sed -n 's/^missing //p' unread.out) not read)" \
				"(text at 0x0 not read)" changed "on the stack"
		done >expected
		grep -qx 'waits 0' unread.out || fail "$(cat unread.out)"
		diff expected found
	done
}

# Writes user.c, which uses the header in all ways.
write_user() {
	cat >user.c <<-'END'
		#include <leaktools/leak_probes.h>
		#ifndef __cplusplus
		static
		#endif
		inline void mark(const char *text) { LEAK_MARK(text); }
		void slots(char *slot);
		void slots(char *slot) { if (slot) LEAK_ALLOC(slot, sizeof(*slot)); else LEAK_FREE(slot); }
		void twice(void);
		void twice(void) { if (1) LEAK_MARK("one"); else LEAK_MARK("two"); mark("x"); mark("y"); }
		int main(void) { twice(); return 0; }
	END
}

# compile_user COMPILER...: compiles it with each, and checks that it runs, and has marks.
compile_user() {
	local compiler

	for compiler in "$@"; do
		# shellcheck disable=SC2086 # words
		$compiler $FLAGS -I"$SOURCE_DIR/include" -o user user.c
		./user
		readelf -n user | grep -q 'Name: leak_mark'
	done
}

FLAGS="-Wall -Wextra -pedantic -Werror"

@test "marks: the header works in C and C++ with gcc" {
	write_user
	compile_user "gcc -std=c99" "gcc -std=gnu17 -O3 -flto" "g++ -x c++ -std=c++11"
}

@test "marks: the header works with clang, and does nothing on other processors" {
	require_program clang
	write_user
	compile_user "clang -std=c99" "clang++ -x c++ -O2"
	# shellcheck disable=SC2086 # words
	clang $FLAGS -target riscv64-linux-gnu -S -I"$SOURCE_DIR/include" -o user.s user.c
	run ! grep stapsdt user.s
	# shellcheck disable=SC2086 # words
	clang $FLAGS -target aarch64-linux-gnu -c -I"$SOURCE_DIR/include" -o user.o user.c
	readelf -n user.o | grep -q 'Arguments: 8@x0'
	readelf -n user.o | grep -q 'Arguments: 8@x0 8@x1'
}

@test "marks: the header is installed" {
	require_program cmake
	DESTDIR=$PWD/root cmake --install "$BUILD_DIR" >/dev/null
	find root -path '*/include/leaktools/leak_probes.h' | grep -q .
}
