#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A process with many threads: leakrec's descriptors do not grow with them, and nothing is missed for that.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/fork_follow

setup() {
	common_setup
	require_programs
}

teardown() {
	common_teardown
}

# record_storm WAY [OPTION...]: children of a process with many threads, forked at the same moment.
record_storm() {
	require_way "$1"
	record_attached "fork_storm --idle 1000 --threads 4 --forks 12" --record-by "$@"
	assert_storm
	assert_no_probes_left
}

@test "many threads: forked children" {
	record_storm session --call-graph none
}

@test "many threads: forked children, without sessions" {
	record_storm multi --call-graph none
}

@test "many threads: forked children, programs on perf events" {
	record_storm single --call-graph none
}

# The children's events are inherited by what they create. The kernel must not swap them.
@test "many threads: threads of forked children come and go" {
	record_attached "fork_threads --idle 100" --call-graph none
	assert_storm 4001 4002 4003 4004 4005 4006
}

@test "many threads: forked children, dwarf" {
	record_storm multi --call-graph dwarf,1024
}

# After the other recorder has ended, the breakpoints are still there because two of the other threads have events. Each
# of them ends, too.
@test "many threads: the first one ends, then others" {
	start_target first_ends --idle 200 --rounds 3
	attach --call-graph none
	go_target
	wait_until 60 is_zombie "$RECORDED_PID"
	for _ in 1 2; do
		go_target
		"$BIN/leakrec" --call-graph none -o other.data -- true 2>other.err || fail "$(cat other.err)"
	done
	go_target
	finish_target
	finish_leakrec
	parse
	assert_truth
	assert_events
	assert_no_unexpected
}

# record_idle NR [OPTION...]: records a process with so many threads more than one. Stores leakrec's number of descriptors
# in NR_DESCRIPTORS.
record_idle() {
	rm -f target.in target.out
	start_target fork_storm --idle "$1" --threads 1 --forks 1
	attach --call-graph none "${@:2}"
	NR_DESCRIPTORS=$(find "/proc/$LEAKREC_PID/fd" -mindepth 1 | wc -l)
	go_target
	finish_target
	finish_leakrec
}

assert_descriptors() {
	local for_two

	require_way "$1"
	record_idle 1 --record-by "$1"
	for_two=$NR_DESCRIPTORS
	record_idle 300 --record-by "$1"
	((NR_DESCRIPTORS <= for_two)) || fail "$NR_DESCRIPTORS descriptors for 301 threads, $for_two for two"
}

@test "many threads: descriptors" {
	assert_descriptors session
}

@test "many threads: descriptors, without sessions" {
	assert_descriptors multi
}

@test "many threads: descriptors, programs on perf events" {
	assert_descriptors single
}

# Each child has some 20 descriptors of its own. They go when it has ended, in sweeps after some 2,000. Another process
# keeps the recording going meanwhile.
@test "many threads: descriptors of children that have ended" {
	local first_pid first_recorded first_in first_out nr

	start_target fork_storm --threads 1 --forks 1
	first_pid=$TARGET_PID first_recorded=$RECORDED_PID
	first_in=$TARGET_IN first_out=$TARGET_OUT
	rm target.in target.out
	start_target fork_storm --idle 100 --threads 1 --forks 300
	attach --call-graph none -p "$first_recorded,$RECORDED_PID"
	go_target
	finish_target
	nr=$(find "/proc/$LEAKREC_PID/fd" -mindepth 1 | wc -l)
	((nr < 3500)) || fail "$nr descriptors after $(truth workers) children have ended"
	echo >&"$first_in"
	cat <&"$first_out" >/dev/null
	wait "$first_pid"
	exec {first_in}>&- {first_out}<&-
	finish_leakrec
}

has_run_more_than() {
	(($(wc -l <runs) > $1))
}

# The side events of 1,000 threads are those of all processes.
@test "many threads: nothing of other processes is written" {
	require_program perf
	cp "$(type -P true)" bystander
	: >runs
	while [[ ! -e enough ]]; do
		./bystander
		echo >>runs
	done &
	STARTED_PIDS+=("$!")
	start_target fork_storm --idle 1000 --threads 2 --forks 3
	attach --call-graph none
	wait_until 60 has_run_more_than "$(wc -l <runs)"
	go_target
	finish_target
	finish_leakrec
	: >enough
	parse
	assert_storm
	perf script -i perf.data --show-task-events --show-mmap-events >records
	grep -q 'PERF_RECORD_FORK' records
	grep -q 'PERF_RECORD_MMAP2.*fork_storm' records
	run ! grep -q bystander records
	run ! grep -aq bystander perf.data
}
