#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Whatever happens to leakrec, no process is stopped for longer than a second. leakrec stops no exempt process, and
# records no process that was not named. What is lost because of that is counted.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn

setup() {
	common_setup
	own_libc
}

teardown() {
	common_teardown
}

# A second, plus the time that a busy machine takes to run a continued process.
LIMIT_MS=1700

EVENTS_PER_MALLOC=1
expected_events() {
	echo $((EVENTS_PER_MALLOC * $(truth malloc) + $(truth free)))
}

assert_all_counted() {
	assert_equal "recorded and lost" $(($(end_line events) + $(end_line lost))) "$(expected_events)"
	(($(truth longest_stop_ms) <= LIMIT_MS)) || fail "stopped for $(truth longest_stop_ms) ms"
}

has_stopped_itself() {
	grep -q '^State:[[:space:]]*T' "/proc/$1/status"
}

# Checks that the target makes progress for as long as some stops would last, while leakrec does nothing.
assert_goes_on() {
	local deadline=$((SECONDS + 5))

	while ((SECONDS < deadline)); do
		wait_until 3 has_made $(($(progress) + 1)) || fail "the target is held for good"
	done
}

# ends_soon PID: the process ends within two seconds, or somewhat more on a busy machine.
ends_soon() {
	wait_until 3 has_ended "$1"
}

# --- leakrec does not run ---

# check_stopped_recorder OPTION...
check_stopped_recorder() {
	start_churn --threads 2
	attach -m 64 --call-graph none "$@"
	go_target
	assert_advances
	kill -STOP "$LEAKREC_PID"
	wait_until 60 has_stopped_itself "$LEAKREC_PID"
	assert_goes_on
	kill -CONT "$LEAKREC_PID"
	assert_advances
	finish_churn
	finish_leakrec
	assert_all_counted
	(($(end_line lost) > 0))
}

@test "stops: leakrec is stopped" {
	check_stopped_recorder
	grep -q 'continued after a stop of one second; events without room are lost, and counted' leakrec.err || fail "$(cat leakrec.err)"
}

@test "stops: leakrec is stopped, perf events" {
	EVENTS_PER_MALLOC=2
	check_stopped_recorder --perf-events
}

@test "stops: Ctrl-Z suspends leakrec, not the target" {
	start_churn --threads 2
	go_target
	PYTHONDONTWRITEBYTECODE=1 timeout 120 python3 "$SOURCE_DIR/test/integration/support/drive_suspend.py" \
		"$BIN/leakrec" "$RECORDED_PID" "$PWD/progress"
	assert_runs
	finish_churn
	(($(truth longest_stop_ms) <= LIMIT_MS)) || fail "stopped for $(truth longest_stop_ms) ms"
}

# At its first fork the target waits until leakrec has opened events for the child.
@test "stops: a process forks while leakrec is stopped" {
	local shell

	mkfifo go
	bash -c 'echo $$ >shell.pid; read -r _ <go; for i in 1 2 3; do (exit 0); done; echo >forked' 3>&- &
	shell=$!
	STARTED_PIDS+=("$shell")
	wait_until 60 test -s shell.pid
	attach -p "$shell"
	kill -STOP "$LEAKREC_PID"
	wait_until 60 has_stopped_itself "$LEAKREC_PID"
	echo >go
	wait_until 20 test -s forked
	kill -CONT "$LEAKREC_PID"
	finish_leakrec
	grep -q 'continued before its child or its new file was set up' leakrec.err || fail "$(cat leakrec.err)"
	parse
	[[ $(summary unguarded_tasks) == [1-9]* ]] || fail "leakparse does not doubt it"
}

# --- Nobody reads ---

@test "stops: a reader that does not read, and Ctrl-C" {
	mkfifo pipe
	start_churn --threads 2
	tail -f /dev/null <pipe 3>&- &
	STARTED_PIDS+=("$!")
	attach -o - --call-graph none >pipe
	go_target
	wait_until 60 was_held
	assert_goes_on
	kill -INT "$LEAKREC_PID"
	ends_soon "$LEAKREC_PID" || fail "leakrec waits for its reader"
	(($(end_line lost) > 0)) || fail "$(cat leakrec.err)"
	kill_now "${STARTED_PIDS[1]}"
	assert_runs
	finish_churn
	(($(truth longest_stop_ms) <= LIMIT_MS)) || fail "stopped for $(truth longest_stop_ms) ms"
	assert_no_probes_left
}

# --- Debuggers ---

