#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --scan: what still leads to the blocks that are not lost.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/recorded

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# record_holders BLOCKS [TARGET]
record_holders() {
	start_waiting "${2:-$TARGETS/reach_holders}" "$1"
	attach --scan
	finish_scanned
}

# The names of the holders of all blocks of one size, each with the number of blocks.
holders_of() {
	awk -v size="$1" '
		$1 == "holder" { number = $2; sub(/^holder [0-9]+ /, ""); name[number] = $0 }
		$1 == "leak" && $2 == size { holder = $NF; sub(/^holder=/, "", holder); nr[name[holder]]++ }
		END { for (holder in nr) print nr[holder], holder }' leaks
}

@test "holders: each cache is held by its variable, the stack of its thread, or a mapping" {
	record_holders 60
	thread=$(awk '$1 == "leak" && $2 == 5008 { print $7; exit }' leaks)
	[[ $(holders_of 3000) == "60 query_cache (reach_holders)" ]]
	[[ $(holders_of 4008) == "60 session_list (reach_holders)" ]]
	[[ $(holders_of 6008) =~ ^"60 an anonymous mapping of "[1-9][0-9.]*" KiB"$ ]]
	[[ $(holders_of 5008) == "60 the stack of thread $thread" ]]
	"$BIN/leakparse" --summary --limit 9 <perf.data >screen
	cat screen
	# Below the path of its stack.
	grep -A1 '^   .*cache_query <' screen | grep -qx '   held by query_cache (reach_holders)'
	grep -A1 '^   .*begin_session <' screen | grep -qx '   held by session_list (reach_holders)'
	grep -A1 '^   .*add_job <' screen | grep -qx "   held by the stack of thread $thread"
	grep -A1 '^   .*add_note <' screen | grep -qE '^   held by an anonymous mapping of [1-9][0-9.]* KiB$'
	"$BIN/leakparse" <perf.data >by-verdict
	[[ $(grep -c '^stack .* reached_blocks=60 .*holder=[1-9]' by-verdict) == 4 ]]
	"$BIN/leakparse" --format json <perf.data >report.json
	[[ $(jq -r '.stacks[] | select(.held_bytes == 180000) | .holder' report.json) == "query_cache (reach_holders)" ]]
	[[ $(jq '[.blocks[] | select(.holder == "session_list (reach_holders)")] | length' report.json) == 60 ]]
}

@test "holders: a heap of many blocks is described by some of them" {
	record_holders 9000
	"$BIN/leakparse" --summary --limit 9 <perf.data >screen
	cat screen
	grep -A1 '^   .*cache_query <' screen | grep -qx '   held by query_cache (reach_holders)'
	grep -A1 '^   .*begin_session <' screen | grep -qx '   held by session_list (reach_holders)'
	grep -A1 '^   .*add_job <' screen | grep -q '^   held by the stack of thread '
	# Each line of leakscan is one of these samples.
	held=$(grep -c ' holder=' leaks)
	((held > 8000 && held <= 16384))
}

@test "holders: a hostile name of a variable stays on its line, and is cut" {
	evil=$'\e[2Jevil\nleak 1 name'
	long=$(printf 'x%.0s' {1..3000})
	objcopy --redefine-sym query_cache="$evil" --redefine-sym session_list="$long" "$TARGETS/reach_holders" hostile
	record_holders 60 ./hostile
	"$BIN/leakparse" --summary --limit 9 <perf.data >screen
	cat -v screen
	run ! grep -q $'\e' screen leaks
	[[ $(grep -c '^leak ' leaks) == $(grep -c '^leak .* 0x' leaks) ]]
	grep -qxF '   held by \x1b[2Jevil\x0aleak 1 name (hostile)' screen
	grep -q '^holder [0-9]* \\x1b\[2Jevil\\x0aleak 1 name (hostile)$' leaks
	grep -q '^   held by xxx*\.\.\.' screen
	[[ $(awk '/held by/ && length($0) > 80' screen) == "" ]]
	"$BIN/leakparse" --format json <perf.data >report.json
	jq -e '[.stacks[] | select(.holder)] | length >= 3' report.json
	jq -e 'any(.stacks[]; .holder == "\u001b[2Jevil\nleak 1 name (hostile)")' report.json
}
