#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As ending.bats, for recordings of many threads or of children.

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

@test "ending of many: perf events of many threads" {
	start_churn --threads 64
	check_ending --perf-events
}

@test "ending of many: children that have just been forked" {
	start_churn --threads 2 --children 8
	attach
	set_niceness -20
	go_target
	interrupt
	assert_let_go
	assert_whole
	finish_churn
}

# has_files N: leakrec has more open: events, one for each thread and CPU. The shell that starts leakrec has some, too,
# and would lose the signal.
has_files() {
	local files=("/proc/$LEAKREC_PID/fd"/*) comm=

	[[ -e /proc/$LEAKREC_PID/fd/2 ]] || return 0 # it has ended
	{ read -r comm <"/proc/$LEAKREC_PID/comm"; } 2>/dev/null || return 0
	((${#files[@]} > $1)) && [[ $comm == leakrec ]]
}

# Each signal comes while leakrec does something else: registers probes, opens the first events, and others.
@test "ending of many: where leakrec has to wait for the CPUs" {
	local busy=() nr

	start_churn --threads 32
	go_target
	for _ in {1..10}; do
		(while :; do :; done) 3>&- &
		busy+=("$!")
	done
	STARTED_PIDS+=("${busy[@]}")
	for nr in 9 20 1000; do
		# Only leakrec waits, not this shell.
		start_recorder --perf-events -o perf.data
		set_niceness -20
		wait_until 60 has_files "$nr"
		# Else it has been faster than this test.
		if ! grep -q '^leakrec: recording ' leakrec.err; then
			interrupt TERM
			((STATUS > 128)) || grep -qE 'by a signal before anything was recorded|^leakrec: recording ' leakrec.err ||
				fail "$(cat leakrec.err)"
		else
			kill -TERM "$LEAKREC_PID"
			wait "$LEAKREC_PID"
		fi
		set_niceness 0
	done
	# While it records, too. Reading perf's counts and writing the rest takes the more CPU time the more threads there are.
	start_recorder --perf-events -o perf.data
	set_niceness -20
	wait_until 60 is_recording "$LEAKREC_PID"
	wait_until 60 has_made $(($(progress) + 100000))
	interrupt TERM
	set_niceness 0
	kill_now "${busy[@]}"
	assert_let_go
	assert_whole
	finish_churn
}
