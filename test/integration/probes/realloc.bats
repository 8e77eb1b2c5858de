#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# realloc: moved, in place, of NULL, to size 0, failed, by mremap, of an unknown block, and raced with another thread.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

@test "realloc: started" {
	record_command realloc_cases -m 2048
	assert_truth
	assert_events --more-frees
	assert_equal "listed failures" "$(grep -c '^unexpected alloc-failed ' leaks)" 3
}

@test "realloc: attached" {
	record_attached realloc_cases -m 2048
	assert_truth
	assert_events --more-frees
	assert_summary realloc_unknown 1
}

@test "realloc: no stacks" {
	record_attached realloc_cases -m 2048 --call-graph none
	assert_truth
	assert_events --more-frees
}

@test "realloc: after a failure the old block is held, with its allocation's stack" {
	record_command realloc_cases -m 2048
	leak_stacks 303 >stacks
	grep -qE '^( malloc)? failing main' stacks || fail "$(cat stacks)"
}
