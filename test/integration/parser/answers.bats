#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# One question has one answer, in whatever report it is asked.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/written

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# The blocks of a verdict on the screen: the fourth word.
on_screen() {
	awk -v verdict="$1" '$1 == verdict { print $4 }' screen
}

@test "answers: how many blocks have a verdict" {
	local verdict nr

	{
		allocations answer 0 60 100 100 0.01
		allocations answer 0 60 1 100 # forgotten
		allocations cache 0 60 10 5000 20
	} | recording | sed -E 's/^\t3000 /\t1000 /; s/^\t2000 /\t1000 /' >text # they have one stack
	"$BIN/leakparse" text >leaks 2>messages
	"$BIN/leakparse" --summary text >screen
	cat screen
	awk '$1 == "leak" { n[$9]++ } END { for (v in n) print v, n[v] }' leaks | sort >verdicts
	(($(wc -l <verdicts) > 1))
	while read -r verdict nr; do
		assert_equal "$verdict on the screen" "$(on_screen "$verdict")" "$nr"
		assert_summary "${verdict//-/_}_blocks" "$nr"
	done <verdicts
	# The youngest blocks of the leak, whose stack grows.
	grep -qE '^  not-yet +- stacks +5 blocks ' screen
}

@test "answers: several processes are not called after one of them" {
	{
		allocations answer 0 10 10 100 0 4165
		allocations answer 0 10 10 100 0 4166
	} | recording >text
	"$BIN/leakparse" --summary text | head -n 1 >first
	grep -q '^2 processes: 9.90 s recorded, 200 allocations' first
	"$BIN/leakparse" --summary --thread 4166 text | head -n 1 >first
	grep -q '^server (4166): 9.90 s recorded' first
}
