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

@test "size filter: without sessions" {
	record_attached "many_sizes $(options 500 1500 --children 2 --rounds 1000)" --size 500..1500 --record-by multi
	assert_leaks_of 500 1500
	assert_calls 500 1500
	check_reallocs 301 --record-by multi
	check_reallocs 6000 --record-by multi
}
