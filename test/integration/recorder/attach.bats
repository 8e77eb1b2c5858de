#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec -p PID attaches to a running process, and records exactly what the target counted since then.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

check() {
	record_attached "$@"
	assert_truth
	assert_events
}

@test "attach: the demo daemon, fp" {
	check "leaky_daemon --requests 60 --interval-us 1000" --call-graph fp
	leak_stacks 3072 | sort -u >stacks
	assert_equal "different stacks" "$(wc -l <stacks)" 1
	grep -qE '^( malloc)? query_font load_font render_answer handle_request serve main' stacks
}

@test "attach: the demo daemon, dwarf" {
	check "leaky_daemon --requests 60 --interval-us 1000" --call-graph dwarf
	leak_stacks 3072 | sort -u >stacks
	assert_equal "different stacks" "$(wc -l <stacks)" 1
	grep -qE '^( malloc)? query_font load_font render_answer handle_request serve main' stacks
}

@test "attach: the demo daemon, no stacks" {
	check "leaky_daemon --requests 60 --interval-us 1000" --call-graph none
}

@test "attach: frees of earlier blocks are no errors; they are counted, and listed on request" {
	check null_free
	assert_summary free_unknown 25
	assert_equal "unexpected" "$(awk '$1 == "unexpected" { print $2 }' leaks | sort | uniq -c | xargs)" \
		"2 alloc-failed"
	"$BIN/leakparse" --list-unknown <perf.data >leaks
	assert_equal "listed" "$(grep -c '^unexpected free-unknown ' leaks)" 25
}

@test "attach: posix_memalign to stack, far stack, heap and global" {
	check posix_memalign_cases --call-graph fp
}

@test "attach: posix_memalign, dwarf" {
	check posix_memalign_cases --call-graph dwarf
}

@test "attach: posix_memalign, no stacks" {
	check posix_memalign_cases --call-graph none
}

@test "attach: aligned_alloc, memalign, valloc, pvalloc" {
	check aligned
}

@test "attach: a double free, with both frees' stacks" {
	check double_free
	assert_equal "double frees" "$(grep -c '^unexpected double-free ' leaks)" 3
	# The report shows the second free first, then the first free, then the allocation.
	assert_equal "second frees" "$(with_stacks | grep -A 2 '^unexpected double-free ' | grep -c second_free)" 3
	assert_equal "first frees" "$(with_stacks | grep -A 2 '^freed-before ' | grep -c first_free)" 3
	assert_equal "still held" "$(grep -c '^unexpected still-held ' leaks)" 3
}

@test "attach: a statically linked target" {
	check cases_static
}

@test "attach: a statically linked target, dwarf" {
	check cases_static --call-graph dwarf
}

@test "attach: two processes at once" {
	local first first_in first_out

	start_target null_free
	first=$RECORDED_PID
	exec {first_in}>&"$TARGET_IN" {first_out}<&"$TARGET_OUT" {TARGET_IN}>&- {TARGET_OUT}<&-
	rm target.in target.out
	start_target aligned
	# The second process is named twice, but recorded once.
	attach -p "$first,$RECORDED_PID,$RECORDED_PID"
	echo >&"$first_in"
	grep -qx 'truth held_11 1' <&"$first_out"
	go_target
	finish_target
	exec {first_in}>&- {first_out}<&-
	finish_leakrec
	parse
	assert_equal "held by both" "$(summary held_blocks)" $(($(truth held_blocks) + 1))
	assert_equal "the first's leaks" "$(awk -v pid="$first" '$1 == "leak" && $6 == pid { print $2 }' leaks)" 11
}

@test "attach: a recording that cannot begin leaves the previous one unchanged" {
	start_target leaky_daemon --interval-us 1000
	echo precious >perf.data
	run -1 "$BIN/leakrec" -p "$RECORDED_PID" -o perf.data --filter 'nothing:1'
	run -1 "$BIN/leakrec" -p "$RECORDED_PID" -o perf.data --filter 'malloc:nothing > 3'
	assert_equal "file" "$(<perf.data)" precious
	go_target
	kill -TERM "$RECORDED_PID"
	finish_target
}

has_two_threads() {
	(($(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l) == 2))
}

# has_libc PID NAME: true if the process has become that program and mapped its libraries.
has_libc() {
	grep -q "^$2$" "/proc/$1/comm" && grep -q ' r-xp .*/libc\.so' "/proc/$1/maps"
}

@test "attach: a thread's id is refused; a process that is stopped already" {
	local pid thread

	sleep 1000 &
	pid=$!
	STARTED_PIDS+=("$pid")
	# Without libc there is nothing to record, and the stop takes a moment.
	wait_until 60 has_libc "$pid" sleep
	kill -STOP "$pid"
	wait_until 60 grep -q '^State:[[:space:]]*T' "/proc/$pid/status"
	"$BIN/leakrec" -p "$pid" -d 0.1 -o stopped.data 2>leakrec.err
	grep -q "process $pid was stopped already and stays stopped; .kill -CONT $pid. continues it" leakrec.err
	python3 -c 'import threading, time; threading.Thread(target=time.sleep, args=(1000,)).start()' &
	pid=$!
	STARTED_PIDS+=("$pid")
	wait_until 60 has_two_threads "$pid"
	thread=$(find "/proc/$pid/task" -maxdepth 1 -name '[0-9]*' ! -name "$pid" -printf '%f')
	run -1 "$BIN/leakrec" -p "$thread" -o thread.data
	[[ $output == *"$thread is a thread of process $pid: give that process"* ]] || fail "$output"
	kill_now "${STARTED_PIDS[@]}"
}

