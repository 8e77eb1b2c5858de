#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Children of recorded processes: none is missed, whichever way they are created.

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

@test "followers: many children at once, attached" {
	record_attached "fork_storm --threads 4 --forks 12"
	(($(truth workers) > 30))
	assert_storm
	assert_no_probes_left
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

@test "followers: threads of forked children come and go" {
	record_attached fork_threads --call-graph none
	assert_storm 4001 4002 4003 4004 4005 4006
}

@test "followers: threads of forked children come and go, programs on perf events" {
	require_way single
	record_attached fork_threads --call-graph none --record-by single
	assert_storm 4001 4002 4003 4004 4005 4006
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
