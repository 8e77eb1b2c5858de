#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --scan: a recording also says which of its blocks nothing points to any more.

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

# start_leaker LOST KEPT [ROUNDS]
start_leaker() {
	start_waiting "$TARGETS/reach_leaks" "$@"
}

# record_scanned LOST KEPT [OPTION...]: the target loses and keeps blocks, and is scanned where the recording ends.
record_scanned() {
	start_leaker "$1" "$2"
	attach --scan "${@:3}"
	finish_scanned
}

# The words of the blocks of one size.
reach_of() {
	awk -v size="$1" '$1 == "leak" && $2 == size' leaks | grep -o 'reach=[a-z-]*' | sort | uniq -c | awk '{ print $1, $2 }'
}

@test "scan: lost blocks are proven lost and come first, kept ones are not" {
	record_scanned 50 40
	[[ $(reach_of 3000) == "50 reach=lost" ]]
	[[ $(reach_of 3008) == "40 reach=held" ]]
	"$BIN/leakparse" <perf.data >by-verdict
	grep -q '^stack 1 .* lost_blocks=50 lost_bytes=150000 reached_blocks=0' by-verdict
	grep -q '^stack 2 .* lost_blocks=0 lost_bytes=0 reached_blocks=40' by-verdict
	"$BIN/leakparse" --summary <perf.data >screen
	cat screen
	grep -q '^Scanned: 50 blocks, 146 KiB, are proven lost' screen
	# Verdicts are not certain here; each line has the same four pairs of a number and its bytes.
	awk '
		/^ +proven lost +still reachable +not decided +not scanned$/ { on = 1; next }
		on && NF == 0 { exit }
		on { lines++; wide += length($0) > 80; text = text $0 }
		END { print text; exit !(lines && !wide && text ~ / 50 +146 KiB/ && text ~ / 40 +118 KiB/) }' screen
	grep -A1 '^1\. ' screen | grep -q '; 50 of 50 proven lost$'
	grep -q '; 40 of 40 still reachable$' screen
	"$BIN/leakparse" --reach lost <perf.data >only-lost
	[[ $(grep -c "^leak " only-lost) == $(grep -c ' reach=lost$' leaks) ]]
	run ! grep reach=held only-lost
	run -3 "$BIN/leakparse" -i perf.data --format tree --reach lost --fail-on-leak
	[[ $output == *" lose "* && $output != *" keep "* ]]
	"$BIN/leakparse" --format tree <perf.data >calls
	grep -q ' PROVEN LOST ' calls
	grep -q ' 50 *146 KiB .* lose ' calls
	grep -q ' 40 *- .* keep ' calls
	"$BIN/leakplot" leaks -o leaks.svg
	grep -q '90 held blocks, .* in reach_leaks ' leaks.svg
	run ! grep 'none looks like a leak' leaks.svg
	grep -q '50 proven lost, 40 still reachable' leaks.svg
	grep -q '50 x 2.9 KiB, 50 proven lost: .*lose' leaks.svg
	grep -q '40 x 2.9 KiB: .*keep' leaks.svg
	"$BIN/leakparse" --format json <perf.data >report.json
	[[ $(jq '[.blocks[] | select(.reach == "lost")] | length' report.json) == 50 ]]
	[[ $(jq '[.stacks[].lost_bytes] | add' report.json) == 150000 ]]
}

@test "scan: what is lost is a cause of its own, although kept blocks come with it" {
	start_leaker 0 0 200
	attach --scan
	finish_scanned
	"$BIN/leakparse" <perf.data >by-verdict
	# A cause of several stacks would have a line.
	run ! grep '^cause ' by-verdict
	grep -q '^stack 1 .* lost_blocks=[1-9]' by-verdict
	grep -q '^stack 2 .* lost_blocks=0 lost_bytes=0 reached_blocks=[1-9]' by-verdict
	"$BIN/leakparse" --summary <perf.data >screen
	cat screen
	grep -A2 '^1\. ' screen >first
	grep -q ' proven lost' first
	grep -q ' < lose < ' first
}

@test "scan: perf events record it, too" {
	record_scanned 20 10 --perf-events
	[[ $(reach_of 3000) == "20 reach=lost" ]]
	[[ $(reach_of 3008) == "10 reach=held" ]]
}