# Ends leakrec, which must not take long. The strict limit is in ending.bats, which runs without others beside it.
interrupt() {
	kill -INT "$LEAKREC_PID"
	wait_until 5 has_ended "$LEAKREC_PID"
}

# start_stopping COMMAND...: starts leakrec by the command until it has to stop the process. On a busy machine it may see
# all threads while these wait for a CPU.
start_stopping() {
	for _ in {1..20}; do
		"$@"
		wait_until 60 grep -qE 'stopping the process while its events are opened|^leakrec: recording ' leakrec.err
		if contains leakrec.err 'stopping the process while its events are opened'; then
			return
		fi
		interrupt
	done
	fail "no thread was missed: $(cat leakrec.err)"
}

# The kernel would go on behind the file's first instruction, within the hook's jump.
@test "attach: a process whose free() an agent has hooked is refused, and goes on" {
	local way

	[[ $(uname -m) == x86_64 ]] || skip "hooked_free hooks nothing on this machine"
	start_target hooked_free
	for way in session perf; do
		run -1 "$BIN/leakrec" --record-by "$way" -p "$RECORDED_PID" -d 0.1 -o hooked.data
		[[ $output == *"cannot record process $RECORDED_PID: "*"has changed the code of free in its memory"* ]] ||
			fail "$output"
	done
	go_target
	finish_target
	grep -qx 'truth hooked 100' truth
}

# The kernel puts no breakpoint there, and says nothing.
@test "attach: a process whose allocator is in writable memory is refused, and goes on" {
	[[ $(uname -m) == x86_64 ]] || skip "hooked_free does nothing on this machine"
	start_target hooked_free --writable 1
	run -1 "$BIN/leakrec" -p "$RECORDED_PID" -d 0.1 -o hooked.data
	[[ $output == *"cannot record process $RECORDED_PID: the code of "*" is writable or shared in its memory"* ]] ||
		fail "$output"
	go_target
	finish_target
	grep -qx 'truth hooked 0' truth
}

@test "attach: a child that an agent has hooked is left out" {
	local child

	[[ $(uname -m) == x86_64 ]] || skip "nothing is hooked on other machines"
	mkfifo target.in target.out
	# shellcheck disable=SC2016 # expanded by the inner shell
	bash -c '"$1" --wait <target.in >target.out; exit "$?"' parent "$TARGETS/hooked_free" 3>&- &
	RECORDED_PID=$!
	TARGET_PID=$RECORDED_PID
	STARTED_PIDS+=("$RECORDED_PID")
	exec {TARGET_IN}>target.in {TARGET_OUT}<target.out
	read -r -t 60 -u "$TARGET_OUT" _ child
	attach --children
	grep -q "cannot record process $child: .* has changed the code of free in its memory" leakrec.err
	go_target
	finish_target
	finish_leakrec
	grep -q '^truth hooked 100$' truth
}

@test "attach: threads come and go, and one does not stop" {
	start_target restless_threads
	go_target
	start_stopping start_recorder -o perf.data
	interrupt
	start_stopping attach
	interrupt
	finish_leakrec
	kill -TERM "$RECORDED_PID"
	finish_target
	# A second, plus the time that a busy machine takes to run a continued process.
	(($(truth longest_stop_ms) <= 1700)) || fail "stopped for $(truth longest_stop_ms) ms"
}

# Set-up takes CPU time, and many times as long if it has to share the CPUs with busy processes. So does the end, for the
# thread that writes, too.
@test "attach: set-up and the end have the highest priority" {
	require_program strace
	require_programs
	sleep 1000 &
	STARTED_PIDS+=("$!")
	wait_until 60 has_libc "$!" sleep
	strace -o trace -e trace=setpriority,bpf "$BIN/leakrec" -p "$!" -d 0.1 -o perf.data 2>leakrec.err ||
		fail "$(cat leakrec.err)"
	awk '/^setpriority\(PRIO_PROCESS, 0, -20\) *= 0/ { high = 1 }
		/^setpriority\(PRIO_PROCESS, 0, 0\)/ { high = 0 }
		/^setpriority\(PRIO_PROCESS, 0, -10\) *= 0/ { high = 0; nr_recording++ }
		/^setpriority\(PRIO_PROCESS, [1-9][0-9]*, -20\) *= 0/ && nr_recording { nr_at_end++ }
		/BPF_PROG_LOAD.*"(linked|followed)_/ { nr[high]++ }
		END { exit !(nr[1] && !nr[0] && nr_recording == 1 && nr_at_end == 2) }' trace ||
		fail "$(grep -E 'setpriority|PROG_LOAD' trace)"
	kill_now "${STARTED_PIDS[@]}"
}
