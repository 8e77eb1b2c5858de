#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# How leakrec --top begins and ends, and that nothing is lost to it.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program python3
}

teardown() {
	common_teardown
}

# drive CASE [OPTION...]: on RECORDED_PID; the screen at the end is in the file screen. A machine so busy that leakrec
# gets no CPU for longer than a process may be held loses events, and says so in place of the message that is expected.
drive() {
	(
		prefer "$BASHPID"
		PYTHONDONTWRITEBYTECODE=1 exec timeout 300 python3 "$SOURCE_DIR/test/integration/support/drive_top.py" \
			"$BIN/leakrec" "$1" "$RECORDED_PID" "${@:2}" >screen 3>&-
	) || fail "$1: $(cat screen)"
}

start_daemon() {
	start_target leaky_daemon --requests 1000000 --interval-us 1000
	go_target
}

end_daemon() {
	kill_now "$RECORDED_PID"
	wait "$TARGET_PID" 2>/dev/null || true
	rm -f target.in target.out
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
