#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As ending.bats, for recordings of all processes.

# shellcheck disable=SC2030,SC2031,SC2153,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn
load ../support/ending

setup() {
	common_setup
	own_libc
}

teardown() {
	common_teardown
}

@test "ending of all: processes" {
	start_churn --threads 2
	check_ending -a
}

@test "ending of all: processes, by perf events" {
	start_churn --threads 2
	check_ending -a --perf-events
}
