#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# When a recording begins and ends does not depend on what its targets do.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# The seconds that --summary says were recorded in the files.
recorded_s() {
	"$BIN/leakparse" --summary "$@" | sed -nE '1s/.*: ?([0-9.]+) s recorded.*|^([0-9.]+) s recorded.*/\1\2/p'
}

# assert_about SECONDS FROM BEGAN: at least FROM, and not more than have passed since BEGAN, on a busy machine.
assert_about() {
	awk -v is="$1" -v from="$2" -v began="$3" -v now="$EPOCHREALTIME" 'BEGIN {
		exit !(is >= from && is < now - began)
	}' || fail "$1 s, not $2 s"
}

@test "bounds: an idle target was recorded for as long as leakrec ran" {
	local options nr=0 began

	start_target leaky_daemon
	for options in "" --perf-events "-z --on-overload drop"; do
		began=$EPOCHREALTIME
		# shellcheck disable=SC2086 # none, or several
		attach -d 3 $options
		finish_leakrec
		assert_about "$(recorded_s perf.data)" 3 "$began"
		mv perf.data "perf.data.$((++nr))"
	done
	# They are not files of one session: what happened between them is not known.
	run -1 "$BIN/leakparse" perf.data.*
	[[ $output == *"belongs to another recording than the files before it"* ]] || fail "$output"
	kill_now "$RECORDED_PID"
}

@test "bounds: perf script shows them, and a pipe has them, too" {
	require_program perf
	local began=$EPOCHREALTIME

	start_target leaky_daemon
	"$BIN/leakrec" -p "$RECORDED_PID" -d 1 -o - 2>leakrec.err >perf.data
	kill_now "$RECORDED_PID"
	assert_about "$(recorded_s perf.data)" 1 "$began"
	perf script -i perf.data -F event,trace 2>/dev/null | grep leakrec:recording | tr -s ' ' >bounds
	assert_equal "bounds" "$(sed 's/^ *//; s/ *$//' bounds | paste -sd,)" \
		"leakrec:recording: end=0,leakrec:recording: end=1"
}
