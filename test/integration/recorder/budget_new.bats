#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --budget: processes and files that are new, or cannot be probed, while a window stays open.

# shellcheck disable=SC2030,SC2031,SC2153,SC2154 # as in ending.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn
load ../support/ending

setup() {
	common_setup
	require_program perf
	require_programs
}

teardown() {
	common_teardown
}

# record_until CONDITION...: records new_in_window until the condition is true.
record_until() {
	: >leakrec.err
	"$BIN/leakrec" --budget 50% -p "$RECORDED_PID" -o - --call-graph none >stream.data 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
	go_target
	wait_until 60 "$@"
	interrupt
	kill -TERM "$RECORDED_PID"
	wait "$TARGET_PID" || true
	((STATUS == 0)) || fail "$(cat leakrec.err)"
}

# has_leaks [PROCESS]: true if leaks of the process, or of any, are recorded.
has_leaks() {
	perf script -i stream.data -F pid,event,trace 2>/dev/null | grep -q "^ *${1:-[0-9]*} .*:malloc.*bytes=3333\b"
}

@test "budget: a child of a quiet program is recorded, too" {
	start_target new_in_window fork
	record_until has_leaks
	grep -q " 0 events lost" leakrec.err || fail "$(cat leakrec.err)"
}

@test "budget: a library that a quiet program loads is recorded, too" {
	start_target new_in_window load "$TARGETS/lib/libpool_allocator.so"
	record_until has_leaks
}

@test "budget: a quiet program that another thread replaces is recorded, too" {
	start_target new_in_window exec
	record_until has_leaks
}
