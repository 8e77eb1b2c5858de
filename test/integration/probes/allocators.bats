#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Preloaded allocators: the recording has exactly the targets' own counts. jemalloc and
# mimalloc have files of their own.

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

@test "allocators: tcmalloc, exact" {
	all_exact libtcmalloc_minimal.so.4
}

@test "allocators: functions that only jemalloc or tcmalloc have, exact" {
	exact libjemalloc.so.2 own_functions
	assert_equal "jemalloc's" "$(truth functions)" 4
	exact libtcmalloc_minimal.so.4 own_functions
	(($(truth functions) >= 20))
}
