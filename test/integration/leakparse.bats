#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakparse's own options.

bats_require_minimum_version 1.5.0
load helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "leakparse: leaks of one size, and of a range" {
	record_command sizes
	"$BIN/leakparse" --size 3072 <perf.data >leaks
	assert_equal "leaks" "$(grep -c '^leak ' leaks)" "$(truth held_3072)"
	assert_equal "held blocks" "$(summary held_blocks)" "$(truth held_3072)"
	assert_equal "held bytes" "$(summary held_bytes)" $(($(truth held_3072) * 3072))
	assert_equal "allocations of all sizes" "$(summary allocations)" "$(truth allocations)"
	assert_equal "the size" "$(summary size)" 3072
	assert_equal "sizes" "$(awk '/^leak/ { print $2 }' leaks | sort -u)" 3072

	"$BIN/leakparse" -i perf.data >all
	"$BIN/leakparse" -i perf.data --size 1000..2000 >leaks
	assert_equal "the range" "$(summary size)" 1000..2000
	assert_equal "leaks in the range" "$(grep '^leak ' leaks)" \
		"$(awk '/^leak/ && $2 >= 1000 && $2 <= 2000' all)"
}

@test "leakparse: sizes that are none" {
	local size

	for size in "" 3x 10..5 -1 .. 1... "1 2" 99999999999999999999; do
		run --separate-stderr "$BIN/leakparse" --size "$size" </dev/null
		assert_equal "status of --size '$size'" "$status" 2
	done
}
