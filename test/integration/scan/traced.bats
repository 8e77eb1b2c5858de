#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Scans of allocators whose heap leakscan does not read: only recorded blocks are known, and nothing is called lost.

# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/recorded
load ../support/scan

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# start_with LIBRARY NR: reach_traced with that allocator.
start_with() {
	local library

	library=$(ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }')
	[[ $library ]] || skip "$1 is not installed"
	start_waiting env LD_PRELOAD="$library" "$TARGETS/reach_traced" "$2"
	REACH_PID=$RECORDED_PID
}

# What the file leaks says of the blocks: "CLASS ADDRESS".
classes() {
	awk '$1 == "leak" {
		reach = "not-scanned"
		for (i = 4; i <= NF; i++) if ($i ~ /^reach=/) reach = substr($i, 7)
		print reach, $3
	}' "$1"
}

# check_classes LEAKS LEAST: nothing that the target holds is without a holder, and at least so many of its lost blocks
# are. The others have a pointer in the allocator.
check_classes() {
	classes "$1" | awk -v least="$2" '
		FNR == NR { class[$2] = $1; next }
		$1 == "case" {
			nr++
			found = class[$4]
			right = found == $3 || ($3 == "no-holder" && found == "pointed-to")
			nr_found += found == "no-holder"
			if (found == "no-holder")
				is_lost[$4] = $3 == "no-holder"
			if (!right) { print $2 ": " found ", not " $3; wrong++ }
		}
		END {
			for (address in class)
				if (class[address] == "no-holder" && !is_lost[address]) {
					print address " has a holder"
					wrong++
				}
			print nr_found + 0 " of " nr " blocks have none"
			exit wrong > 0 || nr < 100 || nr_found < least
		}' - truth
}

# record_with LIBRARY LEAST [OPTION...]
record_with() {
	start_with "$1" 200
	attach --scan "${@:3}"
	finish_scanned
	check_classes leaks "$2"
	grep -qE 'scan 1: of [0-9]+ recorded blocks, .* no holder was found; with this allocator, that is no proof$' \
		leakrec.err
	run ! grep -E 'reach=(lost|cycle|lost-through|held)' leaks
}

@test "traced: jemalloc: no holder is found of lost blocks only, and nothing is called lost" {
	record_with libjemalloc.so.2 50
	"$BIN/leakparse" --summary <perf.data >screen
	cat screen
	grep -qE '^Scanned: [0-9]+ blocks, .*, with no holder found: nothing points to them; not proven' screen
	grep -qE '^ +no holder found +pointed to +not decided +not scanned$' screen
	grep -q '^   pointed to by ' screen
	run ! grep -E 'proven lost|still reachable|held by' screen
	"$BIN/leakparse" --reach no-holder <perf.data >only
	[[ $(grep -c '^leak ' only) == $(grep -c 'reach=no-holder' leaks) ]]
	"$BIN/leakparse" --format tree <perf.data >calls
	grep -q ' NO HOLDER ' calls
	grep -q '(pointed to by ' calls
	"$BIN/leakparse" --format json <perf.data >report.json
	[[ $(jq '[.stacks[].no_holder_blocks] | add' report.json) == $(grep -c 'reach=no-holder' leaks) ]]
	[[ $(jq '[.stacks[].lost_blocks] | add' report.json) == 0 ]]
	"$BIN/leakparse" --format html <perf.data >report.html
	grep -q '"worst":1' report.html
	"$BIN/leakplot" leaks -o leaks.svg
	grep -qE '[0-9]+ no holder found, [0-9]+ pointed to' leaks.svg
	run ! grep 'proven lost' leaks.svg
}

@test "traced: jemalloc: perf events record the blocks, too" {
	record_with libjemalloc.so.2 50 --perf-events
}

@test "traced: tcmalloc" {
	record_with libtcmalloc_minimal.so.4 100
}

@test "traced: mimalloc" {
	record_with libmimalloc.so.2 50
}

@test "traced: a recording that has ended has the blocks" {
	start_with libjemalloc.so.2 200
	attach
	go_waiting
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	leakscan --recording perf.data --blocks >leaks
	# What the thread has freed since has no holder, either: another block may have its address.
	awk '$1 == "case" { print $4 }' truth >own
	grep -F -f own leaks >leaks.own
	check_classes leaks.own 50
	leakscan --recording perf.data >screen
	cat screen
	grep -qE '^  no holder found +[0-9]+ blocks, .*: nothing points there: lost, or freed since$' screen
	grep -qE '^  pointed to +[0-9]+ blocks, ' screen
	run ! grep -E 'lost now|still reachable' screen
	end_waiting
}

@test "traced: SIGUSR2 asks for the blocks of that moment" {
	start_with libjemalloc.so.2 100
	attach --scan
	go_waiting
	kill -USR2 "$LEAKREC_PID"
	wait_until 60 grep -q 'scan 1: ' leakrec.err
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	grep -q 'scan 2: of [0-9]* recorded blocks' leakrec.err
	end_waiting
	parse
	check_classes leaks 20
}

@test "traced: without recorded blocks there is a result" {
	start_with libjemalloc.so.2 0
	attach --scan
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	grep -q 'scan 1: of 0 recorded blocks, 0 bytes, no holder was found' leakrec.err
	run ! grep 'no result' leakrec.err
	end_waiting
}

@test "traced: glibc's own blocks are scanned as a whole, without a list" {
	start_waiting "$TARGETS/reach_leaks" 20 10
	attach --scan
	finish_scanned
	grep -q '^leakrec: scan 1: .* of the heap are lost' leakrec.err
	run ! grep 'no holder' leakrec.err
	[[ $(grep -c 'reach=lost' leaks) == 20 ]]
}
