#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Allocators that are preloaded: the targets' own counts and what is recorded are the same. jemalloc has no pvalloc:
# a program that calls libc's and frees the block by jemalloc's free crashes, so the targets do without.

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

all_exact() {
	local pvalloc=1

	[[ $1 != libjemalloc* ]] || pvalloc=0
	exact "$1" sizes
	exact "$1" random_calls --rounds 3000 --pvalloc "$pvalloc"
	exact "$1" realloc_cases
	exact "$1" aligned --pvalloc "$pvalloc"
	exact "$1" posix_memalign_cases
	exact "$1" null_free
	exact "$1" threads_cross_free
	exact "$1" thread_exits
}

@test "allocators: jemalloc, exact" {
	all_exact libjemalloc.so.2
}

@test "allocators: tcmalloc, exact" {
	all_exact libtcmalloc_minimal.so.4
}

@test "allocators: mimalloc, exact" {
	all_exact libmimalloc.so.2
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

@test "allocators: functions that only jemalloc, tcmalloc or mimalloc have, exact" {
	exact libjemalloc.so.2 own_functions
	assert_equal "jemalloc's" "$(truth functions)" 4
	exact libtcmalloc_minimal.so.4 own_functions
	(($(truth functions) >= 20))
	exact libmimalloc.so.2 own_functions
	(($(truth functions) >= 40))
}
