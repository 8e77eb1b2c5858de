#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Events that come faster than they can be written: the target is held back and nothing is lost, unless
# that takes longer than a process may be held. Whatever becomes of leakrec, its reader and its disk the
# target goes on, and what somebody else has stopped stays stopped.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load helpers
load churn

setup() {
	common_setup
	own_libc
}

teardown() {
	common_teardown
}

# --- Comparisons ---

# What endless_churn must have caused: an event for each free, and for each allocation one by
# programs, two (entry and return) by perf events.
EVENTS_PER_MALLOC=1
expected_events() {
	echo $((EVENTS_PER_MALLOC * $(truth malloc) + $(truth free)))
}

# Everything that happened is in the recording, each thing once; "leaks" is leakparse's. What was lost
# because a busy machine took longer than a process may be held is counted.
assert_all_recorded() {
	if (($(truth long_stops) > 0)); then
		assert_equal "recorded and lost" $(($(end_line events) + $(end_line lost))) "$(expected_events)"
		assert_equal "lost, by leakparse" "$(summary lost)" "$(end_line lost)"
		return
	fi
	assert_truth
	assert_no_unexpected
	assert_equal "events recorded" "$(end_line events)" "$(expected_events)"
	assert_equal "events read" "$(summary events)" "$(expected_events)"
	assert_equal "lost" "$(end_line lost)" 0
}

assert_paused() {
	grep -qE ', paused [0-9]+ times? for [0-9.]+ s' leakrec.err || fail "$(tail -n 1 leakrec.err)"
}

# --- Readers ---

# start_reader [COMMAND...]: leakparse reads from the FIFO "pipe"; the command, if any, runs before it
# reads.
start_reader() {
	mkfifo pipe
	{
		"${@:-true}"
		exec "$BIN/leakparse" >leaks 2>leakparse.err
	} <pipe 3>&- &
	READER_PID=$!
	STARTED_PIDS+=("$READER_PID")
}

# For start_reader: waits for a line, which let_reader_go sends.
wait_for_line() {
	read -r _ <go
}

let_reader_go() {
	echo >go
}

finish_reader() {
	wait "$READER_PID" || fail "leakparse: $(cat leakparse.err)"
}

# The last of the pipe's sixteen pages has been begun. Before, threads may be held back for a moment only.
pipe_is_full() {
	# shellcheck disable=SC2016 # of perl
	perl -e 'my $n = pack("i", 0); ioctl(STDIN, 0x541b, $n) or die; # FIONREAD
		exit(unpack("i", $n) <= 15 * 4096)' <pipe
}

# Attaches to four threads, whose recording goes into a pipe that nobody reads before let_reader_go, and
# returns when they are held back.
hold_back() {
	local stacks=(--call-graph "$1")

	# Records so large that a pipe hardly ever ends between two of them.
	[[ $1 != raw ]] || stacks=(--call-graph dwarf --raw-stacks)
	mkfifo go
	start_reader wait_for_line
	start_churn --threads 4 --leak-every 1000 "${@:2}"
	attach -o - "${stacks[@]}" >pipe
	go_target
	wait_until 60 pipe_is_full
	wait_until 60 was_held
}

# --- Load ---

# A recorder that keeps up otherwise is behind for certain when it gets no CPU for a while.
stall_recorder() {
	local before

	before=$(long_stops)
	kill -STOP "$LEAKREC_PID"
	wait_until 60 was_held "$before"
	kill -CONT "$LEAKREC_PID"
}

# check_load PAIRS OPTION...: four threads, straight into leakparse.
check_load() {
	start_reader
	start_churn --threads 4 --leak-every 1000
	attach -o - "${@:2}" >pipe
	go_target
	wait_until 60 has_made "$1"
	stall_recorder
	assert_advances
	finish_churn
	finish_leakrec
	finish_reader
	assert_all_recorded
	assert_paused
}

@test "overload: four threads, fp" {
	check_load 300000 --call-graph fp
}

