#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# exec clears the heap, vfork shares it.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

@test "processes: vfork and exec, started" {
	record_command vfork_exec
	assert_truth
	assert_events
	assert_no_unexpected
}

@test "processes: vfork and exec, attached" {
	record_attached vfork_exec
	assert_truth
	assert_events
	assert_no_unexpected
}

@test "processes: exec, started" {
	recorded exec exec_self
	assert_truth
	assert_events
	assert_no_unexpected
}

@test "processes: exec, attached" {
	record_attached exec_self
	assert_truth
	assert_events
	assert_no_unexpected
}

# All reports agree that what earlier programs held is not held any more.
@test "processes: what exec drops is in no changes, curves or peak" {
	recorded exec exec_self
	"$BIN/leakfollow" --kind memory -i perf.data 2>/dev/null >follow
	assert_equal "by exec" "$(grep -c '^exit .* exec ' follow)" "$(summary dropped_by_exec)"
	assert_equal "held after the last" "$(awk '/^(enter|exit)/ { held = $2 } END { print held }' follow)" \
		"$(truth held_blocks)"
	assert_equal "change" "$("$BIN/leakparse" --diff -i perf.data 2>/dev/null | awk '$1 == "interval" { print $NF }')" \
		"+$(truth held_blocks)"
	"$BIN/leakparse" -i perf.data >all 2>/dev/null
	assert_equal "curve's end" "$(sed -n 's/^history all .* held_blocks=\([0-9,]*,\)*\([0-9]*\) .*/\2/p' all)" \
		"$(truth held_blocks)"
	# Nothing is allocated between the peak and the exec.
	"$BIN/leakparse" --at peak -i perf.data >most 2>/dev/null
	assert_equal "at the peak" "$(sed -n 's/^# summary .* held_blocks=\([0-9]*\) .*/\1/p' most)" 90
}

@test "processes: a statically linked program, started" {
	record_command "cases_static --rounds 0"
	cp leaks leaks.startup
	local startup_allocations startup_held

	startup_allocations=$(summary allocations)
	startup_held=$(summary held_blocks)
	record_command "cases_static --rounds 40"
	assert_summary allocations $((startup_allocations + $(truth allocations)))
	assert_summary frees "$(truth frees)"
	assert_summary held_blocks $((startup_held + $(truth held_blocks)))
	assert_summary null_frees 40
	assert_equal "3072-byte leaks" "$(grep -c '^leak 3072 ' leaks)" 40
	assert_no_unexpected
}
