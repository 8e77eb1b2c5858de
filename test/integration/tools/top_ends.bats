#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# How leakrec --top begins and ends, and that nothing is lost to it.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/top

setup() {
	common_setup
	require_program python3
}

teardown() {
	common_teardown
}

@test "top: every end leaves the terminal as it was" {
	local case

	start_daemon
	for case in interrupt term term-viewer hangup kill-viewer kill; do
		drive $case
		kill -0 "$RECORDED_PID"
	done
	drive kill-viewer -o perf.data
	grep -q 'killed by signal 9' screen
	"$BIN/leakparse" --summary -i perf.data | grep -q query_font
	drive end-of-target
	grep -qE '^1\. .* blocks' screen
	wait "$TARGET_PID"
}

@test "top: nothing is lost to it" {
	local driver

	start_target random_calls --threads 2 --rounds 30000
	drive until-end -o perf.data &
	driver=$!
	wait_until 60 test -e shown
	go_target
	finish_target
	wait "$driver" || fail "$(cat screen)"
	parse
	assert_truth
}

@test "top: what it needs is said" {
	start_daemon
	run -1 "$BIN/leakrec" -p "$RECORDED_PID" --top
	[[ $output == *"needs a terminal"* ]]
	# Nothing is recorded on a terminal that cannot show it.
	for term in dumb no-such ""; do
		TERM=$term run -1 script -qec "'$BIN/leakrec' -p $RECORDED_PID --top -o perf.data" /dev/null
		[[ ${#lines[@]} -eq 1 && $output == *"--top cannot draw on this terminal: TERM=$term "* ]] || fail "$output"
		[[ ! -e perf.data ]]
	done
	run -2 "$BIN/leakrec" --top -- true
	[[ $output == *"--top needs -p PID"* ]]
	run -2 "$BIN/leakrec" --top -o - -p "$RECORDED_PID"
	[[ $output == *"give -o a file"* ]]
	end_daemon
}
