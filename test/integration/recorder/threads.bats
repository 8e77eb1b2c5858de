#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Threads that free each other's blocks, and threads that end. Frees by glibc itself are not reported.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

check() {
	assert_truth
	assert_events --more-frees
	assert_no_unexpected
}

@test "threads: blocks freed by another thread, started" {
	record_command threads_cross_free
	check
}

@test "threads: blocks freed by another thread, attached" {
	record_attached threads_cross_free
	check
}

@test "threads: blocks freed by another thread, no stacks" {
	record_attached threads_cross_free --call-graph none
	check
}

@test "threads: blocks freed by another thread, dwarf" {
	record_attached "threads_cross_free --blocks 500" --call-graph dwarf,1024
	check
}

@test "threads: exits, started" {
	record_command thread_exits
	check
	(($(summary thread_exit_frees) > 0))
}

@test "threads: exits, attached" {
	record_attached thread_exits
	check
	(($(summary thread_exit_frees) > 0))
}

@test "threads: exits, no stacks" {
	record_command thread_exits --call-graph none
	check
}

@test "threads: exits, dwarf" {
	record_command "thread_exits --threads 5" -m 2048 --call-graph dwarf
	check
	assert_summary unwind_failures 0
}

@test "threads: load" {
	record_command "big_churn --threads 2 --pairs 10000 --leak-every 1000" -m 2048 --call-graph none
	check
	assert_equal "leaks" "$(grep -c '^leak 3072 ' leaks)" 20
}

# overload OPTION...: a ring of one page, which fills up.
overload() {
	"$BIN/leakrec" -m 1 --on-overload drop -o perf.data --call-graph dwarf,8192 "$@" -- \
		"$TARGETS/big_churn" --threads 2 --pairs 20000 >truth 2>leakrec.err
	parse
	lost=$(summary lost)
	((lost > 0))
	tail -n 1 leakrec.err | grep -q " $lost events* lost" ||
		fail "leakparse: $lost events lost, but $(tail -n 1 leakrec.err)"
	# Recorded and lost events together are all calls, and the frees at the threads' exits.
	all=$(($(events malloc malloc_ret malloc_call calloc calloc_ret free) + lost))
}

@test "threads: overload is counted and reported" {
	overload
	count_events_per_malloc
	calls=$(($(truth malloc) * EVENTS_PER_MALLOC + $(truth calloc) * 2 + $(truth free)))
	((all >= calls && all < calls + 200)) || fail "$all recorded and lost of $calls"
}

@test "threads: overload of perf events is counted and reported" {
	overload --perf-events
	calls=$((($(truth malloc) + $(truth calloc)) * 2 + $(truth free)))
	((all >= calls && all < calls + 200)) || fail "$all recorded and lost of $calls"
}
