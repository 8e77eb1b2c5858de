#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As overload.bats, with many threads and children. Without backpressure events are lost, and counted.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn
load ../support/overload

setup() {
	common_setup
	own_libc
}

teardown() {
	common_teardown
}

# --- Threads ---

@test "overload: many more threads than CPUs" {
	start_reader
	start_churn --threads 200 --pairs 300
	attach -o - --call-graph dwarf,2048 >pipe
	go_target
	finish_target
	finish_leakrec
	finish_reader
	assert_all_recorded
}

@test "overload: a thousand threads" {
	local threads=1000 began_ms ended_ms

	# The number of descriptors is threads x CPUs x events.
	if ! (ulimit -n 100000) 2>/dev/null; then
		threads=500
		echo "# with $threads threads only: the hard limit is $(ulimit -Hn) open files" >&3
	fi
	start_reader
	start_churn --threads $threads --pairs 100 --leak-every 10
	began_ms=$(date +%s%3N)
	attach -o - --call-graph fp >pipe
	ended_ms=$(date +%s%3N)
	echo "# attached to $threads threads in $((ended_ms - began_ms)) ms" >&3
	go_target
	finish_target
	finish_leakrec
	finish_reader
	assert_all_recorded
}

# --- Children ---

# Each process that makes more events than the rings can hold is stopped.
@test "overload: children that allocate fast" {
	EVENTS_PER_MALLOC=1
	hold_back dwarf --children 3
	let_reader_go
	assert_advances
	wait_until 60 has_made 100000
	finish_all
	assert_equal "lost, by leakparse" "$(summary lost)" "$(end_line lost)"
	assert_paused
	was_in_time || return 0
	assert_truth
	assert_no_unexpected
	assert_equal "lost" "$(end_line lost)" 0
}

@test "overload: children that allocate fast, small rings" {
	start_reader
	start_churn --threads 2 --children 4 --leak-every 1000
	attach -o - -m 64 --call-graph dwarf >pipe
	go_target
	wait_until 60 has_made 60000
	finish_all
	assert_equal "lost, by leakparse" "$(summary lost)" "$(end_line lost)"
	assert_paused
	was_in_time || return 0
	assert_truth
	assert_no_unexpected
	assert_equal "lost" "$(end_line lost)" 0
}

# --- Without backpressure ---

@test "overload: --on-overload drop loses, and counts, and never stops" {
	start_reader
	start_churn --threads 4
	attach -o - -m 16 --call-graph dwarf --on-overload drop >pipe
	go_target
	wait_until 60 has_made 200000
	finish_all
	(($(end_line lost) > 0))
	assert_equal "recorded and lost" $(($(end_line events) + $(end_line lost))) "$(expected_events)"
	assert_equal "lost, by leakparse" "$(summary lost)" "$(end_line lost)"
	assert_equal "events, by leakparse" "$(summary events)" "$(end_line events)"
	assert_equal "SIGCONTs" "$(truth continued)" 0
	! grep paused leakrec.err || fail "the target was held back"
	# It says what would have been enough.
	grep -qE ': events were lost: a ring of 16 pages had no room for [0-9]+ events; (-m [0-9]+ has room|that is more)' leakrec.err
}

# without CAPABILITIES: leakrec lacks them, named as for setpriv, from now on.
without() {
	mkdir bin
	cat >bin/leakrec <<-END
		#!/bin/sh
		exec setpriv --bounding-set $1 --inh-caps $1 '$BIN/leakrec' "\$@"
	END
	chmod +x bin/leakrec
	ln -s "$BIN/leakparse" bin/
	BIN=$PWD/bin
}

@test "overload: without CAP_KILL leakrec says so, and stops nothing" {
	without -kill
	start_reader
	start_churn --threads 4 --children 2
	attach -o - -m 16 --call-graph dwarf >pipe
	grep -q ': cannot stop processes without CAP_KILL' leakrec.err || fail "$(cat leakrec.err)"
	go_target
	wait_until 60 has_made 200000
	finish_all
	(($(end_line lost) > 0))
	assert_equal "lost, by leakparse" "$(summary lost)" "$(end_line lost)"
	assert_equal "SIGCONTs" "$(truth continued)" 0
	! grep paused leakrec.err || fail "the target was held back"
	grep -q ': a process continued before its child' leakrec.err || fail "$(cat leakrec.err)"
	grep -q ' or more events lost' leakrec.err || fail "$(tail -n 1 leakrec.err)"
}

# bpf(2) is denied by taking the capabilities for it; for perf, CAP_PERFMON is enough.
@test "overload: without BPF leakrec says so, and counts what it loses" {
	without -bpf,-sys_admin
	EVENTS_PER_MALLOC=2
	start_reader
	start_churn --threads 4
	attach -o - --call-graph dwarf >pipe
	grep -q 'BPF is not available' leakrec.err || fail "$(cat leakrec.err)"
	go_target
	wait_until 60 has_made 100000
	finish_all
	assert_equal "recorded and lost" $(($(end_line events) + $(end_line lost))) "$(expected_events)"
	assert_equal "lost, by leakparse" "$(summary lost)" "$(end_line lost)"
	assert_equal "events, by leakparse" "$(summary events)" "$(end_line events)"
	assert_paused
}
