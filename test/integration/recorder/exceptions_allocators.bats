#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Exceptions pass the operators of jemalloc, tcmalloc and libstdc++. The program runs as it does without a recorder, and
# the held blocks are recorded exactly.

# shellcheck disable=SC2030,SC2031,SC2154,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/exceptions

setup() {
	common_setup
	[[ $(uname -m) == x86_64 ]] || skip "where functions end is known on x86-64 only"
}

teardown() {
	common_teardown
}

@test "jemalloc's operators throw" {
	with_allocator libjemalloc.so.2
}

@test "tcmalloc's operators throw" {
	with_allocator libtcmalloc_minimal.so.4
}

@test "jemalloc's operators throw, by a filter" {
	with_allocator libjemalloc.so.2 --size 3001..3009
}

@test "libstdc++'s operators throw with --mismatch" {
	record_attached throwing --mismatch
	assert_blocks
	assert_summary mismatch 0
}
