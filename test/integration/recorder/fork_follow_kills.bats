#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec is killed while recorded processes fork. They all run on.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/fork_follow

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# They begin within some milliseconds.
@test "followers: leakrec is killed near the first fork" {
	local ms

	for ms in {0..11}; do
		rm -f target.in target.out
		start_target fork_storm --threads 3 --forks 4
		attach
		go_target
		nap "$(printf '0.%03d' "$ms")"
		kill -KILL "$LEAKREC_PID"
		wait "$LEAKREC_PID" 2>/dev/null || true
		# It prints the number of workers only when all of them have ended.
		timeout 60 cat <&"$TARGET_OUT" >truth || fail "some process is left stopped"
		wait "$TARGET_PID"
		exec {TARGET_IN}>&- {TARGET_OUT}<&-
		assert_equal "workers" "$(truth workers)" 11
	done
	"$BIN/leakprobe" list >/dev/null
	assert_no_probes_left
}
