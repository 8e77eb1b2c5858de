#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakscan --recording: what has become of a recording's blocks, without probes.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
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

# record TARGET [ARG...]: records it until it is ready.
record() {
	start_waiting "$@"
	REACH_PID=$RECORDED_PID
	attach
	go_waiting
	kill -INT "$LEAKREC_PID"
	finish_leakrec
}

is_ready_again() {
	[[ $(grep -c '^ready ' truth) == 2 ]]
}

is_waiting_again() {
	[[ $(grep -c waits truth) == 2 ]]
}

# record_changed BLOCKS: records reach_later; then it changes what it held.
record_changed() {
	record "$TARGETS/reach_later" "$1"
	echo later >&"$REACH_IN"
	wait_until 60 is_ready_again
}

# refused WHY: says it in one line.
refused() {
	run ! leakscan --once --recording "$FILE"
	echo "$output"
	[[ $output == "leakscan: cannot use $FILE: $1" ]]
}

@test "recording: each block is lost, held or gone, as the target says" {
	record_changed 40
	leakscan --recording perf.data --blocks >leaks
	awk '$1 == "leak" { reach = "not-scanned"; for (i = 4; i <= NF; i++) if ($i ~ /^reach=/) reach = substr($i, 7); print reach, $2, $3 }' leaks >blocks
	compare_cases
	grep -q '^# scanned: after the recording; ' leaks
	# The stack of a lost block is that of its allocation in the recording.
	[[ $(grep -c '^leak 3016 .* lose_later reach=lost$' leaks) == 40 ]]
	[[ $(grep -c '^leak 700 .* use_first reach=lost$' leaks) == 7 ]]
	grep -q '^stack .* free_later .* gone_blocks=40' leaks
	grep -q '^holder [0-9]* kept (reach_later)$' leaks
	end_waiting
}

# What the rows of the screen say, in all: sum_of "WORDS"
sum_of() {
	grep -oE "[0-9]+ (of [0-9]+ )?$1 \\(" screen | awk '{ sum += $1 } END { print sum + 0 }'
}

@test "recording: the screen says what is lost, reachable or gone, in all and by cause" {
	record_changed 40
	leakscan --recording perf.data --all >screen
	cat screen
	grep -qE '^The recording is .* long and ended .* before that\.$' screen
	grep -qx 'Of 179 blocks, 975 KiB, held at its end:' screen
	grep -qx '  lost now        87 blocks, 240 KiB: nothing leads to the block at this address' screen
	grep -qx '  still reachable 48 blocks, 315 KiB: the program can get to it' screen
	grep -qx '  gone            42 blocks, 417 KiB: no such block is at this address any more' screen
	grep -qx '  not scanned     2 blocks, 3.91 KiB: outside of the heaps, or another block lies there' screen
	# Nothing says that the block is the recorded one.
	grep -q '^Nobody saw what was freed since\.' screen
	run ! grep -E 'proven lost|not decided|No block is called lost' screen
	[[ $(sum_of "lost now") == 87 && $(sum_of "still reachable") == 48 && $(sum_of gone) == 42 ]]
	# What is lost comes first, and is a cause of its own.
	grep -A1 '^1\. ' screen | grep -qE '; [0-9]+ of [0-9]+ lost now \([0-9.]+ KiB\)$'
	grep -qE '^   held by [a-z_]+ \(reach_later\)' screen
	end_waiting
}

@test "recording: without a second snapshot nothing is lost" {
	record_changed 20
	leakscan --recording perf.data --once >screen
	cat screen
	grep -qE '^  not decided     47 blocks, ' screen
	grep -q '^No block is called lost: there is one snapshot only\.$' screen
	run ! grep 'lost now' screen
	end_waiting
}

@test "recording: what the recording's own scan said is not used" {
	start_waiting "$TARGETS/reach_later" 20
	REACH_PID=$RECORDED_PID
	attach --scan
	go_waiting
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	echo later >&"$REACH_IN"
	wait_until 60 is_ready_again
	leakscan --recording perf.data --blocks >leaks
	[[ $(grep -c '^leak 3048 .*reach=gone$' leaks) == 20 ]]
	[[ $(grep -c '^leak 3016 .*reach=lost$' leaks) == 20 ]]
	end_waiting
}

@test "recording: of another process, it is refused" {
	record "$TARGETS/reach_later" 5
	FILE=perf.data
	"$TARGETS/reach_later" 5 <reach.in >other 2>&1 3>&- {REACH_IN}>&- &
	REACH_PID=$!
	STARTED_PIDS+=("$REACH_PID")
	wait_until 60 grep -q waits other
	refused "it is of another process, or of another program that this process ran before"
	end_waiting
	wait_until 60 has_ended "$REACH_PID"
}

@test "recording: of an earlier process with this id, it is refused" {
	# Both have the same addresses.
	record setarch -R "$TARGETS/reach_later" 5
	FILE=perf.data
	end_waiting
	wait "$RECORDED_PID" || true
	exec {REACH_IN}<>reach.in
	# Chosen so, the id does not change which ids the processes of other tests get.
	python3 "$SOURCE_DIR/test/integration/support/sleepers.py" "$RECORDED_PID" \
		setarch -R "$TARGETS/reach_later" 5 <reach.in >other 2>&1 3>&- &
	later=$!
	STARTED_PIDS+=("$later")
	wait_until 60 grep -q waits other
	refused "it is of an earlier process with this id"
	echo end >&"$REACH_IN"
	wait "$later" || true
	end_waiting
}

@test "recording: of another program that the process ran, it is refused" {
	# shellcheck disable=SC2016 # the inner shell expands it
	record bash -c 'p=$1; echo waits; read -r _; echo "ready $$"; read -r _; exec "$p" 5' - "$TARGETS/reach_later"
	FILE=perf.data
	leakscan --once --recording perf.data >screen
	grep -q ' held at its end:$' screen
	echo exec >&"$REACH_IN"
	wait_until 60 is_waiting_again
	refused "it is of another process, or of another program that this process ran before"
	end_waiting
}

@test "recording: what is no recording is refused" {
	record "$TARGETS/reach_later" 5
	: >empty
	run ! leakscan --once --recording empty
	[[ $output == "leakscan: empty: "* && $output != *$'\n'* ]]
	head -c 5000 /dev/urandom >random
	run ! leakscan --once --recording random
	[[ $output == "leakscan: random: "* && $output != *$'\n'* ]]
	FILE=/dev/null
	refused "it is no file"
	FILE=missing
	refused "No such file or directory"
	cp perf.data copy
	run ! leakscan --recording copy -o copy
	[[ $output == *"--recording reads it; give -o another file" ]]
	cmp perf.data copy
	end_waiting
}

@test "recording: it goes with few other options" {
	for option in --not-held --why=0x10 --format=json --diff=other; do
		run -2 "$BIN/leakscan" -p 1 --recording perf.data --blocks "$option"
		[[ $output == *"--recording goes with -p PID, and with --blocks or --all only"* || $output == *"exclude each other"* ]]
	done
	run -2 "$BIN/leakscan" --core core --recording perf.data
	[[ $output == *"--recording goes with -p PID, and with --blocks or --all only"* ]]
}
