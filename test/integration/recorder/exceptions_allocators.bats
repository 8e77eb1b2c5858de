#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Exceptions pass the operators of jemalloc, tcmalloc and libstdc++. The program runs as it does without a recorder, and
# the held blocks are recorded exactly.

# shellcheck disable=SC2030,SC2031,SC2154,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/exceptions

LIBS=/usr/lib/x86_64-linux-gnu

setup() {
	common_setup
	[[ $(uname -m) == x86_64 ]] || skip "where functions end is known on x86-64 only"
}

teardown() {
	common_teardown
}

no_return_probes_on_operators() {
	! "$BIN/leakprobe" add --pid "$RECORDED_PID" --dry-run | grep -E '^r:[^ ]*/(operator_)?new' ||
		fail "a return probe on an operator"
}

# with_allocator LIBRARY [OPTION...]: attaches to the target, which has that library before libc.
with_allocator() {
	[[ -e $LIBS/$1 ]] || skip "no $1"
	LD_PRELOAD=$LIBS/$1 start_target throwing
	no_return_probes_on_operators
	attach "${@:2}"
	go_target
	finish_target
	finish_leakrec
	parse
	assert_blocks
}

@test "jemalloc's operators throw" {
	with_allocator libjemalloc.so.2
}

@test "jemalloc's operators throw, by perf events" {
	with_allocator libjemalloc.so.2 --perf-events
}

@test "tcmalloc's operators throw" {
	with_allocator libtcmalloc_minimal.so.4
}

@test "tcmalloc's operators throw, by perf events" {
	with_allocator libtcmalloc_minimal.so.4 --perf-events --call-graph dwarf
}

@test "jemalloc's operators throw, by a filter" {
	with_allocator libjemalloc.so.2 --size 3001..3009
}

@test "libstdc++'s operators throw with --mismatch" {
	record_attached throwing --mismatch
	assert_blocks
	assert_summary mismatch 0
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

@test "jemalloc, mapped while recording" {
	[[ -e $LIBS/libjemalloc.so.2 ]] || skip "no libjemalloc.so.2"
	"$BIN/leakrec" -m 512 -o perf.data -- env LD_PRELOAD="$LIBS/libjemalloc.so.2" "$TARGETS/throwing" \
		>truth 2>leakrec.err || fail "$(cat leakrec.err)"
	parse
	assert_blocks
}

@test "jemalloc and libstdc++, in a forked child" {
	local program

	[[ -e $LIBS/libjemalloc.so.2 ]] || skip "no libjemalloc.so.2"
	for program in "LD_PRELOAD=$LIBS/libjemalloc.so.2 $TARGETS/throwing" "$TARGETS/throwing_own" \
		"$TARGETS/throwing"; do
		"$BIN/leakrec" -m 512 --mismatch -o perf.data -- sh -c "$program; exit \$?" >truth 2>leakrec.err ||
			fail "$program: $(cat leakrec.err)"
		parse
		assert_blocks
	done
}
