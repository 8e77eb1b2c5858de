#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Exceptions, forced unwinding, longjmp() and coroutines leave probed functions. The program runs as it does without a
# recorder, and the held blocks are recorded exactly.

# shellcheck disable=SC2030,SC2031,SC2154,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/exceptions

THINGS='thing=open_thing:ret / close_thing:arg1'

setup() {
	common_setup
	[[ $(uname -m) == x86_64 ]] || skip "where functions end is known on x86-64 only"
}

teardown() {
	common_teardown
}

# assert_things GIVEN: the numbers of things given, taken and held are those that the target counted.
assert_things() {
	grep -q "^# resource thing: $(truth thing_given) given, $(truth thing_taken) taken[,;]" leaks ||
		fail "$(grep '^# resource' leaks); $(tr '\n' ' ' <truth)"
	assert_equal "things held" "$(grep -cE '^leak .* kind=thing( |$)' leaks || true)" "$(truth thing_held)"
	assert_summary lost 0
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

@test "functions of --pair are left by exceptions, longjmp(), cancellation and pthread_exit()" {
	record_attached "throwing --things" --pair "$THINGS"
	assert_things
}

@test "functions of --pair throw, by perf events" {
	record_attached "throwing --things" --pair "$THINGS" --perf-events
	assert_things
}

@test "a coroutine leaves a function of --pair on another thread" {
	record_attached "throwing --switch" --pair "$THINGS"
	assert_things
}
