#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakparse reads perf script's text of a recording, and reports the same as for the recording itself.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

# Prints each leak with its stack in one line, without stack numbers and without what depends on exact times: perf
# script cuts times to microseconds, so leaks of two CPUs may look simultaneous. Nor does its text show the address of a
# function that was recorded only at its return.
told() {
	with_stacks "$1" | grep -v '^#' | sed -E 's/([0-9]+\.[0-9]{6})[0-9]{3} /\1 /' |
		awk '$1 == "leak" { NF = 9 } 1' | sed -E 's/^\t(malloc|calloc|realloc)\+0x.*/\t\1/' |
		awk 'NR > 1 && !/^\t/ { print "" } { printf "%s", $0 } END { print "" }' | sort
}

# same_from_text PERF-SCRIPT-OPTION...: compares the text of perf.data with perf.data.
same_from_text() {
	parse
	told leaks >told.recording
	perf script -i perf.data "$@" >text 2>script.err
	"$BIN/leakparse" --order time <text >leaks.text 2>leakparse.err || fail "$(cat leakparse.err)"
	# Some perfs print no positions in files (docs/perf-data.md): then there are no lines.
	if grep -q 'addresses in memory' leakparse.err; then
		perf script -i perf.data -F "$FIELDS,dsoff" --show-task-events >text 2>script.err
		"$BIN/leakparse" --order time <text >leaks.text
	fi
	told leaks.text >told.text
	diff told.recording told.text
}

FIELDS=comm,pid,tid,cpu,time,event,trace,ip,sym,symoff,dso

@test "script text: the same leaks as from perf record's file, by our probes" {
	add_probes --exe "$TARGETS/leaky_daemon"
	GROUP=$(added_groups)
	perf record -q -m 8192 -g -o perf.data -e "$GROUP:*" -- \
		"$TARGETS/leaky_daemon" --requests 60 --interval-us 100 >truth 2>record.err
	same_from_text
	assert_summary held_blocks "$(truth held_blocks)"
	same_from_text -F "$FIELDS"
}

@test "script text: the same leaks as from leakrec's file, with threads and forks" {
	record_command "leaky_daemon --requests 60 --interval-us 100" --call-graph fp
	same_from_text -F "$FIELDS"
	record_command "threads_cross_free --blocks 500" --call-graph fp
	same_from_text -F "$FIELDS" --show-task-events
	record_command fork_tree --call-graph fp
	same_from_text -F "$FIELDS" --show-task-events
}

@test "script text: Windows line ends" {
	record_command random_calls
	perf script -i perf.data --ns 2>/dev/null >text
	"$BIN/leakparse" <text >plain 2>plain.err
	sed 's/$/\r/' text | "$BIN/leakparse" >leaks 2>leaks.err
	diff plain leaks
}

@test "script text: perf's names are used if files are missing" {
	record_command "leaky_daemon --requests 60 --interval-us 100" --call-graph fp
	perf script -i perf.data 2>script.err | sed 's|(/.*/leaky_daemon)|(/gone/leaky_daemon)|' |
		"$BIN/leakparse" >leaks
	grep -q '	query_font+0x[0-9a-f]*  (/gone/leaky_daemon)' leaks
}
