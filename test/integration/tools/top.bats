#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --top, driven by keys on a pseudo-terminal of 80x24.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/top

setup() {
	common_setup
	require_program python3
}

teardown() {
	common_teardown
}

start_hostile() {
	./hostile 3>&- &
	RECORDED_PID=$!
	# Until then it is a copy of this shell.
	wait_until 60 grep -q hostile "/proc/$RECORDED_PID/comm"
}

# first_cause_is FUNCTION: whatever its verdict, which depends on how evenly the daemon's requests came.
first_cause_is() {
	sed -n '/^1\. [a-z-]*: .* blocks/,/^2\. /p' screen | grep -q "^ *$1 (leaky_daemon.c:[0-9]*) < load_font" ||
		fail "$(cat screen)"
}

@test "top: keys select, expand, sort, filter, mark; the end is a report" {
	local engine

	for engine in "" --perf-events; do
		start_daemon
		# shellcheck disable=SC2086 # none, or one
		drive keys $engine
		end_daemon
		grep -q 'leakrec: .* events, .* 0 events lost.*: shown only; -o FILE keeps the recording' screen || fail "$(cat screen)"
		first_cause_is query_font
		[[ ! -e perf.data ]]
	done
}

@test "top: with -o the recording is kept, whole and with its marks" {
	start_daemon
	drive keys -o perf.data
	end_daemon
	parse
	assert_summary lost 0
	grep -q 'by_signal=1' <(perf script -i perf.data -F event,trace 2>/dev/null)
	# What was shown at the end is what is in the file.
	assert_equal "allocations" \
		"$(sed -nE 's/.* recorded, ([0-9]+) allocations, .*/\1/p' screen)" "$(summary allocations)"
}

@test "top: help, and only columns that are shown are sorted by" {
	start_daemon
	drive help
	end_daemon
}

@test "top: any size of the terminal" {
	start_daemon
	drive sizes
	end_daemon
}

@test "top: the screen and its end say that only some sizes are recorded" {
	require_programs
	start_daemon
	drive one-size --size 3072
	end_daemon
	grep -q '^Only blocks of 3072 bytes were recorded (leakrec --size)' screen || fail "$(cat screen)"
}

@test "top: resources count, too" {
	local driver

	start_target resources
	drive until-end --no-heap --pair 'file=fopen|fdopen:ret / fclose:arg1' &
	driver=$!
	wait_until 60 test -e shown
	go_target
	finish_target
	wait "$driver" || fail "$(cat screen)"
	grep -q "$(truth file_held) file handles in .*: $(truth file_given) given, $(truth file_taken) taken" screen ||
		fail "$(cat screen)"
}

@test "top: a symbol's name drives no terminal" {
	cat >hostile.c <<-'END'
		#include <stdlib.h>
		#include <unistd.h>
		__attribute__((noinline)) void *evil(void)
		{
			void *p = malloc(77);
			__asm__ volatile("" ::: "memory");
			return p;
		}
		int main(void)
		{
			for (;;) {
				evil();
				usleep(1000);
			}
		}
	END
	gcc -O1 -o hostile hostile.c
	objcopy --redefine-sym "evil=evil"$'\e[2J\a<script>' hostile
	start_hostile
	drive hostile
	kill_now "$RECORDED_PID"
}