# says_unseen TEXT: every first screen says it once.
says_unseen() {
	"$BIN/leakparse" --summary <perf.data >screen
	cat screen
	[[ $(grep -c "$1" screen) == 1 ]]
	[[ $(grep -c "^# not seen: $1" leaks) == 1 ]]
	"$BIN/leakparse" --format json <perf.data >report.json
	[[ $(jq -r '.summary.not_seen[].what' report.json) == "$1" ]]
	[[ $(jq -r '.summary.not_seen[].pid' report.json) == "$RECORDED_PID" ]]
	"$BIN/leakparse" --format html <perf.data >report.html
	[[ $(grep -c "not seen by the scan: $1 of process $RECORDED_PID: a block whose only pointer" report.html) == 1 ]]
	"$BIN/leakplot" leaks -o leaks.svg
	[[ $(grep -c 'not seen: places in the kernel' leaks.svg) == 1 ]]
}

@test "scan: everything says where a pointer may be that was not seen" {
	start_leaker 20 10 0 pipe
	attach --scan
	finish_scanned
	grep -q 'not seen: 1 pipe with unread bytes; a block whose only pointer is in there counts as held by nothing' leakrec.err
	[[ $(reach_of 3000) == "20 reach=lost" ]]
	says_unseen "1 pipe with unread bytes"
}

@test "scan: nothing is said of places that are not there" {
	record_scanned 20 10
	run ! grep -E 'not.seen' leakrec.err leaks
	"$BIN/leakparse" --summary <perf.data >screen
	run ! grep 'not seen' screen
	"$BIN/leakplot" leaks -o leaks.svg
	run ! grep 'not seen' leaks.svg
}

# Stops the daemon while it sleeps between two requests.
is_stopped_idle() {
	kill -STOP "$RECORDED_PID"
	wait_until 60 grep -q '^State:[[:space:]]*T' "/proc/$RECORDED_PID/status" || return
	! grep -q '^230 ' "/proc/$RECORDED_PID/syscall" || return 0 # clock_nanosleep
	kill -CONT "$RECORDED_PID"
	return 1
}

has_slept() {
	(($(awk '$1 == "voluntary_ctxt_switches:" { print $2 }' "/proc/$RECORDED_PID/status") >= $1))
}

# lost_fonts: how many are lost, if nothing else is, and the cache is held.
lost_fonts() {
	"$BIN/leakscan" -p "$RECORDED_PID" --pause-limit 30 --blocks >blocks
	(($(grep -c '^held 1032 ' blocks) >= 40)) || return
	awk '$1 != "held" && ($1 != "lost" || $2 != 3080) { print > "/dev/stderr"; wrong = 1 }
		$1 == "lost" { nr++ }
		END { print nr + 0; exit wrong }' blocks
}

# Right after a request that leaks, a register may still have the font: stops it later then.
is_stopped_without_font() {
	is_stopped_idle || return
	! lost_fonts >fonts || return 0
	kill -CONT "$RECORDED_PID"
	return 1
}

@test "scan: of the demo daemon, each font from before and after the attach, and no cache entry" {
	local before all

	[[ $(uname -m) == x86_64 ]] || skip "the number of a system call"
	start_target leaky_daemon --interval-us 1000
	go_target
	wait_until 60 has_slept 500
	wait_until 60 is_stopped_without_font
	before=$(<fonts)
	((before >= 50))
	attach --scan
	kill -CONT "$RECORDED_PID"
	wait_until 60 has_slept 1500
	wait_until 60 is_stopped_without_font
	all=$(<fonts)
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	cat leakrec.err
	kill -TERM "$RECORDED_PID"
	kill -CONT "$RECORDED_PID"
	finish_target
	cat truth
	grep -qx "truth leaked_3072 $all" truth
	parse
	[[ $(reach_of 3072) == "$((all - before)) reach=lost" ]]
	[[ $(grep -c 'reach=lost' leaks) == "$((all - before))" ]]
	# The scan knows the older ones, too.
	grep -qE "^leakrec: scan 1: $all blocks, .* are lost; " leakrec.err
	"$BIN/leakparse" --summary <perf.data >screen
	cat screen
	grep -q "^Scanned: $((all - before)) blocks, .* are proven lost" screen
}

is_not_traced() {
	grep -q '^TracerPid:[[:space:]]*0$' "/proc/$RECORDED_PID/status"
}

@test "scan: a second signal leaves it out, and the process goes on" {
	start_leaker 5 5
	attach --scan
	go_waiting
	# Else it may have ended by then.
	pkill -STOP -P "$LEAKREC_PID" leak-scanner
	kill -INT "$LEAKREC_PID"
	wait_until 60 grep -q scanning leakrec.err
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	grep -q 'the scan was left out' leakrec.err || fail "$(cat leakrec.err)"
	grep -q ', 0 events lost' leakrec.err
	wait_until 60 is_not_traced
	end_waiting
	wait "$RECORDED_PID"
	parse
}

@test "scan: only of processes that are named" {
	run -2 "$BIN/leakrec" -a --scan -o perf.data
	[[ $output == *"--scan needs -p PID, --unit, --program or a command"* ]]
}
