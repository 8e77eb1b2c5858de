#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Whatever happens to leakrec, no process is stopped for longer than a second. What is lost because of that is counted.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn

setup() {
	common_setup
	own_libc
	count_events_per_malloc
}

teardown() {
	common_teardown
}

# A second, plus the time that a busy machine takes to run a continued process.
LIMIT_MS=1700

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
	local deadline=$((SECONDS + 3))

	while ((SECONDS < deadline)); do
		wait_until 20 has_made $(($(progress) + 1)) || fail "the target is held for good"
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
	assert_probes_go
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

# --- Signals while leakrec plans ---

@test "stops: SIGINT while leakrec analyses the files of a process" {
	require_program strace
	local tracer

	sleep 1000 3>&- &
	STARTED_PIDS+=("$!")
	strace -o strace.out -e trace=pread64,openat -e inject=pread64,openat:delay_enter=100000 \
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
