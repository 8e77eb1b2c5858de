#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Each process of a recording under load is killed at a random moment: the target goes on, no probe and no breakpoint
# stays, the file can be read up to where it was written, and whoever is left says so in one line. For the viewer, see
# test/integration/tools/top_ends.bats; for set-up and leak-end, killed.bats.

# shellcheck disable=SC2030,SC2031,SC2153,SC2154 # as in ending.bats
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

# At a random moment within half a second of recording.
some_time() {
	nap "0.$((RANDOM % 5))$((RANDOM % 10))"
}

# said TEXT: one line of leakrec says so.
said() {
	assert_equal "lines with '$1'" "$(grep -c "$1" leakrec.err)" 1 || fail "$(cat leakrec.err)"
}

@test "kill each: leakrec" {
	start_churn --threads 2
	go_target
	for _ in {1..3}; do
		attach
		some_time
		kill_now "$LEAKREC_PID"
		assert_runs
		wait_until 60 is_unprobed
		assert_readable perf.data
	done
	# Its events are removed by the next recorder.
	attach
	interrupt
	assert_let_go
	assert_equal "abandoned" "$(our_probes | grep -c "^leakrec${LEAKREC_PID}_")" 0
	finish_churn
}

@test "kill each: the watchdog" {
	start_churn --threads 2
	go_target
	attach
	some_time
	kill_now "$(pgrep -P "$LEAKREC_PID" -x leak-watchdog)"
	wait_until 60 contains leakrec.err "the watchdog was killed"
	assert_runs
	interrupt
	assert_let_go
	said "the watchdog was killed"
	assert_whole
	finish_churn
}

@test "kill each: the process that reads leakrec's output" {
	start_churn --threads 2
	go_target
	mkfifo stream
	"$BIN/leakparse" <stream >leaks 2>leakparse.err 3>&- &
	PARSER_PID=$!
	: >leakrec.err
	"$BIN/leakrec" -p "$RECORDED_PID" -o - >stream 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID" "$PARSER_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
	some_time
	kill_now "$PARSER_PID"
	wait_until 60 has_ended "$LEAKREC_PID"
	wait "$LEAKREC_PID" && fail "it has not noticed"
	assert_let_go
	said "Broken pipe"
	finish_churn
}

# Begins to record, and kills leak-analyst as soon as there is one.
record_without_analyst() {
	: >leakrec.err
	"$BIN/leakrec" -p "$RECORDED_PID" -o perf.data 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	# On a busy machine it may be gone before it is seen.
	# shellcheck disable=SC2016 # expanded by perl
	perl -e 'my ($recorder) = @ARGV;
		sub is_recording { open my $log, "<", "leakrec.err" or return; grep { /^leakrec: recording / } <$log> }
		while (kill(0, $recorder) && !is_recording()) {
			open my $children, "<", "/proc/$recorder/task/$recorder/children" or exit;
			for (split " ", readline($children) // "") {
				open my $comm, "<", "/proc/$_/comm" or next;
				next if (readline($comm) // "") ne "leak-analyst\n";
				kill "KILL", $_;
				exit;
			}
		}' "$LEAKREC_PID"
	# The file that it was at is not probed. If that is the allocator's, there is nothing to record.
	wait_until 60 is_recording "$LEAKREC_PID"
	has_ended "$LEAKREC_PID" || interrupt
	wait "$LEAKREC_PID" 2>/dev/null || true
	assert_let_go
}

@test "kill each: leak-analyst" {
	start_churn --threads 2
	go_target
	# Or it has answered already: then nobody has to say anything.
	for _ in {1..20}; do
		record_without_analyst
		! grep -q "it is not probed" leakrec.err || break
		assert_whole
	done
	said "it is not probed"
	finish_churn
}