start_debugger() {
	mkfifo debugger.in
	"$BUILD_DIR/test/targets/debugger" "$RECORDED_PID" <debugger.in >debugger.out 2>debugger.err 3>&- &
	DEBUGGER_PID=$!
	# It must see a stop, which lasts a second at most, on a busy machine, too.
	prefer "$DEBUGGER_PID"
	STARTED_PIDS+=("$DEBUGGER_PID")
	exec {DEBUGGER_IN}>debugger.in
}

end_debugger() {
	exec {DEBUGGER_IN}>&-
	wait "$DEBUGGER_PID" || fail "$(cat debugger.err)"
	assert_equal "SIGCONTs that the debugger saw" \
		"$(awk '$2 == "sigconts" { print $3 }' debugger.out)" 0
}

# gdb attaches while the target is stopped. leakrec itself is stopped, so that this is certain.
debug_held_target() {
	start_churn --threads 2
	attach -m 64 --call-graph none
	go_target
	assert_advances
	start_debugger
	kill -STOP "$LEAKREC_PID"
	wait_until 60 grep -q attached debugger.out
	kill -CONT "$LEAKREC_PID"
}

# Several rounds of leakrec, and several checks by its watchdog.
let_rounds_pass() {
	nap 1
}

@test "stops: a debugger attaches to a stopped process; leakrec does not interfere, and the process runs afterwards" {
	debug_held_target
	let_rounds_pass
	end_debugger
	assert_runs
	finish_churn
	finish_leakrec
	assert_equal "recorded and lost" $(($(end_line events) + $(end_line lost))) "$(expected_events)"
}

@test "stops: leakrec ends while a debugger has the stopped process" {
	local watchdog

	debug_held_target
	watchdog=$(pgrep -P "$LEAKREC_PID" -x leak-watchdog)
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	let_rounds_pass
	end_debugger
	assert_runs
	finish_churn
	wait_until 60 has_ended "$watchdog"
}

# --- Processes that leakrec must not stop or record ---

@test "stops: leakrec does not record itself" {
	run -2 timeout -k 5 20 bash -c "exec '$BIN/leakrec' -d 1 -o self.data -p \$\$"
	[[ $output == *"cannot record process "*": that is leakrec itself"* ]] || fail "$output"
}

@test "stops: leakrec records its own parent" {
	cat >parent.py <<-'END'
		import os, subprocess, sys
		recorder = subprocess.Popen([sys.argv[1], "-p", str(os.getpid()), "-d", "2", "-m", "8", "-o",
		                             "parent.data", "--with", "mmap"])
		while recorder.poll() is None:
		    blocks = [bytes(1000) for _ in range(1000)]
		sys.exit(recorder.returncode)
	END
	timeout -k 5 30 python3 parent.py "$BIN/leakrec" 2>leakrec.err 3>&- || fail "$(cat leakrec.err)"
	grep -q 'is never stopped: leakrec is its child' leakrec.err || fail "$(cat leakrec.err)"
}

# A process that must not be stopped forks: what the child does before it has events is missing, and not counted.
@test "stops: first calls that may be missing are not 0 lost" {
	cat >parent.py <<-'END'
		import os, subprocess, sys
		recorder = subprocess.Popen([sys.argv[1], "-p", str(os.getpid()), "-d", "2", "-o", "perf.data"],
		                            stderr=subprocess.PIPE, text=True)
		for line in recorder.stderr:
		    sys.stderr.write(line)
		    if "Ctrl-C ends it" in line:
		        for _ in range(3):
		            if os.fork() == 0:
		                os._exit(0)
		            os.wait()
		sys.exit(recorder.wait())
	END
	timeout -k 5 60 python3 parent.py "$BIN/leakrec" 2>leakrec.err 3>&- || fail "$(cat leakrec.err)"
	tail -n 1 leakrec.err | grep -q '[0-9] s, 0 or more lost' || fail "$(cat leakrec.err)"
	"$BIN/leakparse" --summary -i perf.data >summary.txt
	grep -q ' frees, 0 or more events lost' summary.txt || fail "$(cat summary.txt)"
	parse
	assert_summary lost_more 1
	! grep -q unguarded_tasks leaks || fail "leakparse doubts what is held"
}

@test "stops: the reader of the recording is not recorded" {
	local reader

	mkfifo pipe
	bash -c 'cat >/dev/null; exit' <pipe 3>&- &
	reader=$!
	STARTED_PIDS+=("$reader")
	run -1 timeout -k 5 20 bash -c "exec '$BIN/leakrec' -d 1 -o - -p $reader 2>&1 >pipe"
	[[ $output == *"cannot record process $reader: it reads the recording"* ]] || fail "$output"
	wait_until 60 has_ended "$reader"
}

