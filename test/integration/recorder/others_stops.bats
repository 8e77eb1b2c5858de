#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Targets that another process stops, too. leakrec continues only what it has stopped itself.

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

# Watches the target during some rounds of leakrec, which last 100 ms each.
stays_stopped() {
	local deadline_ms=$(($(date +%s%3N) + 300))

	while (($(date +%s%3N) < deadline_ms)); do
		is_stopped "$RECORDED_PID" || return
	done
}

# Ctrl-C ends the recording of a stopped target, which stays stopped.
end_while_stopped() {
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	stays_stopped || fail "the end of leakrec has let the target go on"
	kill -CONT "$RECORDED_PID"
	assert_runs
	finish_churn
}

@test "others' stops: a target that is stopped already stays stopped" {
	start_churn --threads 4
	go_target
	assert_runs
	kill -STOP "$RECORDED_PID"
	wait_until 60 is_stopped "$RECORDED_PID"
	attach --call-graph none
	stays_stopped || fail "leakrec has let the target go on"
	end_while_stopped
	parse
	assert_summary events 0
}

# leakrec has usually stopped the target itself when the other stop comes.

@test "others' stops: Ctrl-C while another process has stopped the target" {
	start_churn --threads 4
	attach --call-graph none
	go_target
	assert_runs
	kill -STOP "$RECORDED_PID"
	wait_until 60 is_stopped "$RECORDED_PID"
	end_while_stopped
}

@test "others' stops: leakrec is killed while another process has stopped the target" {
	start_churn --threads 4
	start_recorder -o killed.data --call-graph none
	wait_until 60 is_recording "$LEAKREC_PID"
	go_target
	assert_runs
	kill -STOP "$RECORDED_PID"
	wait_until 60 is_stopped "$RECORDED_PID"
	stays_stopped || fail "leakrec has let the target go on"
	kill -KILL "$LEAKREC_PID"
	wait "$LEAKREC_PID" 2>/dev/null || true
	wait_until 60 no_recorders
	stays_stopped || fail "leakrec's watchdog has let the target go on"
	kill -CONT "$RECORDED_PID"
	assert_runs
	assert_next_recorder_tidies
	finish_churn
}

# For a step gdb continues all threads, and stops each again with a SIGSTOP, which it suppresses. A stop by leakrec that
# arrives then may end the step early, and likewise a function that gdb calls.
@test "others' stops: a target that a debugger has stopped thread by thread runs on" {
	require_program gdb
	start_churn --threads 4
	attach --call-graph none
	go_target
	assert_runs
	gdb -p "$RECORDED_PID" -nx -batch -iex 'set debuginfod enabled off' -ex stepi >gdb.out 2>&1 ||
		fail "$(cat gdb.out)"
	grep -q "(process $RECORDED_PID) detached" gdb.out || fail "$(cat gdb.out)"
	assert_runs
	stall_recorder
	assert_runs
	finish_churn
	finish_leakrec
	parse
	assert_summary lost "$(end_line lost)"
	! was_in_time || assert_summary lost 0
}

# The recording's reader does not read, so leakrec has certainly stopped the target when the other stop comes.
@test "others' stops: another process stops the target while leakrec has stopped it" {
	hold_back dwarf
	kill -STOP "$RECORDED_PID"
	# If the limit of a stop has just been reached, it runs on until the signal comes.
	wait_until 60 is_stopped "$RECORDED_PID"
	let_reader_go
	stays_stopped || fail "leakrec has let the target go on"
	stays_stopped || fail "leakrec has let the target go on"
	kill -CONT "$RECORDED_PID"
	assert_runs
	finish_all
	assert_all_recorded
	assert_paused
}

@test "others' stops: another process stops and continues the target while leakrec has stopped it" {
	hold_back dwarf
	kill -STOP "$RECORDED_PID"
	kill -CONT "$RECORDED_PID"
	let_reader_go
	assert_runs
	finish_all
	assert_all_recorded
}

# The kernel discards such a signal when leakrec continues the target. Its process group is not orphaned: bats is the
# parent.
@test "others' stops: SIGTSTP comes while leakrec has stopped the target" {
	hold_back dwarf --own-group
	kill -TSTP "$RECORDED_PID"
	let_reader_go
	# If leakrec has just continued it, it may be stopped again before the signal gets to it.
	wait_until 60 stays_stopped
	stays_stopped || fail "leakrec has let the target go on"
	kill -CONT "$RECORDED_PID"
	assert_runs
	finish_all
	assert_all_recorded
	assert_paused
}

@test "others' stops: the target handles SIGTSTP, which comes while leakrec has stopped it" {
	hold_back dwarf --counts-tstp
	kill -TSTP "$RECORDED_PID"
	let_reader_go
	assert_runs
	finish_all
	assert_all_recorded
	assert_equal "SIGTSTPs" "$(truth tstp)" 1
}
