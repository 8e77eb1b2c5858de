#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As exceptions_allocators.bats, recorded by perf events or by perf record.

# shellcheck disable=SC2030,SC2031,SC2154,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/exceptions

setup() {
	common_setup
	[[ $(uname -m) == x86_64 ]] || skip "where functions end is known on x86-64 only"
}

teardown() {
	common_teardown
}

@test "jemalloc's operators throw, by perf events" {
	with_allocator libjemalloc.so.2 --perf-events
}

@test "tcmalloc's operators throw, by perf events" {
	with_allocator libtcmalloc_minimal.so.4 --perf-events --call-graph dwarf
}

@test "libstdc++'s operators throw with --mismatch, by perf events" {
	record_attached throwing --mismatch --perf-events
	assert_blocks
	assert_summary mismatch 0
}

@test "perf record uses leakprobe's probes on functions that throw" {
	[[ -e $LIBS/libjemalloc.so.2 ]] || skip "no libjemalloc.so.2"
	LD_PRELOAD=$LIBS/libjemalloc.so.2 start_target throwing
	add_probes --pid "$RECORDED_PID"
	local groups=() group

	for group in $(added_groups); do
		groups+=(-e "$group:*")
	done
	mkfifo control ack
	exec {CONTROL}<>control {ACK}<>ack
	perf record -q -D -1 --control "fd:$CONTROL,$ACK" -m 4096 "${groups[@]}" -p "$RECORDED_PID" -o perf.data \
		2>perf.err 3>&- &
	STARTED_PIDS+=($!)
	echo enable >&"$CONTROL"
	read -r -t 60 -u "$ACK" || fail "perf record: $(cat perf.err)"
	go_target
	finish_target
	wait "${STARTED_PIDS[-1]}" || fail "perf record: $(cat perf.err)"
	parse
	assert_blocks
	perf script -i perf.data -F comm,tid,pid,time,event,ip,sym,trace >script
	"$BIN/leakparse" --order time <script >leaks
	assert_blocks
}
