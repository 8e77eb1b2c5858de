#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# fork copies the heap. Equal addresses in different processes are different blocks. For exec and vfork see
# processes_exec.bats.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

@test "processes: fork, started" {
	recorded fork fork_tree
	assert_truth
	assert_events
	assert_no_unexpected
}

@test "processes: fork, attached" {
	record_attached fork_tree
	assert_truth
	assert_events
	assert_no_unexpected
}

@test "processes: fork, dwarf" {
	record_attached fork_tree --call-graph dwarf,2048
	assert_truth
	assert_events
}

@test "processes: each leak names its own process" {
	recorded fork fork_tree
	assert_equal "processes that leak" "$(awk '$1 == "leak" { print $6 }' leaks | sort -u | wc -l)" 13
}

@test "processes: a worker killed by SIGKILL" {
	record_command killed
	assert_truth
	assert_events
	assert_no_unexpected
}

@test "processes: the summary shows which processes leak" {
	recorded fork fork_tree
	"$BIN/leakparse" --summary -i perf.data >screen
	# Whether some of them leak depends on how long the recording is.
	grep -qxE '  13 processes held blocks when they exited; (worst leakers|those with the most) first:' screen
	assert_equal "processes told" "$(grep -cE '^  fork_tree \([0-9]+\): [0-9]+ blocks?, [0-9]' screen)" 5
	grep -qx '  and 8 more' screen
	grep -qE '^[0-9]+\. [a-z-]+.*: [0-9]+ blocks?, .*  in fork_tree \([0-9]+\)( and others)?$' screen
	record_command sizes
	"$BIN/leakparse" --summary -i perf.data >screen
	! grep -qE 'processes (hold|held) blocks|  in sizes' screen || fail "there is one"
}
