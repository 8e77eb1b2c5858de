#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --budget: recording in windows. Each window has all calls of its time and no others, and nothing is left.

# shellcheck disable=SC2030,SC2031,SC2153,SC2154 # as in ending.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn
load ../support/ending
load ../support/windows

setup() {
	common_setup
	require_program perf
	require_programs
}

teardown() {
	common_teardown
}

# record SHARE [OPTION...]: begins to record the target in windows, in perf's pipe format, which can be read meanwhile.
record() {
	: >leakrec.err # as attach() does
	: >stream.data
	"$BIN/leakrec" --budget "$1" -p "$RECORDED_PID" -o - --call-graph fp "${@:2}" >stream.data 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
}

has_windows() {
	(($(own_samples window | grep -c "open=1") >= $1))
}

window_has_closed() {
	own_samples window | grep -q "open=0"
}

finish_leakrec() {
	wait "$LEAKREC_PID" || fail "leakrec ended with status $?: $(cat leakrec.err)"
}

interrupt() {
	kill -INT "$LEAKREC_PID"
	finish_leakrec
}

# Ends steady_calls, and compares its log with the recording.
assert_exact() {
	kill -TERM "$RECORDED_PID" 2>/dev/null || true
	wait "$TARGET_PID"
	perf script -i stream.data --ns -F pid,tid,time,event,trace >script.txt 2>/dev/null
	python3 "$SOURCE_DIR/test/integration/support/check_windows.py" log script.txt "$RECORDED_PID" >counts || fail "$(cat leakrec.err)"
	read -r NR_WINDOWS NR_EVENTS <counts
	grep -q " 0 events lost" leakrec.err || fail "$(cat leakrec.err)"
}

# assert_windows WAY [ARG...]: a recording by the way of several windows has what steady_calls did in them.
assert_windows() {
	start_target steady_calls --log log --pause-us 50 "${@:2}"
	# On an idle machine the budget closes windows, on a busy one the small rings do.
	record 10% --record-by "$1" --call-graph none -m 8
	go_target
	wait_until 120 has_windows 3
	interrupt
	assert_exact
	((NR_WINDOWS >= 3 && NR_EVENTS > 0)) || fail "$(cat counts)"
}

@test "budget: a window has all calls of its time and no others, with sessions" {
	assert_windows session
}

@test "budget: the same without sessions" {
	assert_windows multi
}

@test "budget: the same with many threads" {
	assert_windows session --threads 50 --pause-us 2000
}

@test "budget: the same while a target forks" {
	assert_windows session --fork-every 100
}

watchdog_wakes() {
	sed -n 's/^voluntary_ctxt_switches:\t//p' "/proc/$(pgrep -P "$LEAKREC_PID" -x leak-watchdog)/status"
}

@test "budget: the watchdog sleeps, because nothing is ever stopped" {
	local before

	start_target steady_calls --log log --pause-us 50
	record 10% --call-graph none -m 8
	go_target
	wait_until 120 has_windows 1
	before=$(watchdog_wakes)
	wait_until 120 has_windows 3
	assert_equal "wakes" "$(watchdog_wakes)" "$before"
	interrupt
	assert_exact
}

@test "budget: a quiet program is recorded completely, from its start to its end" {
	"$BIN/leakrec" --budget 100% -o - -- "$TARGETS/steady_calls" --log log --pause-us 5000 --calls 50 </dev/null \
		2>leakrec.err | sed '/^ready [0-9]*$/d' >stream.data
	perf script -i stream.data --ns -F tid,time,event,trace >script.txt 2>/dev/null
	(($(grep -c "leakrec:window: .*open=1" script.txt) == 1)) || fail "$(grep leakrec:window: script.txt)"
	awk '{ for (i = 1; i < NF; i++) if ($i == "leakrec:window:") { t = $2; gsub(/[.:]/, "", t); for (j = i + 1; j <= NF; j++) at[$j] = t } }
		$2 ~ /^[0-9a-f]+$/ && $1 ~ /^[mfMF]$/ { nr++; out += $3 < at["open=1"] || $4 > at["open=0"] }
		END { exit !(nr > 200 && !out) }' script.txt log || fail "a call lies outside of the window"
	(($(grep -c ":malloc_call: " script.txt) >= $(grep -c "^m" log) && $(grep -c ":free: " script.txt) >= $(grep -c "^f" log))) ||
		fail "calls are missing: $(cat leakrec.err)"
}

