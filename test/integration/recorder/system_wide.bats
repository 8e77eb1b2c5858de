#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# All processes of the machine: present ones, new ones and those that are left out. For those of a cgroup see cgroup.bats.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/mappings
load ../support/system_wide

# The recording has nothing of this process, except the bounds, which leakrec itself writes.
assert_left_out() {
	assert_equal "leaks of $1" "$(leaks_of "$1")" ""
	assert_equal "events of $1" "$(perf script -i perf.data -F pid,event 2>/dev/null |
		awk -v pid="$1" '$1 == pid && !/leakrec:recording:|task:task_newtask:/' | wc -l)" 0
}

# --- The whole machine ---

# record_machine OPTION...: records a target that runs already and one that starts later.
record_machine() {
	local first_pid later_pid

	start_target sizes
	first_pid=$RECORDED_PID
	attach_all -a "$@"
	go_target
	finish_target
	"$TARGETS/fork_tree" >truth.later &
	later_pid=$!
	wait "$later_pid"
	stop_leakrec
	# The test's own shell is never stopped, so its own events may be lost; others lose nothing.
	assert_held_by "$first_pid"
	grep -q '^truth held_' truth.later
	mv truth.later truth
	# The children hold blocks of other sizes.
	leaks_of "$later_pid" >sizes.later
	while read -r size number; do
		((size < 500)) || continue
		assert_equal "blocks of $size" "$number" "$(truth "held_$size")"
	done <sizes.later
	assert_equal "processes" "$(with_stacks | awk '$1 == "leak" && $8 == "fork_tree" { print $6 }' | sort -u | wc -l)" 13
	assert_left_out "$LEAKREC_PID"
}

@test "machine: present and new processes" {
	record_machine
	grep -q '^leakrec: recording all processes: [0-9]* processes with [0-9]* allocators* so far;' leakrec.err
}

@test "machine: the same with perf events" {
	record_machine --perf-events --call-graph none
}

# Its own allocations would be recorded, and would slow down the analysis.
@test "machine: the process that analyses new files for leakrec is left out" {
	python3 "$SOURCE_DIR/test/integration/support/make_elf.py" late.so malloc,free,calloc 10
	attach_all -a --call-graph none
	start_target maps_code "$PWD/late.so"
	go_target
	finish_target
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	perf script -i perf.data --show-task-events -F comm,event 2>/dev/null >events
	grep leak-analyst events >analyst || fail "no analyst in $(wc -l <events) events: $(cat leakrec.err)"
	grep -q COMM analyst || fail "$(sort analyst | uniq -c)"
	run ! grep -E 'malloc|free|calloc' analyst
}

@test "machine: the reader of the recording is left out" {
	local watchdog_pid reader_pid out

	mkfifo pipe
	{
		echo "$BASHPID" >reader.pid
		exec "$BIN/leakparse" --order time >leaks 2>leakparse.err
	} <pipe 3>&- &
	STARTED_PIDS+=($!)
	# As in a shell's pipeline, the reader must have the pipe when leakrec looks for it.
	exec {out}>pipe
	wait_until 60 test -s reader.pid
	# After Ctrl-C leakrec gives up a reader that takes nothing for 0.7 s, as one that gets no CPU.
	prefer "$(cat reader.pid)"
	attach_all -a -o - >&"$out"
	exec {out}>&-
	watchdog_pid=$(pgrep -P "$LEAKREC_PID" -x leak-watchdog)
	"$TARGETS/sizes" >truth &
	wait $!
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	reader_pid=$(cat reader.pid)
	wait "$reader_pid"
	(($(summary events) > 1000))
	for pid in "$reader_pid" "$LEAKREC_PID" "$watchdog_pid"; do
		assert_equal "leaks of $pid" "$(leaks_of "$pid")" ""
	done
}

@test "machine: mappings" {
	start_target mappings
	attach_all -a --no-heap --with mmap
	go_target
	finish_target
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	"$BIN/leakparse" --order time --stack '/mappings$' <perf.data >leaks
	grep '^left ' truth | sort | diff - <(left)
	assert_summary lost 0
}

# The next recorder removes them, which may be another test's.
@test "machine: a killed recorder: its file is read, the next recorder removes its probes" {
	start_target leaky_daemon --interval-us 100
	attach --perf-events
	go_target
	wait_until 60 has_grown_to perf.data 300000
	kill -KILL "$LEAKREC_PID"
	wait "$LEAKREC_PID" || true
	[[ -e /proc/$RECORDED_PID ]]
	our_probes | grep -q "^leakrec${LEAKREC_PID}_"
	"$BIN/leakprobe" list >/dev/null
	"$BIN/leakrec" -p "$RECORDED_PID" -d 0.1 -o next.data
	assert_no_probes_left
	kill -TERM "$RECORDED_PID"
	finish_target
	run --separate-stderr "$BIN/leakparse" -i perf.data
	assert_equal status "$status" 1
	# It says the second if the recorder was killed in the midst of a write.
	[[ $stderr == *"did not finish"* || $stderr == *"ends too early"* ]] || fail "$stderr"
	grep -q '^# summary .*truncated=1' <<<"$output"
	(($(grep -c '^leak 3072 ' <<<"$output") > 1))
}

# --- Process ids that a target chooses for the whole machine ---

# Both are forks of one heap: what they hold has the same addresses.
assert_two_of_one_pid() {
	assert_truth
	assert_events
	assert_no_unexpected
	assert_equal "processes that leak" "$(awk '$1 == "leak" { print $6 }' leaks | sort -u)" "$(truth reused)"
	assert_equal "blocks of the first" "$(grep -c '^leak 593 ' leaks)" 13
	assert_equal "blocks of the next" "$(grep -c '^leak 600 ' leaks)" 13
	assert_equal "addresses" "$(awk '$1 == "leak" { print $3 }' leaks | sort -u | wc -l)" 13
}

@test "machine: two processes with one id, started" {
	record_command pid_reuse
	assert_two_of_one_pid
}

@test "machine: two processes with one id, attached" {
	record_attached pid_reuse
	assert_two_of_one_pid
}

@test "machine: two processes with one id, with perf events" {
	record_attached pid_reuse --perf-events
	assert_two_of_one_pid
}

@test "machine: only one of -p, -a, --cgroup and a command" {
	run -2 "$BIN/leakrec" -a -p 1
	run -2 "$BIN/leakrec" -a --cgroup /
	run -2 "$BIN/leakrec" --cgroup / -- true
	[[ $output == "leakrec: give either -p PID, -a, --cgroup PATH, --unit UNIT, --program FILE, or a command to record;"* ]]
}

@test "machine: the live parser and its broker are left out" {
	local pid broker

	: >leakrec.err
	"$BIN/leakrec" -a --live state --live-every 1 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 test -s state/leaks
	pid=$(pgrep -P "$LEAKREC_PID" -x leak-live)
	broker=$(pgrep -P "$pid" -x leak-broker)
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	grep -q '^# live: .*\bended=1' state/leaks
	run ! grep -E "^process ($pid|$broker) " state/leaks
}
