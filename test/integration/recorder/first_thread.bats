#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A target whose first thread ends before the others: the kernel then does not know the links' process any more, and
# removes their breakpoints when another tracer removes its own.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
	require_programs
}

teardown() {
	local status=0

	common_teardown || status=1
	[[ -z ${STOPS-} ]] || rmdir "$STOPS" || status=1
	return $status
}

end_first_thread() {
	go_target
	wait_until 60 is_zombie "$RECORDED_PID"
}

# Another recorder probes the same libc in another process.
other_comes_and_goes() {
	"$BIN/leakrec" --call-graph none -o other.data -- true 2>other.err || fail "$(cat other.err)"
}

# Before Linux 6.16, leakrec cannot stop the target in time, and says "0 or more events lost".
assert_no_doubt() {
	local major minor

	IFS=.- read -r major minor _ </proc/sys/kernel/osrelease
	((major == 6 && minor < 16)) || contains leakrec.err ', 0 events lost' || fail "$(cat leakrec.err)"
}

# The first round of calls may already be going on when the other recorder ends, but not the second.
work_and_check() {
	go_target
	other_comes_and_goes
	go_target
	finish_target
	finish_leakrec
	parse
	assert_truth
	assert_events
	assert_no_unexpected
	assert_no_doubt
}

# Has the kernel note who sends SIGSTOP to whom.
watch_stops() {
	STOPS=$TRACEFS/instances/leaktools-test-$$
	mkdir "$STOPS"
	echo 'sig == 19' >"$STOPS/events/signal/signal_generate/filter"
	echo 1 >"$STOPS/events/signal/signal_generate/enable"
}

# What a program does in the first thread, the thread has done. Who is stopped by mistake may stay stopped.
assert_no_other_stopped() {
	grep "first_ends-$RECORDED_PID " "$STOPS/trace" >stops || true
	run ! grep -v ' comm=first_ends ' stops
}

@test "first thread: it ends during the recording" {
	start_target first_ends
	watch_stops
	attach --call-graph none
	end_first_thread
	work_and_check
	assert_no_other_stopped
}

@test "first thread: it ends during the recording, without sessions" {
	require_way multi
	start_target first_ends
	attach --call-graph none --record-by multi
	end_first_thread
	work_and_check
}

# Programs on perf events: a stop at each thread would slow down a program whose threads are short.
@test "first thread: many short ones beside it do not stop the process each" {
	require_way single
	# By its name alone, the stops would also be those of other tests.
	cp "$TARGETS/thread_exits" "exits$$"
	TARGETS=$PWD start_target "exits$$" --threads 120
	watch_stops
	attach --call-graph none --record-by single
	go_target
	finish_target
	finish_leakrec
	parse
	assert_summary allocations "$(truth allocations)"
	contains leakrec.err ', 0 events lost' || fail "$(cat leakrec.err)"
	# Full buffers stop it, too: on a busy machine more often than its threads, which do 32 times in half a minute.
	nr=$(grep -c " comm=exits$$ " "$STOPS/trace" || true)
	pauses=$(sed -n 's/.*, paused \([0-9]*\) time.*/\1/p' leakrec.err)
	((nr - ${pauses:-0} <= 64)) || fail "$nr stops, ${pauses:-0} of them for full buffers"
}

# start_waiting PLACE [OPTION...]: starts leakrec, which waits at the place that libwaits.so knows.
start_waiting() {
	WAITS_AT=$1 LD_PRELOAD=$TARGETS/lib/libwaits.so "$BIN/leakrec" -p "$RECORDED_PID" --call-graph none "${@:2}" \
		2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 test -e waiting
}

go_on() {
	rm waiting
	wait_until 60 is_recording "$LEAKREC_PID"
}

@test "first thread: it ends just before its process is linked" {
	start_target first_ends
	start_waiting link
	end_first_thread
	go_on
	work_and_check
}

@test "first thread: it ends while perf events are opened" {
	start_target first_ends
	start_waiting open --perf-events
	end_first_thread
	go_on
	work_and_check
}

@test "first thread: it has ended before leakrec attaches" {
	start_target first_ends
	end_first_thread
	attach --call-graph none
	work_and_check
}

@test "first thread: the same with perf events" {
	start_target first_ends
	end_first_thread
	attach --call-graph none --perf-events
	work_and_check
}

@test "first thread: it has ended, and leakprobe and leakscan look at the process" {
	start_target first_ends
	end_first_thread
	"$BIN/leakprobe" add --dry-run --pid "$RECORDED_PID" >probes
	grep -q malloc probes
	"$BIN/leakscan" -p "$RECORDED_PID" >scan
}

@test "first thread: another one execs just before the recording begins" {
	start_target exec_by_thread
	start_waiting begin
	go_target
	wait_until 60 test -e again
	go_on
	go_target
	finish_target
	finish_leakrec
	parse
	assert_truth
	assert_events
	contains leakrec.err ', 0 events lost' || fail "$(cat leakrec.err)"
}