@test "budget: SIGINT within a window ends it" {
	start_target steady_calls --log log --pause-us 2000
	record 100%
	go_target
	wait_until 60 is_open
	interrupt
	own_samples window | tail -n 1 | grep -q "open=0"
	assert_exact
}

@test "budget: SIGINT between windows, and a target that ends between them" {
	start_target steady_calls --log log --pause-us 20
	record 0.1%
	go_target
	wait_until 60 window_has_closed
	interrupt
	assert_exact
	rm -f target.in target.out log
	start_target steady_calls --log log --pause-us 20
	record 0.1%
	go_target
	wait_until 60 window_has_closed
	kill -TERM "$RECORDED_PID"
	finish_leakrec
	assert_exact
}

@test "budget: looks find held blocks held" {
	start_churn --threads 2 --leak-every 200
	record 20% -m 16
	go_target
	wait_until 120 has_windows 8
	interrupt
	finish_churn
	own_samples look >looks
	# At the end, there is a look at each block; leaked ones are never gone, and nobody writes to them.
	awk '{ for (i = 1; i <= NF; i++) { split($i, field, "="); value[field[1]] = field[2] } }
		{ key = value["address"] " " value["allocated"]; nr[key]++; last[key] = value["state"] }
		END { for (key in last) if (last[key] == 3) held++; exit held < 3 }' looks || fail "$(cat looks)"
}

# assert_estimate SHARE NR_WINDOWS [ARG...]: what leakparse estimates from as many windows is about what paced_leak counted.
# On a machine whose load changes, that may be wrong by a factor of three. Where the program is slowed down, which windows do
# not show by themselves, it would be about a sixth. The program works before leakrec begins. If it waited, the first windows,
# which are the longest ones on a busy machine, would take the pace for 1.
assert_estimate() {
	local leaked estimated

	start_target paced_leak "${@:3}"
	go_target
	record "$1"
	kill -USR1 "$RECORDED_PID"
	wait_until 200 has_windows "$2"
	interrupt
	kill -TERM "$RECORDED_PID"
	finish_target
	read -r _ leaked <truth
	"$BIN/leakparse" --format json -i stream.data >report.json 2>parse.err || fail "$(cat parse.err)"
	estimated=$(jq '[.stacks[] | select(tostring | test("leak_block")) | .estimated_blocks // .held_blocks] | add // 0 | round' \
		report.json)
	((estimated * 4 > leaked && estimated < leaked * 4)) ||
		fail "$estimated of $leaked: $(own_samples window) $("$BIN/leakparse" --summary -i stream.data)"
}

@test "budget: amounts are right where probes slow down the program" {
	assert_estimate 30% 24
}

@test "budget: amounts are right where the program waits for a timer" {
	assert_estimate 20% 16 --pause-us 100
}

