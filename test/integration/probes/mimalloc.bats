#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As allocators.bats, for mimalloc.

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

@test "mimalloc: as others, exact" {
	all_exact 'libmimalloc.so.[1-9]'
}

@test "mimalloc: functions that only it has, exact" {
	exact 'libmimalloc.so.[1-9]' own_functions
	(($(truth functions) >= 40))
}
