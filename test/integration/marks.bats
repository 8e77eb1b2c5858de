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

has_intervals() {
	(($(grep -c '^interval ' changes) >= $1))
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
	marks >listed
	assert_equal "marks" "$(cut -d' ' -f1,2 listed | paste -sd,)" "1 0,2 0,3 0,4 0"
	awk 'NR > 1 && ($3 - last > 0.500002 || $3 - last < 0.499998) { exit 1 } { last = $3 }' listed ||
		fail "not each half second: $(cat listed)"
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

@test "marks: --diff tells what leaked between them, and nothing that did not" {
	start_target leaky_daemon --requests 1500 --interval-us 1000
	attach --mark-every 0.4
	go_target
	finish_target
	finish_leakrec
	parse
	"$BIN/leakparse" --diff -i perf.data >changes
	(($(grep -c ^interval changes) >= 4)) || fail "$(cat changes)"
	# The daemon's churn is the same at all times, but for blocks that are held just then.
	awk '$1 == "interval" { first = 1; next }
	     $1 == "change" && first { first = 0; print }' changes >first
	awk '$2 != $3 * 3072 || $5 + 0 < 75 { exit 1 }' first || fail "$(cat first)"
	assert_equal "leaked blocks" "$(awk '{ sum += $3 } END { print sum }' first)" \
		"$(truth held_3072)"
	# All the changes together are what is held in the end.
	assert_equal "bytes" "$(awk '$1 == "interval" { sum += $6 } END { print sum }' changes)" \
		"$(sed -nE 's/^# summary.* held_bytes=([0-9]+).*/\1/p' leaks)"
	"$BIN/leakparse" --from 0 --to 1h -i perf.data >all
	assert_equal "in one interval" "$(awk '$1 == "interval" { print $6, $7 }' all)" \
		"$(awk '$1 == "interval" { a += $6; b += $7 } END { printf "%+d %+d", a, b }' changes)"
	"$BIN/leakparse" --diff --size 3072 --top 1 -i perf.data | awk '$1 == "change"' >sized
	assert_equal "of one size" "$(awk '{ sum += $3 } END { print sum }' sized)" \
		"$(truth held_3072)"
}

@test "marks: --every tells while the recording comes in" {
	start_target leaky_daemon --requests 1000000 --interval-us 1000
	go_target
	"$BIN/leakrec" -p "$RECORDED_PID" -o - 2>leakrec.err |
		"$BIN/leakparse" --every 0.2 --top 1 >changes 2>leakparse.err &
	wait_until 20 has_intervals 4
	kill -0 "$RECORDED_PID"
	kill -KILL "$RECORDED_PID"
	wait $!
	awk '$1 == "change" && ($2 != $3 * 3072 || $3 < 1) { exit 1 }' changes || fail "$(cat changes)"
}