# A leak takes the addresses of all that was in flight when a window closed. So looks find them in use, and untouched.
@test "budget: what is in flight when windows close is no leak" {
	local leaked

	start_target in_flight
	go_target
	record 10%
	wait_until 200 has_windows 16
	interrupt
	kill -TERM "$RECORDED_PID"
	finish_target
	read -r _ leaked <truth
	"$BIN/leakparse" --format json -i stream.data >report.json 2>parse.err || fail "$(cat parse.err)"
	jq -e --argjson leaked "$leaked" '[.stacks[] | select(.verdict | IN("growth", "overdue", "burst"))] as $leaks
		| ([$leaks[] | select(tostring | test("begin_"))] == []) and
		([.causes[].estimated_blocks // 0] | add) < 1000 + 4 * $leaked' report.json >result ||
		fail "$leaked leaked: $(own_samples window) $("$BIN/leakparse" --summary -i stream.data)"
}

# Prints when the last window was opened or closed, in ns.
last_bound_ns() {
	own_samples window | sed -n '$s/^ *\([0-9]*\)\.\([0-9]*\):.*/\1\2/p'
}

@test "budget: without a file to probe, no window is open" {
	local nr given_ns bound_ns

	own_libc
	start_churn --resting --threads 1
	record 50%
	go_target
	wait_until 60 is_open
	# Opens it for writing, when its probes are gone.
	: >>lib/libc.so.6
	given_ns=$(python3 -c 'import time; print(time.monotonic_ns())')
	wait_until 60 grep -q "no longer recording .*/libc.so.6, which is being overwritten" leakrec.err
	wait_until 60 has_turns $(($(nr_turns) + 1))
	wait_until 60 is_shut
	# What is not probed is not observed.
	bound_ns=$(last_bound_ns)
	((bound_ns <= given_ns)) || fail "closed at $bound_ns, and the probes were gone at $given_ns"
	nr=$(own_samples window | wc -l)
	wait_until 60 has_turns $(($(nr_turns) + 3))
	assert_equal "opened and closed" "$(own_samples window | wc -l)" "$nr"
	interrupt
	finish_churn
}

# has_links N: true if leakrec has so many links now. A process has two, for its libc.
has_links() {
	(($(grep -ls uprobe_multi "/proc/$LEAKREC_PID/fdinfo/"* | wc -l) == $1))
}

@test "budget: a quiet program's window ends for a process that could not be probed when it began" {
	local hard

	start_target new_in_window fork
	record 100%
	wait_until 60 has_links 2
	hard=$(prlimit --pid "$LEAKREC_PID" --nofile --output HARD --noheadings)
	# Room for these links, for the count of transfers, and for the child's memory.
	leave_descriptors 4
	go_target
	wait_until 60 grep -q "are not recorded in some windows: cannot attach to " leakrec.err
	prlimit --pid "$LEAKREC_PID" --nofile="$hard:"
	wait_until 60 has_links 4
	interrupt
	! grep -q 'continued before its child' leakrec.err || fail "$(cat leakrec.err)"
	kill -TERM "$RECORDED_PID"
	wait "$TARGET_PID" || true
}

@test "budget: SIGKILL leaves nothing" {
	own_libc
	start_churn --resting --threads 2
	go_target
	for _ in {1..6}; do
		: >leakrec.err
		"$BIN/leakrec" --budget 50% -p "$RECORDED_PID" -o killed.data 2>leakrec.err 3>&- &
		LEAKREC_PID=$!
		STARTED_PIDS+=("$LEAKREC_PID")
		wait_until 60 is_recording "$LEAKREC_PID"
		nap "0.$((RANDOM % 900 + 100))"
		kill -KILL "$LEAKREC_PID"
		wait "$LEAKREC_PID" 2>/dev/null || true
		wait_until 60 is_unprobed
	done
	assert_runs
	finish_churn
}

@test "budget: what windows cannot do is refused in one line" {
	local option

	for option in -a "--cgroup=/" "-p1 --with=mmap" "-p1 --no-heap" "-p1 --size=24" "-p1 --perf-events" \
		"-p1 --record-by=single" "-p1 --top"; do
		# shellcheck disable=SC2086 # several options
		run -2 "$BIN/leakrec" --budget 2% $option
		((${#lines[@]} == 1)) || fail "$output"
		[[ $output == "leakrec: --budget "* ]] || fail "$output"
	done
	for option in 0 0.01% 101% 5x nan ""; do
		run -2 "$BIN/leakrec" --budget "$option" -p 1
	done
}
