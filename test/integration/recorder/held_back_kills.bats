#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec is killed while it records, or while it holds its target back. The target runs on, and the next recorder
# removes the probes.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn
load ../support/overload

setup() {
	common_setup
	own_libc
}

teardown() {
	common_teardown
}

@test "held back: leakrec is killed, and the target runs on" {
	local mode

	start_churn --threads 4 --leak-every 100
	go_target
	for mode in fp dwarf none fp dwarf none dwarf; do
		kill_once $((RANDOM % 600)) --call-graph $mode
	done
	assert_next_recorder_tidies
	finish_churn
}

@test "held back: leakrec is killed while the target is held back" {
	local mode

	start_churn --threads 4
	go_target
	for mode in fp dwarf none; do
		kill_held_once --call-graph $mode
	done
	assert_next_recorder_tidies
	finish_churn
}

@test "held back: children run on when leakrec is killed" {
	hold_back raw --children 3
	kill_recorder
	let_reader_go
	wait "$READER_PID" || true
	grep -q '^# summary .*truncated=1' leaks || fail "$(head -n 3 leaks leakparse.err)"
	assert_next_recorder_tidies
	finish_churn
}
