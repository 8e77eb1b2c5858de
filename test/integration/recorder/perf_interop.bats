#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# perf reads leakrec's recordings. For leakparse and perf record's see perf_record.bats.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

DAEMON="leaky_daemon --requests 60 --interval-us 100"

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

# perf_reads: perf script prints every event that leakparse counted, and perf report --stats counts as many.
perf_reads() {
	local printed

	perf script -i perf.data -F comm,pid,time,event,trace >script 2>script.err
	printed=$(LC_ALL=C grep -cE '(leakrec[0-9]+|leakprobe)_[^ ]*:' script)
	assert_equal "events that perf script prints" "$printed" "$(summary events)"
	perf report --stats -i perf.data >stats 2>stats.err
	assert_equal "samples that perf report counts" \
		"$(awk '$1 == "SAMPLE" && $2 == "events:" { print $3; exit }' stats)" \
		"$(($(summary events) + $(events task_newtask recording memory)))"
	# perf must not complain that it cannot show a field of some event.
	grep -v 'not valid for .* events. Ignoring' script.err stats.err >complaints || true
	assert_equal "perf's complaints" "$(cat complaints)" ""
}

@test "perf: reads a file of whole fp stacks" {
	record_command "$DAEMON" --call-graph fp
	perf_reads
	perf script -i perf.data >stacks 2>stacks.err
	grep -qE '[0-9a-f]+ query_font\+0x[0-9a-f]+ \(.*/leaky_daemon\)$' stacks
}

@test "perf: reads and unwinds a file of stack dumps" {
	record_command "$DAEMON" --call-graph dwarf,4096 --raw-stacks
	perf_reads
	perf script -i perf.data >stacks 2>stacks.err
	grep -q ' query_font+0x' stacks
	grep -q ' handle_request+0x' stacks
}

@test "perf: reads a file of stacks unwound while recording" {
	record_command "$DAEMON" --call-graph dwarf,4096
	perf_reads
	perf script -i perf.data >stacks 2>stacks.err
	grep -qE '[0-9a-f]+ query_font\+0x[0-9a-f]+ \(.*/leaky_daemon\)$' stacks
	grep -qE '[0-9a-f]+ _start\+0x[0-9a-f]+ \(.*/leaky_daemon\)$' stacks
}

@test "perf: reads a file without stacks" {
	record_command "$DAEMON" --call-graph none
	perf_reads
}

@test "perf: reads a file of an attached process" {
	record_attached "$DAEMON"
	perf_reads
	# perf must know the mappings that existed before recording.
	perf script -i perf.data >stacks 2>stacks.err
	grep -qE ' query_font\+0x[0-9a-f]+ \(.*/leaky_daemon\)$' stacks
}

@test "perf: reads a file of threads and forks" {
	record_command "threads_cross_free --blocks 500"
	perf_reads
	record_command fork_tree
	perf_reads
}

@test "perf: reads the pipe format" {
	"$BIN/leakrec" -o - -p "$BASHPID" -d 0.2 >pipe.data 2>leakrec.err
	perf script -i - <pipe.data >/dev/null
	record_command "$DAEMON"
	cp leaks leaks.file
	start_target leaky_daemon --requests 60 --interval-us 100
	: >leakrec.err
	"$BIN/leakrec" -p "$RECORDED_PID" -o - 2>leakrec.err 3>&- >pipe.data &
	LEAKREC_PID=$!
	wait_until 60 is_recording "$LEAKREC_PID"
	go_target
	finish_target
	finish_leakrec
	perf script -i - -F event <pipe.data 2>/dev/null | grep -c 'leakrec.*:malloc_call: ' >malloc.events
	assert_equal "malloc events" "$(cat malloc.events)" "$(truth malloc)"
	"$BIN/leakparse" --order time <pipe.data >leaks
	assert_truth
}

@test "perf: perf buildid-list names the recorded files" {
	record_command "$DAEMON"
	perf buildid-list -i perf.data >ids
	grep -qE '^[0-9a-f]{40} .*/leaky_daemon$' ids
	grep -qE '^[0-9a-f]{40} .*/libc\.so\.6$' ids
}
