#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# jemalloc, preloaded: the targets' own counts and what is recorded are the same. jemalloc has no pvalloc: a program that
# calls libc's and frees the block by jemalloc's free crashes, so the targets do without.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/allocators

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "allocators: jemalloc, exact" {
	all_exact libjemalloc.so.2
}

@test "allocators: jemalloc, exact by perf events, too" {
	with_library libjemalloc.so.2 random_calls --rounds 3000 --pvalloc 0
	attach --perf-events
	go_target
	finish_target
	finish_leakrec
	parse
	assert_truth
}
