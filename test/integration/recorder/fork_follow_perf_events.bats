#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As fork_follow.bats, recorded by perf events.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/fork_follow

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "followers: many children at once, with perf events" {
	for _ in 1 2 3 4 5 6; do
		record_command "fork_storm --threads 4 --forks 6" --call-graph none --perf-events
		(($(truth workers) > 20))
		assert_storm
		! grep -qE "unguarded" leakrec.err leaks || fail "doubtful: $(cat leakrec.err)"
	done
}

# Before Linux 6.12 something must keep the kernel from swapping perf contexts (recorder/events/context_breakers.h).
@test "followers: threads of forked children come and go, with perf events" {
	record_attached fork_threads --call-graph none --perf-events
	assert_storm 4001 4002 4003 4004 4005 4006
}
