#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Exceptions, forced unwinding, longjmp() and coroutines pass the functions that are probed: the program runs as
# it does alone, and what it holds is recorded to the block.

# shellcheck disable=SC2030,SC2031,SC2154,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load helpers

LIBS=/usr/lib/x86_64-linux-gnu
THINGS='thing=open_thing:ret / close_thing:arg1'

setup() {
	common_setup
	[[ $(uname -m) == x86_64 ]] || skip "where functions end is known on x86-64 only"
}

teardown() {
	common_teardown
}

# The sizes that the target tells of; its own, and its libraries', other blocks do not count.
assert_blocks() {
	grep -E '^truth held_300[0-9] ' truth | sed -E 's/^truth held_([0-9]+) /\1 /' | sort >sizes.truth
	awk '$1 == "leak" && $2 > 3000 && $2 < 3010 { n[$2]++ } END { for (s in n) print s, n[s] }' leaks |
		sort >sizes.leaks
	[[ -s sizes.truth ]]
	diff sizes.truth sizes.leaks || fail "leaks by size differ (<: the target's, >: leakparse's)"
	assert_summary lost 0
	for key in free_unknown double_free still_held realloc_unknown; do
		assert_summary "$key" 0
	done
	# Each exception was thrown where it would have been.
	assert_equal "exceptions" "$(truth thrown)" 520
}

# assert_things GIVEN: and taken and held, as the target says.
assert_things() {
	grep -q "^# resource thing: $(truth thing_given) given, $(truth thing_taken) taken[,;]" leaks ||
		fail "$(grep '^# resource' leaks); $(tr '\n' ' ' <truth)"
	assert_equal "things held" "$(grep -cE '^leak .* kind=thing( |$)' leaks || true)" "$(truth thing_held)"
	assert_summary lost 0
}

no_return_probes_on_operators() {
	! "$BIN/leakprobe" add --pid "$RECORDED_PID" --dry-run | grep -E '^r:[^ ]*/(operator_)?new' ||
		fail "a return probe on an operator"
}

# with_allocator LIBRARY [OPTION...]: the target with that library before libc, attached to.
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

@test "a program's own operators throw" {
	record_attached throwing_own
	assert_blocks
}

@test "a program's own operators throw, in a command, by call frame information" {
	record_command throwing_own --call-graph dwarf
	assert_blocks
}

@test "a program's own operators throw, by perf events" {
	record_attached throwing_own --perf-events
	assert_blocks
}

@test "a static program's own operators throw" {
	record_attached throwing_static --mismatch
	assert_blocks
}

@test "functions of the user's throw, are jumped out of, cancelled and left by pthread_exit()" {
	record_attached "throwing --things" --pair "$THINGS"
	assert_things
}

@test "functions of the user's throw, by perf events" {
	record_attached "throwing --things" --pair "$THINGS" --perf-events
	assert_things
}

@test "a coroutine leaves a function of the user's on another thread" {
	record_attached "throwing --switch" --pair "$THINGS"
	assert_things
}

@test "perf record reads leakprobe's probes of what throws" {
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
