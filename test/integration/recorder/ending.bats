#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Whatever leakrec is doing, it ends within two seconds after SIGINT. The probes are removed soon after, the target runs
# on, and the recording is whole.

# shellcheck disable=SC2030,SC2031,SC2153,SC2154 # as in bad_input.bats; STATUS is interrupt()'s
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

# --- While recording ---

@test "ending: links, with and without dumps" {
	start_churn --threads 4
	check_ending
	rm target.in target.out progress
	start_churn --threads 4
	check_ending --raw-stacks
}

# Often, because a hit at the very end may have no sample.
@test "ending: perf events" {
	for _ in {1..8}; do
		start_churn --threads 4
		check_ending --perf-events
		assert_equal "lost" "$(end_line lost)" 0
		rm target.in target.out progress
	done
}

@test "ending: busy CPUs and a busy disk" {
	local busy=()

	# A process for each CPU, and one that writes.
	for _ in $(seq "$(nproc)"); do
		(while :; do :; done) 3>&- &
		busy+=("$!")
	done
	(while :; do dd if=/dev/zero of=filler bs=1M count=64 conv=fsync status=none; done) 3>&- &
	busy+=("$!")
	STARTED_PIDS+=("${busy[@]}")
	start_churn --threads 2
	check_ending --perf-events
	kill_now "${busy[@]}"
}

@test "ending: a command" {
	mkfifo out
	: >leakrec.err
	"$BIN/leakrec" -o perf.data -- "$TARGETS/endless_churn" --progress "$PWD/progress" --threads 2 \
		>out 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	exec {TARGET_OUT}<>out
	wait_until 60 is_recording "$LEAKREC_PID"
	RECORDED_PID=$(sed -nE 's/^leakrec: recording .*process ([0-9]+).*/\1/p' leakrec.err | head -n 1)
	STARTED_PIDS+=("$RECORDED_PID")
	wait_until 60 has_made 1000
	interrupt
	assert_equal "status" "$STATUS" 0
	assert_let_go
	kill_now "$RECORDED_PID"
	exec {TARGET_OUT}<&-
}

# --- Readers ---

@test "ending: a reader that takes nothing" {
	mkfifo unread
	start_churn --threads 2
	exec {unread}<>unread # not before: a reader that could read it is not recorded
	attach -o - --perf-events >unread
	go_target
	interrupt
	assert_let_go
	exec {unread}<&-
	finish_churn
}

@test "ending: the second SIGINT drops what a slow reader has not taken" {
	mkfifo slow
	perl -e 'while (sysread STDIN, my $bytes, 4096) { select undef, undef, undef, 0.2 }' <slow 3>&- &
	STARTED_PIDS+=("$!")
	start_churn --threads 2
	attach -o - >slow
	go_target
	# More than the pipe holds.
	wait_until 60 has_made 100000
	kill -INT "$LEAKREC_PID"
	wait_until 60 contains leakrec.err 'ending; what is recorded waits for the reader'
	# If the reader gets no CPU for a moment, leakrec drops it by itself, and ends.
	has_ended "$LEAKREC_PID" || interrupt
	assert_let_go
	kill_now "${STARTED_PIDS[0]}"
	finish_churn
}

# --- While setting up ---

@test "ending: during set-up" {
	start_churn --threads 2
	go_target
	start_recorder --perf-events -o perf.data
	wait_until 60 has_events
	interrupt TERM
	assert_let_go
	if ! grep -q '^leakrec: recording ' leakrec.err; then
		grep -q 'ended by a signal before anything was recorded' leakrec.err || fail "$(cat leakrec.err)"
		assert_equal "status" "$STATUS" 1
	fi
	finish_churn
}

# --- leak-end ---

# leakrec has ended, but leak-end has not, because another process uses a probe of this leakrec.
hold_up_removal() {
	start_churn --threads 2
	attach --perf-events
	go_target
	perf record -q -e "$(our_probes | grep -m 1 "^leakrec${LEAKREC_PID}_" | tr / :)" -o other.data -a 3>&- \
		2>other.err &
	OTHER_PID=$!
	STARTED_PIDS+=("$OTHER_PID")
	wait_until 60 test -s other.data
	interrupt
	find_leak_end || fail "leak-end has not waited: $(cat leakrec.err)"
}

# Its process id is in LEAK_END. It is leakrec's child only until leakrec ends.
find_leak_end() {
	for LEAK_END in $(pgrep -x leak-end); do
		! grep -qzx "PWD=$PWD" "/proc/$LEAK_END/environ" || return 0
	done
	return 1
}

# The next run of a tool removes what leak-end could not.
no_events_now() {
	"$BIN/leakprobe" list >/dev/null && no_events
}

@test "ending: leak-end outlives leakrec, and a signal does not end it" {
	require_program perf
	hold_up_removal
	assert_equal "command line" "$(tr -d '\0' <"/proc/$LEAK_END/cmdline")" leak-end
	assert_equal "privileges" "$(awk '$1 == "CapPrm:" { print $2 }' "/proc/$LEAK_END/status")" 0000000000000000
	kill -TERM "$LEAK_END"
	kill_now "$OTHER_PID"
	wait_until 60 no_events_now
	assert_let_go
	assert_whole
	finish_churn
}

@test "ending: leak-end is killed" {
	require_program perf
	hold_up_removal
	kill_now "$LEAK_END" "$OTHER_PID"
	wait_until 60 no_events_now
	assert_runs
	assert_let_go
	finish_churn
}

@test "ending: a full disk" {
	mkdir small
	mount -t tmpfs -o size=1m none small
	start_churn --threads 2
	attach --perf-events -o small/perf.data
	go_target
	interrupt
	assert_let_go
	umount small
	finish_churn
}
