#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The first screen names causes: one row for a leak of many stacks.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/written

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "causes: a leak that is spread over 500 stacks is one cause, their common caller" {
	record_evenly "many_stacks --leaks 500 --interval-us 2000"
	"$BIN/leakparse" --summary -i perf.data >screen
	grep -q "^1\. growth: 500 blocks, .* in 500 stacks, +" screen || fail "$(cat screen)"
	# The largest callee has a tenth.
	grep -qE '^   descend \(many_stacks.c:[0-9]+\) < (descend < )*main' screen || fail "$(cat screen)"
	grep -qE '^   via level_0_[0-9] 10 %, level_0_[0-9] 10 %, level_0_[0-9] 10 %, 7 more$' screen ||
		fail "$(cat screen)"
	! grep -q '^2\.' screen || fail "$(cat screen)"
	# The list of stacks says the same.
	"$BIN/leakparse" -i perf.data | grep -c '^# [0-9]*\. growth' >nr
	assert_equal "stacks that grow" "$(cat nr)" 500
	# The text tells which stacks they are, and what they held together.
	"$BIN/leakparse" -i perf.data >leaks
	grep -E "^cause 1 growth firm 500 $(awk '$1 == "leak" { sum += $2 } END { print sum }' leaks) 500 descend " leaks
	assert_equal "stacks of the cause" "$(grep -c '^stack .* cause=1$' leaks)" 500
	grep -A1 '^cause 1 ' leaks | grep -qE "^$(printf '\t')descend\+0x[0-9a-f]+  .*many_stacks.c:[0-9]+  "
	grep -qE '^cause-history 1 held_bytes=[0-9,]*,132750 held_blocks=[0-9,]*,500 at_peak_bytes=132750 at_peak_blocks=500$' leaks
	if [[ -n $(command -v gnuplot) ]]; then
		"$BIN/leakplot" --plot held -o held.svg leaks
		grep -qE '>129.6 KiB at the end \(growth\): descend &lt;- main \(500 stacks\)<' held.svg
	fi
}

@test "causes: the shares of parts are those of all stacks, however many" {
	record_evenly "many_stacks --leaks 1500 --interval-us 500"
	"$BIN/leakparse" --summary -i perf.data >screen
	grep -qE '^1\. growth: 1,?500 blocks, .* in 1500 stacks' screen || fail "$(cat screen)"
	grep -qE '^   via level_0_[0-9] 10 %, level_0_[0-9] 10 %, level_0_[0-9] 10 %, 7 more$' screen ||
		fail "$(cat screen)"
}

@test "causes: --limit counts causes" {
	record_evenly "many_stacks --leaks 500 --interval-us 1000"
	"$BIN/leakparse" --summary --limit 1 -i perf.data >screen
	grep -q '^1\. growth: 500 blocks' screen || fail "$(cat screen)"
}

@test "causes: leaks with only a calling loop in common are several causes" {
	record_evenly "leak_kinds"
	"$BIN/leakparse" --summary --limit 20 -i perf.data >screen
	for function in open_session enqueue_message 'parse_header|hostile|script'; do
		grep -A2 -E '^[0-9]+\. (growth|overdue): [0-9]+ blocks, [0-9.]+ [a-zA-Z]+,? ' screen |
			grep -qE "^   .*($function)" || fail "$function: $(cat screen)"
	done
	# The pool is shown because it holds most; rows are in order nevertheless.
	"$BIN/leakparse" --summary -i perf.data >screen
	grep -q '^[0-9]*\. plateau' screen || fail "$(cat screen)"
	grep -oE '^[0-9]+\.' screen | sort -nc || fail "$(cat screen)"
}

@test "causes: of parts that come together, the functions are named that asked for the memory" {
	record_evenly "joint_parts"
	"$BIN/leakparse" --summary -i perf.data >screen
	grep -q '^1\. growth: 900 blocks, .* in 3 stacks, +' screen || fail "$(cat screen)"
	grep -qE '^   handle_request \(joint_parts.c:[0-9]+\) < main' screen || fail "$(cat screen)"
	grep -qx '   via insert_key < store_value 67 %, copy_name < parse_request 33 %' screen || fail "$(cat screen)"
}

@test "causes: a small part has a share, too" {
	{
		allocations keep_page 0 60 10 100000
		allocations keep_name 0 60 10 8
	} | recording >text
	"$BIN/leakparse" --summary text >screen
	grep -qx '   via keep_page 100 %, keep_name under 1 %' screen || fail "$(cat screen)"
}

@test "causes: where all ways lead to one function, the row is named after it" {
	record_evenly "joint_parts --ways"
	"$BIN/leakparse" --summary -i perf.data >screen
	grep -q '^1\. growth: 1200 blocks, .* in 4 stacks, +' screen || fail "$(cat screen)"
	grep -qE '^   match_font \(joint_parts.c:[0-9]+\) < draw_(text|menu) < handle_request < main' screen ||
		fail "$(cat screen)"
	grep -qE '^   via match_font < draw_(text|menu) 50 %, match_font < draw_(text|menu) 50 %$' screen ||
		fail "$(cat screen)"
}

# Six leaks of very different sizes and rates: six causes. Blocks of a seventh are overdue, and belong before the last.
@test "causes: into a file, all growth is listed, and no row on the way is left out" {
	local n

	{
		allocations forget_some 0 60 10 1000 0.001
		allocations forget_some 30 30.5 10 1000 # their stack is that of the others
		for n in {0..5}; do
			allocations "leak_$n" 0 60 "$((100 + 13 * n))e-2" $((16 << 4 * n))
		done
	} | recording | sed 's/^\t2000 /\t1000 /' >text
	"$BIN/leakparse" --summary text >screen
	grep -qE '^6\. overdue: 5 blocks, ' screen || fail "$(cat screen)"
	for n in {0..5}; do
		grep -q "^   leak_$n " screen || fail "$n: $(cat screen)"
	done
	grep -oE '^[0-9]+\.' screen | cmp - <(seq 7 | sed 's/$/./') || fail "$(cat screen)"
}

@test "causes: what an exited process held is not held at the end" {
	mkfifo nothing
	"$BIN/leakrec" bash -c 'for i in 1 2 3; do sort </dev/null; done; :' 2>leakrec.err
	"$BIN/leakparse" --summary perf.data >screen
	grep -qE ' stacks, held when their processes exited, certainly not freed$' screen || fail "$(cat screen)"
	run ! grep 'held at the end' screen
	"$BIN/leakrec" -o perf.data bash -c 'for i in 1 2 3; do sort </dev/null; done; : >sorted; read -r _ <>nothing' 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 test -e sorted
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	kill_now "$(sed -n 's/.* goes on as process //p' leakrec.err)"
	"$BIN/leakparse" --summary perf.data >screen
	grep -qE ' stacks, [0-9]+ held at the end, [0-9]+ when their processes exited, certainly not freed$' screen ||
		fail "$(cat screen)"
}
