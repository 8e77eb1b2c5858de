#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As exceptions_allocators.bats, in programs that leakrec starts, and in their children.

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
