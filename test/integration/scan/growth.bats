#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakscan --diff: what a process has more of than before, without any probe.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/scan

# A process that has lost 50 blocks of 3000 bytes and kept 40 of 3008 since before.json.
start_grown() {
	REACH_WORD=waits start_reach reach_leaks 50 40
	leakscan --format json >before.json
	echo go >&"$REACH_IN"
	wait_until 60 says_ready "$REACH_PID"
}

# refused_file WHY [OPTION...]
refused_file() {
	run ! leakscan --diff changed.json "${@:2}"
	echo "$output"
	[[ $output == "leakscan: cannot compare with changed.json: "*"$1"* && $output != *$'\n'* ]]
}

@test "growth: the sizes that grew, the most bytes first" {
	start_grown
	leakscan --diff before.json >screen
	cat screen
	grep -qE '^In use: .*, 26[0-9] KiB more than .* before$' screen
	sed -n '/TYPE$/,$p' screen >rows
	sed -n 2p rows | grep -qE '^ +146 KiB +50 +3000 +50 +50  -$'
	sed -n 3p rows | grep -qE '^ +118 KiB +40 +3016 +40 +0  -$'
	leakscan --format json >after.json
	leakscan --diff after.json >screen
	grep -q '^Nothing grew: ' screen
	stop_reach
}

@test "growth: C++ types with syntax in their names are found again" {
	start_reach reach_cxx
	leakscan --format json >before.json
	leakscan --diff before.json >screen
	grep -q '^Nothing grew: ' screen
	sed '/^{"size":216,.*_quoted/s/"blocks":1,/"blocks":0,/' before.json >changed.json
	leakscan --diff changed.json >screen
	cat screen
	grep -qE '^ +216 bytes +1 +216 +1 +1  reach::operator"" _quoted\(unsigned long long\)::quoted$' screen
	stop_reach
}

@test "growth: files of other processes are refused, unless the user wants it" {
	start_grown
	sed '1s/"start":[0-9]*/"start":5/' before.json >changed.json
	refused_file "it is of an earlier process with this id; --other-process"
	sed '1s/"pid":[0-9]*/"pid":1/' before.json >changed.json
	refused_file "it is of another process; --other-process"
	leakscan --diff changed.json --other-process >screen
	grep -qE '^ +146 KiB +50 ' screen
	stop_reach
}

@test "growth: a file that leakscan did not write is refused" {
	start_grown
	: >changed.json
	refused_file "it is not as leakscan --format json writes it"
	jq . before.json >changed.json
	refused_file "it is not as leakscan --format json writes it"
	sed '$d' before.json >changed.json
	refused_file "it is not as leakscan --format json writes it"
	sed 's/^{"size":/{"size":-/' before.json >changed.json
	refused_file "it is not as leakscan --format json writes it"
	sed 's/^{"size":/{"size":9999999999999999/' before.json >changed.json
	refused_file "it is not as leakscan --format json writes it"
	head -c 3000 before.json | tr '{' '\0' >changed.json
	refused_file "it is not as leakscan --format json writes it"
	truncate -s 257M changed.json
	refused_file "it has more than 256 MiB"
	cp before.json changed.json
	run ! leakscan --diff changed.json -o changed.json
	[[ $output == *"--diff reads it; give -o another file" ]]
	cmp before.json changed.json
	mkfifo fifo
	run ! leakscan --diff fifo
	[[ $output == *"it is no file" ]]
	stop_reach
}
