#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakparse, leakfollow and perf read the same from compressed and uncompressed recordings, and leakparse reads what
# perf has compressed.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
# shellcheck disable=SC2002,SC2086 # cat makes pipes of files, and $DAEMON is a list of words
bats_require_minimum_version 1.5.0
load ../support/helpers

DAEMON="leaky_daemon --requests 60 --interval-us 100"

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# Prints the sizes and functions of all leaks, and their stacks by name, without addresses, which vary.
leaks_by_name() {
	with_stacks "$1" |
		awk '/^leak/ { print $1, $2, $9 } /^\t/ { name = $1; sub(/\+0x.*/, "", name); print "  " name }'
}

# same_compressed OPTION...: the daemon's leaks, recorded with and without -z, in a file and a pipe.
same_compressed() {
	record_command "$DAEMON" -z0 "$@"
	assert_truth
	leaks_by_name leaks >leaks.plain
	size=$(stat -c %s perf.data)
	record_command "$DAEMON" -z "$@"
	assert_truth
	leaks_by_name leaks | diff leaks.plain -
	(($(stat -c %s perf.data) < size)) || fail "compressed, it is not smaller than $size"
	assert_summary truncated 0
}

@test "compression: -z, fp, and through pipes" {
	same_compressed --call-graph fp
	"$BIN/leakrec" -z3 -o - --call-graph fp -- "$TARGETS/"$DAEMON 2>leakrec.err >pipe.data
	"$BIN/leakparse" --order time <pipe.data >leaks
	leaks_by_name leaks | diff leaks.plain -
	# Through a pipe, too, in the file format and in the pipe format.
	cat pipe.data | "$BIN/leakparse" --order time >leaks
	leaks_by_name leaks | diff leaks.plain -
	cat perf.data | "$BIN/leakparse" --order time >leaks
	leaks_by_name leaks | diff leaks.plain -
}

@test "compression: files are compressed unless -z0 is given, standard output is not" {
	record_command "$DAEMON"
	"$BIN/leakrec" -m 512 -o plain.data -z0 -- "$TARGETS/"$DAEMON >truth 2>leakrec.err
	(($(stat -c %s perf.data) * 2 < $(stat -c %s plain.data))) || fail "$(ls -l ./*.data)"
	"$BIN/leakrec" -o - -- "$TARGETS/"$DAEMON 2>leakrec.err >pipe.data
	(($(stat -c %s perf.data) * 2 < $(stat -c %s pipe.data))) || fail "$(ls -l ./*.data)"
}

@test "compression: -z, dwarf" {
	same_compressed --call-graph dwarf
}

@test "compression: -z, stack dumps" {
	same_compressed --call-graph dwarf,4096 --raw-stacks
}

# Records that are too large for one COMPRESSED record.
@test "compression: -z, the largest stack dumps" {
	same_compressed --call-graph dwarf,65000 --raw-stacks
}

@test "compression: -z, leakfollow reads it" {
	record_command "$DAEMON" -z
	"$BIN/leakfollow" --size 3072 <perf.data 2>leakfollow.err >followed
	grep -qE ", $(truth leaked_3072) still held" leakfollow.err
}

@test "compression: -z, perf reads the file and the pipe" {
	local printed

	require_program perf
	record_command "$DAEMON" -z --call-graph dwarf,4096 --raw-stacks
	perf script -i perf.data -F event >script 2>script.err
	printed=$(LC_ALL=C grep -cE '(leakrec[0-9]+|leakprobe)_[^ ]*:' script)
	assert_equal "events that perf script prints" "$printed" "$(summary events)"
	perf report --stats -i perf.data >stats 2>stats.err
	grep -qE '^ *COMPRESSED events: +[1-9]' stats
	grep -v 'not valid for .* events. Ignoring' script.err stats.err >complaints || true
	assert_equal "perf's complaints" "$(cat complaints)" ""
	perf report --header-only -i perf.data 2>/dev/null | grep -qE 'compressed : Zstd, level = 1, ratio = [1-9]'
	perf script -i perf.data 2>/dev/null | grep -q ' query_font+0x'

	"$BIN/leakrec" -z -o - -- "$TARGETS/"$DAEMON 2>leakrec.err >pipe.data
	perf script -i - -F event <pipe.data >script 2>script.err
	assert_equal "events that perf script prints of the pipe" \
		"$(LC_ALL=C grep -cE '(leakrec[0-9]+|leakprobe)_[^ ]*:' script)" "$printed"
}

# perf_record OUTPUT OPTION...: records the daemon with leakprobe's probes. The target's counts go to the file truth.
perf_record() {
	perf record -q -B -m 8192 -e "$GROUP:*" -o "$@" -- "$TARGETS/"$DAEMON 2>truth 3>&-
}

# perf_record_file OPTION...: the same into perf.data. It was once without any sample, on a busy machine. leakparse is
# not to be blamed for that if perf script finds none either.
perf_record_file() {
	for _ in 1 2 3; do
		perf_record perf.data "$@" >truth
		[[ -z $(perf script -i perf.data -F event 2>/dev/null) ]] || break
		echo "perf recorded nothing: $*" >&2
	done
}

@test "compression: leakparse reads perf record -z" {
	require_program perf
	add_probes --exe "$TARGETS/leaky_daemon"
	GROUP=$(added_groups)
	for options in "-g" "--call-graph dwarf,4096"; do
		perf_record_file $options
		parse
		assert_truth
		leaks_by_name leaks >leaks.plain
		perf_record_file -z $options
		parse
		assert_truth
		leaks_by_name leaks | diff leaks.plain -
	done
	# To a pipe, perf record gives what the target prints to standard error.
	perf_record - -z -g | "$BIN/leakparse" --order time >leaks
	assert_truth
}

@test "compression: bad levels are bad usage" {
	for level in -z-1 -z23 -zx --compression-level=; do
		run -2 "$BIN/leakrec" "$level" -p $$
	done
}
