#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The kernel may drop a forked process's uprobes when a relative ends, so one run proves nothing.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# The summary counts what was recorded; that perf finds as many events is looked at in processes.bats.
@test "processes: fork, again and again" {
	for _ in 1 2 3 4 5 6 7 8; do
		record_command fork_tree --call-graph none
		assert_truth
	done
}