@test "overload: four threads, dwarf" {
	check_load 100000 --call-graph dwarf
}

@test "overload: four threads, stack dumps" {
	check_load 100000 --call-graph dwarf --raw-stacks
}

# The smaller the rings, the more often the threads are held back, and the less is in reserve.
@test "overload: four threads, dwarf, small rings" {
	check_load 100000 -m 64 --call-graph dwarf
}

@test "overload: four threads, dwarf, perf events" {
	EVENTS_PER_MALLOC=2
	check_load 100000 -m 64 --call-graph dwarf --perf-events
}

@test "overload: four threads, no stacks" {
	check_load 500000 --call-graph none
}

@test "overload: four threads, small rings" {
	check_load 300000 -m 8 --call-graph none
}

@test "overload: four threads, into a file, each function's events" {
	require_program perf
	start_churn --threads 4 --leak-every 1000
	attach --call-graph fp
	go_target
	wait_until 60 has_made 100000
	finish_churn
	finish_leakrec
	parse
	assert_all_recorded
	assert_events
}

@test "overload: four threads, started" {
	TARGETS=$BUILD_DIR/test/targets
	start_reader
	"$BIN/leakrec" -m 512 -o - --call-graph dwarf -- \
		"$TARGETS/big_churn" --threads 4 --pairs 10000 --leak-every 1000 >pipe 2>leakrec.err
	finish_reader
	grep '^truth ' leakrec.err >truth
	assert_truth
	assert_no_unexpected
	assert_equal "events recorded" "$(end_line events)" \
		$(($(truth malloc) + 2 * $(truth calloc) + $(truth free) +
			$(summary thread_exit_frees) + $(summary null_frees)))
}

@test "overload: more threads than CPUs by far" {
	start_reader
	start_churn --threads 200 --pairs 300
	attach -o - --call-graph dwarf,2048 >pipe
	go_target
	finish_target
	finish_leakrec
	finish_reader
	assert_all_recorded
}

@test "overload: a thousand threads" {
	local threads=1000 began_ms ended_ms

	# Descriptors are threads x CPUs x events.
	if ! (ulimit -n 100000) 2>/dev/null; then
		threads=500
		echo "# with $threads threads only: the hard limit is $(ulimit -Hn) open files" >&3
	fi
	start_reader
	start_churn --threads $threads --pairs 100 --leak-every 10
	began_ms=$(date +%s%3N)
	attach -o - --call-graph fp >pipe
	ended_ms=$(date +%s%3N)
	echo "# attached to $threads threads in $((ended_ms - began_ms)) ms" >&3
	go_target
	finish_target
	finish_leakrec
	finish_reader
	assert_all_recorded
}

# --- Children ---

# All processes of the target's program are stopped, but for those that have ended.
orphans_stopped() {
	local pid pids

	pids=$(pgrep -f -- "--progress $PWD/progress") || return
	(($(wc -w <<<"$pids") == 4)) || return
	for pid in $pids; do
		is_stopped "$pid" || return
	done
}

@test "overload: held-back children go on when leakrec is killed" {
	hold_back raw --children 3
	kill_recorder
	let_reader_go
	wait "$READER_PID" || true
	grep -q '^# summary .*truncated=1' leaks || fail "$(head -n 3 leaks leakparse.err)"
	finish_churn
}

# --- Slow readers, full disks ---

# check_late_reader CALL-GRAPH
check_late_reader() {
	hold_back "$1"
	let_reader_go
	assert_advances
	finish_churn
	finish_leakrec
	finish_reader
	assert_all_recorded
	assert_paused
}

@test "overload: a reader that begins late" {
	check_late_reader none
}

@test "overload: a reader that begins late, dwarf" {
	check_late_reader dwarf
}

