# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Readers of recordings that come too fast, and what must hold in the end. After churn.bash.

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
	if (($(truth long_stops) > 0)) || grep -q "watchdog did not run" leakrec.err; then
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

# A recorder that keeps up otherwise is behind for certain when it gets no CPU for a while.
stall_recorder() {
	local before

	before=$(long_stops)
	kill -STOP "$LEAKREC_PID"
	wait_until 60 was_held "$before"
	kill -CONT "$LEAKREC_PID"
}
