#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What the first screen says about small and short recordings.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "first screen: one event, one allocation and one block" {
	cat >one.c <<-'END'
		#include <stdlib.h>
		int main(void)
		{
			void *volatile p = malloc(7);

			(void)p;
			return 0;
		}
	END
	gcc -O1 -o one one.c
	"$BIN/leakrec" -o perf.data -- ./one 2>leakrec.err
	tail -n 1 leakrec.err | grep -q '^leakrec: 1 event, ' || fail "$(cat leakrec.err)"
	"$BIN/leakparse" --summary -i perf.data >screen
	head -n 1 screen | grep -q ' recorded, 1 allocation, 0 frees, 0 events lost$' || fail "$(cat screen)"
	"$BIN/leakparse" -i perf.data -o leaks 2>messages
	grep -q ' 1 event, 1 allocation, 0 frees: 1 block ' messages || fail "$(cat messages)"
}

@test "first screen: the locales that a command of a few milliseconds loads are no leak" {
	cat >locales.c <<-'END'
		#include <stdlib.h>
		int main(void)
		{
			for (int i = 0; i < 100; i++)
				if (!malloc(64))
					return 1;
			return 0;
		}
	END
	gcc -O0 -o locales locales.c
	evenly "$BIN/leakrec" -o perf.data -- ./locales 2>leakrec.err
	"$BIN/leakparse" --summary -i perf.data >screen
	grep -q '100 blocks' screen || fail "$(cat screen)"
	if grep -qE '^ *([0-9]+\. )?(growth|overdue|burst)' screen; then fail "$(cat screen)"; fi
	grep -q '^! too short to tell a leak by age or growth: ' screen || fail "$(cat screen)"
}

@test "first screen: processes that have exited are listed with what they held" {
	# On a slow machine, many blocks of one place would look like growth.
	echo 'int main(void) { return !__builtin_malloc(64); }' | gcc -x c -O0 -o job -
	"$BIN/leakrec" -o perf.data -- sh -c 'for i in 1 2 3; do ./job; done' 2>leakrec.err
	"$BIN/leakparse" --summary -i perf.data >screen
	grep -qx '  4 processes held blocks when they exited; those with the most first:' screen || fail "$(cat screen)"
	assert_equal "processes" "$(grep -cE '^  (job|sh) \([0-9]+\): [1-9][0-9]* blocks?, [0-9.]+ [A-Za-z]+$' screen)" 4
}
