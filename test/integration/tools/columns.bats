#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Lines fit the terminal, and words are whole.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/written

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	{
		allocations a_function_with_a_name_of_some_length 0 60 10 1000
		allocations another_function_that_is_called_like_that 0 60 10 5000 10
		allocations load 3 3.5 2000 10000 0 4166
		allocations "$(printf 'very_long_%.0s' {1..20})" 0 60 20 10000 0 4167
		allocations fill 0 30 1 1000000
	} | recording | sed -E 's/^(\t4000.*)/\1\n\t4100 fill_from_the_outside+0x1 (\/gone\/server)/' >text
}

# on_screen COLUMNS COMMAND...: what it writes to a terminal, without colours
on_screen() {
	TERM=xterm PAGER=cat LC_ALL=C.UTF-8 script -qec "stty cols $1; '$2' ${*:3}" /dev/null </dev/null |
		sed 's/\x1b\[[0-9;]*[mHJK]//g; s/\r//g' >screen
}

# assert_fits COLUMNS: each line, but one of a single word
assert_fits() {
	local LC_ALL=C.UTF-8 line

	while IFS= read -r line; do
		((${#line} <= $1)) || [[ $line =~ ^\ *[^\ ]+$ ]] || fail "too long: $line"
	done <screen
}

@test "columns: the summary" {
	on_screen 80 "$BIN/leakparse" --summary text
	cat screen
	assert_fits 80
	grep -q ' < main$' screen
	# The same words as without a terminal.
	on_screen 200 "$BIN/leakparse" --summary --limit 4 text
	cp screen wide
	on_screen 80 "$BIN/leakparse" --summary --limit 4 text
	diff <(tr -s ' \n' '\n' <wide) <(tr -s ' \n' '\n' <screen)
	on_screen 50 "$BIN/leakparse" --summary text
	assert_fits 50
	grep -q 'a_function_with_a_name_of_some_length' screen
	"$BIN/leakparse" --summary text >plain
	grep -q '.\{90\}' plain
}

@test "columns: the tree" {
	local columns

	for columns in 80 70; do
		on_screen $columns "$BIN/leakparse" --format tree text 2\>messages
		assert_fits $columns
	done
	on_screen 80 "$BIN/leakparse" --format tree text 2\>messages
	grep -q ' a_function_with_a_name_of_some_length$' screen
	grep -q 'very_long_.*\.\.\.$' screen
	on_screen 80 "$BIN/leakparse" --from 0 --to 50 --format tree text 2\>messages
	assert_fits 80
}

@test "columns: leakfollow's heading" {
	"$BIN/leakfollow" --size 1 text | head -n 1 >first
	(($(wc -L <first) <= 80))
}

@test "columns: changes into a closed pipe: no message" {
	local status=0

	"$BIN/leakparse" --every 1 text 2>messages | head -n 1 >first || status=$?
	assert_equal "messages" "$(<messages)" ""
}
