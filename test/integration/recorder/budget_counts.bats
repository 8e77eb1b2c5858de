#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --budget: the calls through which a leak allocates are counted between windows, too.

# shellcheck disable=SC2030,SC2031,SC2153,SC2154 # as in ending.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/windows

setup() {
	common_setup
	require_program perf
	require_programs
	[[ $(uname -m) == x86_64 ]] || skip "entries are found in x86-64 code only"
}

teardown() {
	common_teardown
}

# A function was called in windows while its calls were counted.
has_counts() {
	own_samples calls | grep -qE " observed=([2-9][0-9]|[1-9][0-9]{2,}) "
}

record() {
	start_target rare_calls --log log
	: >leakrec.err
	: >stream.data
	"$BIN/leakrec" --budget 10% -p "$RECORDED_PID" -o - --call-graph fp >stream.data 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
	go_target
}

end_recording() {
	kill -INT "$LEAKREC_PID"
	wait "$LEAKREC_PID" || fail "$(cat leakrec.err)"
	kill -TERM "$RECORDED_PID"
	wait "$TARGET_PID"
}

nr_samples() {
	own_samples "$1" | wc -l
}

# more_than NR NAME: has the event more samples?
more_than() {
	(($(nr_samples "$2") > $1))
}

# Two windows, in a row, that bring no sample of a count.
counts_no_more() {
	own_samples '\(calls\|window\)' | tail -n 5 | grep -q calls || return 0
	return 1
}

@test "budget: a count ends when the process forks, as its child would have the probe" {
	record
	wait_until 200 more_than 0 calls
	kill -USR1 "$RECORDED_PID"
	wait_until 200 counts_no_more
	end_recording
}

@test "budget: the rare function in a leak's stack is counted exactly" {
	local a_second observed blocks found

	record
	wait_until 200 has_counts
	end_recording
	perf script -i stream.data --ns -F time,event,trace >script.txt 2>/dev/null
	python3 "$SOURCE_DIR/test/integration/support/check_counts.py" log script.txt >counts
	read -r a_second observed blocks <counts
	# Each call makes one block; a window may begin or end between the two.
	((blocks >= observed - 2 && blocks <= observed + 2)) || fail "$(cat counts)"
	"$BIN/leakparse" --format json -i stream.data >report.json 2>parse.err || fail "$(cat parse.err)"
	found=$(jq '[.causes[].growth | select(.counted)][0].blocks_per_s | round' report.json)
	((found * 10 >= a_second * 9 && found * 10 <= a_second * 11)) ||
		fail "$found blocks/s of $a_second: $("$BIN/leakparse" --summary -i stream.data)"
	# make_block() and hot_forget(), which are hot, are not counted for long.
	(($(own_samples calls | sed 's/.* all=\([0-9]*\) .*/\1/' | sort -n | tail -n 1) < 100000))
}
