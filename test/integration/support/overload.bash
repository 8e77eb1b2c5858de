# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Readers of recordings that come too fast, and checks at the end. After churn.bash.

# --- Comparisons ---

# Prints the number of events that endless_churn must cause: one for each free, and EVENTS_PER_MALLOC (one, or two: entry
# and return) for each allocation.
expected_events() {
	[[ -n ${EVENTS_PER_MALLOC:-} ]] || count_events_per_malloc
	echo $((EVENTS_PER_MALLOC * $(truth malloc) + $(truth free)))
}

# was_in_time: true unless the machine was so busy that leakrec, or a test that held it up, took longer than a process may
# be stopped. Then events are lost.
was_in_time() {
	(($(truth long_stops) == 0)) && ! was_late
}

# Checks that every event is in the recording exactly once; the file "leaks" is leakparse's output. What is lost must be
# counted.
assert_all_recorded() {
	if ! was_in_time; then
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

# start_reader [COMMAND...]: starts leakparse, which reads from the FIFO "pipe". The command, if any, runs before that.
start_reader() {
	mkfifo pipe
	{
		"${@:-true}"
		exec "$BIN/leakparse" >leaks 2>leakparse.err
	} <pipe 3>&- &
	READER_PID=$!
	STARTED_PIDS+=("$READER_PID")
}

# A command for start_reader: waits for the line that let_reader_go sends.
wait_for_line() {
	read -r _ <go
}

let_reader_go() {
	echo >go
}

finish_reader() {
	wait "$READER_PID" || fail "leakparse: $(cat leakparse.err)"
}

# Ends the target, and waits for leakrec and for its reader.
finish_all() {
	finish_churn
	finish_leakrec
	finish_reader
}

# True if the last of the pipe's sixteen pages is in use. Before that, threads are stopped only for a moment.
pipe_is_full() {
	# shellcheck disable=SC2016 # of perl
	perl -e 'my $n = pack("i", 0); ioctl(STDIN, 0x541b, $n) or die; # FIONREAD
		exit(unpack("i", $n) <= 15 * 4096)' <pipe
}

# Attaches to four threads. The recording goes into a pipe that is not read before let_reader_go. Returns when the
# threads are stopped.
hold_back() {
	local stacks=(--call-graph "$1")

	# The records are so large that a pipe hardly ever ends between two of them.
	[[ $1 != raw ]] || stacks=(--call-graph dwarf --raw-stacks)
	mkfifo go
	start_reader wait_for_line
	start_churn --threads 4 --leak-every 1000 "${@:2}"
	attach -o - "${stacks[@]}" >pipe
	go_target
	wait_until 60 pipe_is_full
	wait_until 60 was_held
}

# Makes the recorder fall behind, by giving it no CPU for a while.
stall_recorder() {
	local before

	before=$(long_stops)
	kill -STOP "$LEAKREC_PID"
	wait_until 60 was_held "$before"
	kill -CONT "$LEAKREC_PID"
}
