#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Events come faster than leakrec can write them. The target is stopped and nothing is lost, unless that takes longer
# than a process may be stopped.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn
load ../support/overload

setup() {
	common_setup
	own_libc
	count_events_per_malloc
}

teardown() {
	common_teardown
}

# check_load PAIRS OPTION...: records four threads straight into leakparse.
check_load() {
	start_reader
	start_churn --threads 4 --leak-every 1000
	attach -o - "${@:2}" >pipe
	set_niceness -20
	go_target
	wait_until 60 has_made "$1"
	stall_recorder
	assert_advances
	finish_all
	assert_all_recorded
	assert_paused
}

@test "overload: four threads, fp" {
	check_load 100000 --call-graph fp
}

@test "overload: four threads, dwarf" {
	check_load 50000 --call-graph dwarf
}

# Dumps are not made at single-trap points.
@test "overload: four threads, stack dumps" {
	count_without_single_traps
	check_load 50000 --call-graph dwarf --raw-stacks
}

# With smaller rings the threads are stopped more often, and less is in reserve.
@test "overload: four threads, dwarf, small rings" {
	check_load 50000 -m 64 --call-graph dwarf
}

@test "overload: four threads, dwarf, perf events" {
	EVENTS_PER_MALLOC=2
	check_load 50000 -m 64 --call-graph dwarf --perf-events
}

@test "overload: four threads, no stacks" {
	check_load 200000 --call-graph none
}

@test "overload: four threads, small rings" {
	check_load 100000 -m 8 --call-graph none
}

@test "overload: four threads, into a file, each function's events" {
	require_program perf
	start_churn --threads 4 --leak-every 1000
	attach --call-graph fp
	go_target
	wait_until 60 has_made 30000
	finish_churn
	finish_leakrec
	parse
	assert_all_recorded
	assert_events
}

@test "overload: four threads, started" {
	TARGETS=$BUILD_DIR/test/targets
	start_reader
	"$BIN/leakrec" -m 512 -o - --call-graph dwarf -- \
		"$TARGETS/big_churn" --threads 4 --pairs 10000 --leak-every 1000 >pipe 2>leakrec.err
	finish_reader
	grep '^truth ' leakrec.err >truth
	assert_truth
	assert_no_unexpected
	assert_equal "events recorded" "$(end_line events)" \
		$((EVENTS_PER_MALLOC * $(truth malloc) + 2 * $(truth calloc) + $(truth free) +
			$(summary thread_exit_frees) + $(summary null_frees)))
}
