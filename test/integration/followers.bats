#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Children that recorded processes fork: none is missed, however they come to be, and none is left
# stopped, whatever becomes of leakrec.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load helpers
load churn

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# assert_storm [SIZE...]: blocks of the sizes that only fork_storm's own processes hold, or of these.
assert_storm() {
	local size wrong=0 sizes=(4000 4100 4200)

	((!$#)) || sizes=("$@")
	for size in "${sizes[@]}"; do
		assert_equal "held blocks of $size bytes" "$(grep -c "^leak $size " leaks)" \
			"$(truth "held_$size")" || wrong=1
	done
	assert_summary lost 0 || wrong=1
	((!wrong)) || fail "$(cat leakrec.err)"
	assert_no_unexpected
}

no_probes_left() {
	assert_equal "probes left" "$(abandoned_probes | comm -13 abandoned.before -)" ""
}

@test "followers: many children at once, attached" {
	record_attached "fork_storm --threads 4 --forks 12"
	(($(truth workers) > 30))
	assert_storm
	no_probes_left
}

@test "followers: many children at once, again and again" {
	for _ in 1 2 3 4 5 6; do
		rm -f target.in target.out
		record_attached "fork_storm --threads 8 --forks 3" --call-graph none
		assert_storm
	done
}

@test "followers: many children at once, started" {
	record_command "fork_storm --threads 4 --forks 6"
	assert_storm
}

@test "followers: many children at once, dwarf" {
	record_attached "fork_storm --threads 3 --forks 6" --call-graph dwarf,1024
	assert_storm
}

@test "followers: a parent that ends at once" {
	record_attached "fork_storm --orphan --threads 2 --forks 6"
	(($(truth workers) > 0))
	assert_storm
}

# The kernel hangs up on a process group that is stopped when its last tie to the session ends.
@test "followers: a daemon of a shell with job control" {
	set -m
	for _ in 1 2 3 4 5; do
		rm -f target.in target.out
		record_attached "fork_storm --orphan --threads 2 --forks 2"
		(($(truth workers) > 0)) || fail "the daemon was killed"
		assert_storm
	done
}

@test "followers: a thread execs" {
	record_attached "fork_storm --from-thread"
	(($(truth execed) > 0))
	assert_storm
}

# Before Linux 6.12 perf events have to be kept from being swapped between tasks (recorder/events/context_breakers.h).
@test "followers: threads of forked children come and go" {
	local engine

	for engine in "" --perf-events; do
		rm -f target.in target.out
		# shellcheck disable=SC2086 # none, or one
		record_attached fork_threads --call-graph none $engine
		assert_storm 4001 4002 4003 4004 4005 4006
	done
}

@test "followers: many children at once, with perf events" {
	for _ in 1 2 3 4 5 6; do
		record_command "fork_storm --threads 4 --forks 6" --call-graph none --perf-events
		(($(truth workers) > 20))
		assert_storm
		! grep -q unguarded leakrec.err leaks || fail "doubtful: $(cat leakrec.err)"
	done
}

@test "followers: two processes that both fork" {
	local first_pid first_recorded first_in first_out

	start_target fork_storm --threads 3 --forks 6
	first_pid=$TARGET_PID first_recorded=$RECORDED_PID
	first_in=$TARGET_IN first_out=$TARGET_OUT
	rm target.in target.out
	start_target fork_storm --threads 3 --forks 6
	attach -p "$first_recorded,$RECORDED_PID"
	echo >&"$first_in"
	go_target
	cat <&"$first_out" >truth.first
	finish_target
	wait "$first_pid"
	exec {first_in}>&- {first_out}<&-
	finish_leakrec
	parse
	cat truth.first truth | awk '/^truth held_4/ { n[$2] += $3 }
		END { for (name in n) print "truth", name, n[name] }' >truth.both
	mv truth.both truth
	(($(truth held_4000) > 0))
	assert_storm
}

# --- Kills ---

# The recorder is killed at some time around the first forks: all processes run on.
@test "followers: leakrec is killed about the first fork" {
	local deadline

	for _ in {1..20}; do
		rm -f target.in target.out
		start_target fork_storm --threads 3 --forks 4
		attach
		go_target
		deadline=$((RANDOM % 12))
		nap "$(printf '0.%03d' $deadline)"
		kill -KILL "$LEAKREC_PID"
		wait "$LEAKREC_PID" 2>/dev/null || true
		# It says how many workers there were only when all of them have ended.
		timeout 60 cat <&"$TARGET_OUT" >truth || fail "some process is left stopped"
		wait "$TARGET_PID"
		exec {TARGET_IN}>&- {TARGET_OUT}<&-
		assert_equal "workers" "$(truth workers)" 11
	done
	"$BIN/leakprobe" list >/dev/null
	no_probes_left
}