@test "overload: a reader that is stopped and goes on" {
	start_reader
	start_churn --threads 4 --leak-every 1000
	attach -o - --call-graph dwarf >pipe
	go_target
	local before

	for _ in 1 2 3; do
		assert_advances
		before=$(long_stops)
		kill -STOP "$READER_PID"
		wait_until 60 was_held "$before"
		kill -CONT "$READER_PID"
	done
	assert_advances
	finish_churn
	finish_leakrec
	finish_reader
	assert_all_recorded
	assert_paused
}

@test "overload: Ctrl-C while the reader is behind; it gets everything" {
	hold_back dwarf
	let_reader_go
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	finish_reader
	assert_runs
	finish_churn
	assert_summary lost "$(end_line lost)"
	assert_summary truncated 0
	assert_equal "events read" "$(summary events)" "$(end_line events)"
}

@test "overload: Ctrl-C twice while the reader waits" {
	hold_back raw
	kill -INT "$LEAKREC_PID"
	wait_until 60 grep -q 'Ctrl-C drops it' leakrec.err
	kill -INT "$LEAKREC_PID"
	wait_until 60 has_ended "$LEAKREC_PID"
	wait "$LEAKREC_PID" && fail "leakrec ended with status 0"
	assert_equal "words about it" "$(grep -c 'what its reader has not taken is dropped' leakrec.err)" 1
	assert_runs
	assert_equal "probes left" "$(probes_left)" ""
	let_reader_go
	wait "$READER_PID" || true
	grep -q '^# summary .*truncated=1' leaks
	finish_churn
}

@test "overload: a reader that goes away" {
	hold_back dwarf
	kill -KILL "$READER_PID"
	wait "$LEAKREC_PID" && fail "leakrec ended with status 0"
	assert_equal "complaints" "$(grep -c 'its reader is gone' leakrec.err)" 1
	assert_runs
	assert_equal "probes left" "$(probes_left)" ""
	finish_churn
}

@test "overload: a full disk" {
	mkdir mnt
	cat >full <<-'END'
		mount -t tmpfs -o size=8m none mnt
		"$1/leakrec" -p "$2" -m 512 --call-graph dwarf -o mnt/perf.data 2>leakrec.err 3>&-
		echo $? >status
		cp mnt/perf.data perf.data
	END
	start_churn --threads 4 --leak-every 10
	go_target
	assert_runs
	unshare -m --propagation private bash full "$BIN" "$RECORDED_PID"
	assert_equal "leakrec's status" "$(cat status)" 1
	assert_equal "lines about it" "$(grep -ci 'no space left' leakrec.err)" 1
	assert_runs
	finish_churn
	"$BIN/leakparse" -i perf.data >leaks 2>leakparse.err || true
	grep -q '^leak 3072 ' leaks || fail "$(cat leakparse.err)"
	assert_equal "probes left" "$(probes_left)" ""
}

# --- Kills ---

@test "overload: leakrec is killed, and the target runs on" {
	local mode

	start_churn --threads 4 --leak-every 100
	go_target
	for mode in fp dwarf none fp dwarf none dwarf; do
		kill_once $((RANDOM % 600)) --call-graph $mode
	done
	assert_next_recorder_tidies
	finish_churn
}

@test "overload: leakrec is killed while the target is held back" {
	local mode

	start_churn --threads 4
	go_target
	for mode in fp dwarf none; do
		kill_held_once --call-graph $mode
	done
	assert_next_recorder_tidies
	finish_churn
}

# --- Somebody else's stops ---

# Watches for the time of some rounds of leakrec's, which last 100 ms.
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

