#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As size_filter.bats, for reallocs into the wanted sizes, out of them and within them.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/size_filter

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

# check_reallocs SIZE [OPTION...]: after a realloc that fails, the old block is still held.
check_reallocs() {
	rm -f target.in target.out
	record_attached realloc_cases --size "$@"
	"$BIN/leakparse" --size "$1" <perf.data >leaks
	assert_equal "leaks of $1 bytes" "$(grep -c '^leak ' leaks)" "$(truth "held_$1")"
	if grep '^unexpected' leaks | grep -v alloc-failed; then
		fail "nothing unexpected happened to blocks of $1 bytes"
	fi
}

@test "size filter: reallocs of all kinds" {
	local size

	for size in 200 301 303 3072 6000; do
		check_reallocs $size
	done
}

# realloc() takes one block of 200 bytes out of the wanted sizes; other blocks of its new size are not recorded.
@test "size filter: reports list recorded sizes only, and name them" {
	"$BIN/leakrec" --size 200 "$TARGETS/realloc_cases" >truth 2>leakrec.err
	assert_equal "blocks of 3072 bytes" "$(truth held_3072)" 1
	"$BIN/leakparse" perf.data >leaks
	assert_equal "leaks" "$(grep -c '^leak ' leaks)" 0
	grep -q '^# summary recorded_size=200 ' leaks
	"$BIN/leakparse" --summary perf.data >screen
	contains screen 'Only blocks of 200 bytes were recorded (leakrec --size)'
	grep -qx 'Nothing held at the end' screen
	assert_equal "bytes at the peak" "$("$BIN/leakparse" --at peak --format csv perf.data | grep -c 3072)" 0
	# The command has an option of that name, too.
	"$BIN/leakrec" -o other.data sort -s /dev/null
	"$BIN/leakparse" --summary other.data | run ! grep 'Only blocks'
}

@test "size filter: without sessions" {
	require_way multi
	record_attached "many_sizes $(options 500 1500 --children 2 --rounds 1000)" --size 500..1500 --record-by multi
	assert_leaks_of 500 1500
	assert_calls 500 1500
	check_reallocs 301 --record-by multi
	check_reallocs 6000 --record-by multi
}

@test "size filter: programs on perf events" {
	require_way single
	record_attached "many_sizes $(options 500 1500 --children 2 --rounds 1000)" --size 500..1500 --record-by single
	assert_leaks_of 500 1500
	assert_calls 500 1500
	check_reallocs 301 --record-by single
	check_reallocs 6000 --record-by single --call-graph dwarf
}
