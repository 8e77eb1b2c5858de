#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As size_filter.bats, for forked children.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/size_filter

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

@test "size filter: forked children" {
	check 3072 3072 --children 4
}

@test "size filter: forked children, a range" {
	check 500 1500 --children 4 --rounds 1000
}

@test "size filter: forked children, attached before they exist, started" {
	"$BIN/leakrec" -m 512 -o perf.data --size 3072 -- "$TARGETS/many_sizes" --children 3 \
		>truth 2>leakrec.err
	assert_leaks_of 3072 3072
	assert_calls 3072 3072
}

@test "size filter: nothing matches in forked children" {
	record_attached "many_sizes --rounds 300 --children 3" --size 77777777
	assert_summary events 0
}