@test "overload: a target that is stopped already stays so" {
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

# Most of the time leakrec holds the target back itself when the other stop comes.

@test "overload: Ctrl-C while somebody else has stopped the target" {
	start_churn --threads 4
	attach --call-graph none
	go_target
	assert_runs
	kill -STOP "$RECORDED_PID"
	wait_until 60 is_stopped "$RECORDED_PID"
	end_while_stopped
}

@test "overload: leakrec is killed while somebody else has stopped the target" {
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
	stays_stopped || fail "leakrec's guard has let the target go on"
	kill -CONT "$RECORDED_PID"
	assert_runs
	assert_next_recorder_tidies
	finish_churn
}

# For a step gdb lets all threads go on, and stops them again with a SIGSTOP each, which it takes back. A stop
# of leakrec's that is on its way then may end the step early, as it would end a function that gdb calls.
@test "overload: a target that a debugger has stopped by thread is let go on" {
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
	assert_summary lost 0
}

# --- Without the gate ---

@test "overload: --on-overload drop loses, and counts, and never stops" {
	start_reader
	start_churn --threads 4
	attach -o - -m 16 --call-graph dwarf --on-overload drop >pipe
	go_target
	wait_until 60 has_made 200000
	finish_churn
	finish_leakrec
	finish_reader
	(($(end_line lost) > 0))
	assert_equal "recorded and lost" $(($(end_line events) + $(end_line lost))) "$(expected_events)"
	assert_equal "lost, by leakparse" "$(summary lost)" "$(end_line lost)"
	assert_equal "events, by leakparse" "$(summary events)" "$(end_line events)"
	assert_equal "SIGCONTs" "$(truth continued)" 0
	! grep paused leakrec.err || fail "the target was held back"
}

# bpf(2) is denied by taking the capabilities for it; for perf, CAP_PERFMON is enough.
@test "overload: without BPF leakrec says so, and counts what it loses" {
	mkdir bin
	cat >bin/leakrec <<-END
		#!/bin/sh
		exec setpriv --bounding-set -bpf,-sys_admin --inh-caps -bpf,-sys_admin '$BIN/leakrec' "\$@"
	END
	chmod +x bin/leakrec
	ln -s "$BIN/leakparse" bin/
	BIN=$PWD/bin
	EVENTS_PER_MALLOC=2
	start_reader
	start_churn --threads 4
	attach -o - --call-graph dwarf >pipe
	grep -q 'no BPF here' leakrec.err || fail "$(cat leakrec.err)"
	go_target
	wait_until 60 has_made 100000
	finish_churn
	finish_leakrec
	finish_reader
	assert_equal "recorded and lost" $(($(end_line events) + $(end_line lost))) "$(expected_events)"
	assert_equal "lost, by leakparse" "$(summary lost)" "$(end_line lost)"
	assert_equal "events, by leakparse" "$(summary events)" "$(end_line events)"
	assert_paused
}

# Nobody reads what is recorded when the other stop comes: leakrec holds the target back for certain.
@test "overload: somebody else stops the target while it is held back" {
	hold_back dwarf
	kill -STOP "$RECORDED_PID"
	let_reader_go
	stays_stopped || fail "leakrec has let the target go on"
	stays_stopped || fail "leakrec has let the target go on"
	kill -CONT "$RECORDED_PID"
	assert_runs
	finish_churn
	finish_leakrec
	finish_reader
	assert_all_recorded
	assert_paused
}

@test "overload: somebody else stops the target and lets it go on while it is held back" {
	hold_back dwarf
	kill -STOP "$RECORDED_PID"
	kill -CONT "$RECORDED_PID"
	let_reader_go
	assert_runs
	finish_churn
	finish_leakrec
	finish_reader
	assert_all_recorded
}

# Each process that makes more than there is room for is held back.
@test "overload: children that allocate fast" {
	EVENTS_PER_MALLOC=1
	hold_back dwarf --children 3
	let_reader_go
	assert_advances
	wait_until 60 has_made 100000
	finish_churn
	finish_leakrec
	finish_reader
	assert_truth
	assert_no_unexpected
	assert_equal "lost" "$(end_line lost)" 0
	assert_paused
}

@test "overload: children that allocate fast, small rings" {
	start_reader
	start_churn --threads 2 --children 4 --leak-every 1000
	attach -o - -m 64 --call-graph dwarf >pipe
	go_target
	wait_until 60 has_made 60000
	finish_churn
	finish_leakrec
	finish_reader
	assert_truth
	assert_no_unexpected
	assert_equal "lost" "$(end_line lost)" 0
	assert_paused
}
