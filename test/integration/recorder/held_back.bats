#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A target that is stopped because leakrec cannot write its events. Whatever happens to leakrec's reader or its disk,
# the target runs on.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn
load ../support/overload

setup() {
	common_setup
	own_libc
}

teardown() {
	common_teardown
}

# check_late_reader CALL-GRAPH
check_late_reader() {
	hold_back "$1"
	let_reader_go
	assert_advances
	finish_all
	assert_all_recorded
	assert_paused
}

@test "held back: a reader that starts late" {
	check_late_reader none
}

@test "held back: a reader that starts late, dwarf" {
	check_late_reader dwarf
}

@test "held back: a reader that is stopped and continued" {
	start_reader
	start_churn --threads 4 --leak-every 1000
	attach -o - --call-graph dwarf >pipe
	go_target
	local before

	for _ in 1 2 3; do
		assert_advances
		before=$(long_stops)
		kill -STOP "$READER_PID"
		wait_until 60 was_held "$before"
		kill -CONT "$READER_PID"
	done
	assert_advances
	finish_all
	assert_all_recorded
	assert_paused
}

@test "held back: Ctrl-C while the reader is behind; it gets everything" {
	hold_back dwarf
	# After Ctrl-C leakrec gives up a reader that takes nothing for 0.7 s, as one that gets no CPU.
	prefer "$READER_PID"
	let_reader_go
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	finish_reader
	assert_runs
	finish_churn
	assert_summary lost "$(end_line lost)"
	assert_summary truncated 0
	assert_equal "events read" "$(summary events)" "$(end_line events)"
}

@test "held back: Ctrl-C twice while the reader waits" {
	hold_back raw
	kill -INT "$LEAKREC_PID"
	wait_until 60 contains leakrec.err 'Ctrl-C drops it'
	# Half a second later leakrec drops it by itself, and ends.
	kill -INT "$LEAKREC_PID" 2>/dev/null || true
	wait_until 60 has_ended "$LEAKREC_PID"
	wait "$LEAKREC_PID" && fail "leakrec ended with status 0"
	assert_equal "words about it" "$(grep -c 'what its reader has not taken is dropped' leakrec.err)" 1
	assert_runs
	assert_probes_go
	let_reader_go
	wait "$READER_PID" || true
	grep -q '^# summary .*truncated=1' leaks
	finish_churn
}

@test "held back: a reader that ends" {
	hold_back dwarf
	kill -KILL "$READER_PID"
	wait "$LEAKREC_PID" && fail "leakrec ended with status 0"
	assert_equal "complaints" "$(grep -c 'its reader is gone' leakrec.err)" 1
	assert_runs
	assert_no_probes_left
	finish_churn
}

@test "held back: a full disk" {
	mkdir mnt
	cat >full <<-'END'
		mount -t tmpfs -o size=8m none mnt
		"$1/leakrec" -p "$2" -m 512 --call-graph dwarf -o mnt/perf.data 2>leakrec.err 3>&-
		echo $? >status
		cp mnt/perf.data perf.data
	END
	start_churn --threads 4 --leak-every 10
	go_target
	assert_runs
	unshare -m --propagation private bash full "$BIN" "$RECORDED_PID"
	assert_equal "leakrec's status" "$(cat status)" 1
	assert_equal "lines about it" "$(grep -ci 'no space left' leakrec.err)" 1
	assert_runs
	finish_churn
	"$BIN/leakparse" -i perf.data >leaks 2>leakparse.err || true
	grep -q '^leak 3072 ' leaks || fail "$(cat leakparse.err)"
	assert_no_probes_left
}