# An orphan, adopted by init, which opens files all the time.
start_orphan() {
	bash -c 'setsid bash -c "echo \$\$ >orphan.pid; while [[ ! -e end ]]; do read -rt 0.01 <>/dev/zero; done" &' \
		>/dev/null 2>&1 3>&-
	wait_until 60 test -s orphan.pid
	ORPHAN_PID=$(<orphan.pid)
	wait_until 60 grep -q '^PPid:[[:space:]]*1$' "/proc/$ORPHAN_PID/status" || skip "init has no orphans here"
}

@test "stops: init's other children are not recorded" {
	require_program perf
	local word

	TARGETS=$BUILD_DIR/test/targets
	start_orphan
	start_target orphans
	attach --with fd --call-graph none
	go_target
	read -r -t 120 -u "$TARGET_OUT" _ word _
	assert_equal "what the target does" "$word" forked
	let_rounds_pass
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	echo >end
	go_target
	finish_target
	assert_equal "events of the orphan" \
		"$(perf script -i perf.data -F pid,event 2>/dev/null | awk -v pid="$ORPHAN_PID" '$1 == pid' | wc -l)" 0
}

@test "stops: existing children are reported" {
	local parent child

	bash -c 'sleep 1000 & echo $! >child.pid; wait' 3>&- &
	parent=$!
	STARTED_PIDS+=("$parent")
	wait_until 60 test -s child.pid
	child=$(<child.pid)
	STARTED_PIDS+=("$child")
	"$BIN/leakrec" -p "$parent" -d 0.1 -o perf.data 2>leakrec.err
	grep -q "an existing child, process $child, is not recorded; --children" leakrec.err ||
		fail "$(cat leakrec.err)"
	"$BIN/leakrec" -p "$parent,$child" -d 0.1 -o perf.data 2>leakrec.err
	! grep -q 'not recorded' leakrec.err || fail "$(cat leakrec.err)"
	kill_now "$parent" "$child"
}

@test "stops: --children records the children that exist, and theirs" {
	cat >prefork.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		#include <unistd.h>

		/* Loses ten blocks when it has read a byte. */
		static void work(int generation)
		{
			char byte;

			printf("%d\n", (int)getpid());
			fflush(stdout);
			if (read(0, &byte, 1) != 1)
				_exit(1);
			for (int i = 0; i < 10; i++)
				if (!malloc(1000 + generation))
					_exit(2);
			if (write(1, "done\n", 5) == 5)
				pause();
		}

		int main(void)
		{
			for (int i = 0; i < 5; i++) {
				if (fork())
					continue;
				for (int k = 0; k < 2; k++)
					if (!fork())
						work(2);
				work(1);
			}
			work(0);
		}
	END
	gcc -o prefork prefork.c
	mkfifo lines
	./prefork <>lines >said 3>&- &
	RECORDED_PID=$!
	STARTED_PIDS+=("$RECORDED_PID")
	wait_until 60 eval '(($(wc -l <said) == 16))'
	cp said pids
	attach
	grep -q '5 existing children, processes [0-9,]*, are not recorded; --children' leakrec.err
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	attach --children
	run ! grep 'not recorded' leakrec.err
	grep -q 'recording 16 processes' leakrec.err
	printf '%16s' '' >lines
	wait_until 60 eval '(($(grep -c done said) == 16))'
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	parse
	mapfile -t pids <pids
	kill_now "${pids[@]}"
	assert_equal "leaks by size" "$(awk '$1 == "leak" && $2 > 999 && $2 < 1003 { n[$2]++ }
		END { print n[1000], n[1001], n[1002] }' leaks)" "10 50 100"
}

# --- Signals while leakrec plans ---

@test "stops: SIGINT while leakrec analyses the files of a process" {
	require_program strace
	local tracer

	sleep 1000 3>&- &
	STARTED_PIDS+=("$!")
	strace -o strace.out -e trace=pread64,openat -e inject=pread64,openat:delay_enter=300000 \
		"$BIN/leakrec" -p "$!" -d 1 -o perf.data 2>leakrec.err 3>&- &
	tracer=$!
	STARTED_PIDS+=("$tracer")
	wait_until 60 grep -q "map_files\|/maps" strace.out
	LEAKREC_PID=$(pgrep -P "$tracer" -x leakrec)
	kill -INT "$LEAKREC_PID"
	ends_soon "$LEAKREC_PID" || fail "leakrec goes on: $(cat leakrec.err)"
	wait "$tracer" || true
	kill_now "${STARTED_PIDS[0]}"
}
