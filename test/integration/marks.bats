#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Marks: by a clock, by SIGUSR1; perf reads a recording that has them.

bats_require_minimum_version 1.5.0
load helpers

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

# The marks of perf.data: "NUMBER BY_SIGNAL TIME" each.
marks() {
	perf script -i perf.data -F event,time,trace 2>/dev/null |
		sed -nE 's/^ *([0-9.]+): *leakrec:mark: number=([0-9]+) by_signal=([01]).*/\2 \3 \1/p'
}

has_marked() {
	grep -q "mark $1\$" leakrec.err
}

@test "marks: SIGUSR1 sets one each time, and the recording goes on" {
	local engine

	for engine in "" --perf-events; do
		start_target leaky_daemon --requests 1000000 --interval-us 1000
		# shellcheck disable=SC2086 # none, or one
		attach $engine
		go_target
		for number in 1 2 3; do
			kill -USR1 "$LEAKREC_PID"
			wait_until 10 has_marked "$number"
		done
		kill -INT "$LEAKREC_PID"
		finish_leakrec
		kill -KILL "$RECORDED_PID"
		parse
		assert_equal "marks" "$(marks | cut -d' ' -f1,2 | paste -sd,)" "1 1,2 1,3 1"
		rm -f target.in target.out
	done
}

@test "marks: a clock sets them on time" {
	start_target leaky_daemon --requests 1000000 --interval-us 1000
	attach -d 2.1 --mark-every 0.5
	go_target
	finish_leakrec
	kill -KILL "$RECORDED_PID"
	marks >marks
	assert_equal "marks" "$(cut -d' ' -f1,2 marks | paste -sd,)" "1 0,2 0,3 0,4 0"
	awk 'NR > 1 && ($3 - last > 0.500002 || $3 - last < 0.499998) { exit 1 } { last = $3 }' marks ||
		fail "not each half second: $(cat marks)"
}

@test "marks: a pipe holds them, compressed or not" {
	local level

	for level in "" -z; do
		# shellcheck disable=SC2086 # none, or one
		"$BIN/leakrec" $level --mark-every 0.1 -d 1 -o - -- "$TARGETS/leaky_daemon" \
			--requests 1000000 --interval-us 1000 2>leakrec.err >perf.pipe
		kill -KILL "$(sed -n 's/.* goes on as process //p' leakrec.err)"
		perf script -i perf.pipe -F event 2>/dev/null | grep -c leakrec:mark >count
		(($(cat count) >= 8)) || fail "$(cat count) marks in a second"
	done
}
