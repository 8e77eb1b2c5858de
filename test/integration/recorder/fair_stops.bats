#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# If all processes are recorded, those that fill the rings are stopped. Others run on, almost as if alone.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn
load ../support/system_wide

start_bystander() {
	(enter "$CGROUP" "$TARGETS/bystander") >truth.bystander 3>&- &
	BYSTANDER_PID=$!
	STARTED_PIDS+=("$BYSTANDER_PID")
}

bystander() {
	awk -v name="$1" '$2 == name { print $3 }' truth.bystander
}

# leakrec gets so little time that the rings are full most of the time.
slow_down_leakrec() {
	while kill -STOP "$LEAKREC_PID" && nap 0.4 && kill -CONT "$LEAKREC_PID"; do
		nap 0.02
	done
}

# assert_stopped MS: the bystander was not stopped for longer in all.
assert_stopped() {
	(($(bystander stopped_ms) <= $1)) || fail "stopped for $(bystander stopped_ms) ms; more than $1"
}

# check_bystander OPTION...: no process but the one that floods the rings is stopped for more than a fifth of the time.
check_bystander() {
	local began_ms slowing

	start_bystander
	start_churn --threads 4
	echo "$RECORDED_PID" >"$HIERARCHY/$CGROUP/cgroup.procs"
	attach_all --cgroup "$CGROUP" -m 64 --call-graph none "$@"
	began_ms=$((${EPOCHREALTIME/[.,]/} / 1000))
	go_target
	assert_advances
	slow_down_leakrec 3>&- &
	slowing=$!
	STARTED_PIDS+=("$slowing")
	# leakrec says it while it lasts.
	wait_until 60 grep -q "^leakrec: warning: events have come faster .* above all process $RECORDED_PID; record others" leakrec.err
	kill_now "$slowing"
	kill -CONT "$LEAKREC_PID"
	kill -TERM "$BYSTANDER_PID"
	wait "$BYSTANDER_PID"
	TOOK_MS=$((${EPOCHREALTIME/[.,]/} / 1000 - began_ms))
	finish_churn
	stop_leakrec
	(($(truth continued) > 0)) || fail "the process that floods the rings was not stopped"
	assert_equal "warnings" "$(grep -c 'events have come faster' leakrec.err)" 1
	(($(bystander malloc) > 0))
	# A fifth of each second, in which a stop may have begun shortly before the first or after the last one.
	assert_stopped $((TOOK_MS / 5 + 200))
	(($(bystander longest_stop_ms) <= 300)) || fail "stopped for $(bystander longest_stop_ms) ms at once"
}

@test "fair_stops: a process that allocates little beside one that floods the rings" {
	check_bystander
	# Without perf events, the rings seldom become that full, and mostly it is not stopped at all.
	assert_stopped $((TOOK_MS / 20))
}

@test "fair_stops: the same with perf events" {
	check_bystander --perf-events
}
