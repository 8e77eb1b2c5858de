#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As dlopen_watch.bats, for programs with another libc, or their own, that recorded processes execute.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# run_program PROGRAM...: leakrec starts a shell, which runs the program in a child and then executes it itself.
run_program() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	"$BIN/leakrec" -m 512 -o perf.data -- sh -c '"$@" >first; echo $$ >pid; exec "$@"' sh "$@" \
		>truth 2>leakrec.err || fail "$(cat leakrec.err)"
	parse
}

@test "dlopen watch: a static program, by fork and exec, and by exec" {
	run_program "$TARGETS/cases_static" --rounds 40
	assert_equal "processes" "$(awk '$1 == "leak" && $2 == 3072 { n[$6]++ } END { for (p in n) print n[p] }' leaks | tr '\n' ' ')" "40 40 "
	assert_equal "of the shell's process" "$(awk -v pid="$(cat pid)" '$1 == "leak" && $2 == 3072 && $6 == pid' leaks | wc -l)" 40
}

@test "dlopen watch: a program with another libc, by fork and exec, and by exec" {
	run_program "$TARGETS/musl_random_calls" --seed 7
	sed -nE 's/^truth held_([0-9]+) ([0-9]+)$/\1 \2/p' truth | sort >sizes.truth
	(($(wc -l <sizes.truth) > 20))
	with_stacks | awk -v pid="$(cat pid)" '$1 == "leak" && $6 == pid && $8 != "sh" && $2 < 65536 { n[$2]++ }
		END { for (s in n) print s, n[s] }' | sort | diff sizes.truth -
}

# A new file may get the inode number of a removed one. Writing into the file does the same on every file system.
@test "dlopen watch: a program in the file of one without an allocator" {
	cp "$(type -P true)" program
	# shellcheck disable=SC2016 # expanded by the inner shell
	"$BIN/leakrec" -o perf.data -- sh -c './program; cat "$1" >program; ./program' sh "$TARGETS/cases_static" \
		>truth 2>leakrec.err || fail "$(cat leakrec.err)"
	parse
	assert_equal "leaks" "$(grep -c '^leak 3072 ' leaks)" "$(truth held_3072)"
	(($(truth held_3072) > 0))
	assert_summary lost 0
}
