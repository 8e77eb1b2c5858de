#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakfollow: every operation on blocks of one size, with the refcount, realloc to and from it included.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

count() {
	grep -c "^$1 " follow || true
}

@test "leakfollow: one size" {
	record_command sizes
	"$BIN/leakfollow" --size 3072 <perf.data >follow
	assert_equal "enters" "$(count enter)" "$(truth enters_3072)"
	assert_equal "exits" "$(count exit)" "$(truth exits_3072)"
	# The refcount goes up and down by one and ends at what is held.
	awk '/^(enter|exit)/ { n += $1 == "enter" ? 1 : -1; if ($2 != n) exit 1 }' follow
	assert_equal "last refcount" "$(awk '/^(enter|exit)/ { n = $2 } END { print n }' follow)" \
		"$(truth held_3072)"
	# Only that size, in time order.
	assert_equal "sizes" "$(awk '/^(enter|exit)/ { print $3 }' follow | sort -u)" 3072
	awk '/^(enter|exit)/ { print $5 }' follow | sort -c
}

@test "leakfollow: a range" {
	record_command sizes
	"$BIN/leakfollow" --size 1000..2000 <perf.data >follow
	assert_equal "enters" "$(count enter)" "$(truth enters_1000_2000)"
	assert_equal "exits" "$(count exit)" "$(truth exits_1000_2000)"
	"$BIN/leakfollow" --size 3071..3073 <perf.data >follow
	assert_equal "enters" "$(count enter)" $(($(truth enters_3072) + 2))
}

@test "leakfollow: realloc to and from the size, with stacks" {
	record_command sizes
	"$BIN/leakfollow" -i perf.data --size 3072 >follow
	awk '/^[^\t]/ { wanted = $10 == "realloc" } wanted' follow >realloc
	assert_equal "enters by realloc" "$(grep -c '^enter ' realloc)" 3
	assert_equal "exits by realloc" "$(grep -c '^exit ' realloc)" 2
	grep -q $'^\tgrow+0x' realloc
}

@test "leakfollow: a size that no block has" {
	record_command sizes
	"$BIN/leakfollow" --size 77777 <perf.data >follow
	assert_equal "operations" "$(($(count enter) + $(count exit)))" 0
	# Two on each side, with all their blocks.
	"$BIN/leakfollow" --size 2100..3000 <perf.data >follow 2>leakfollow.err
	assert_equal "message" "$(cat leakfollow.err)" "leakfollow: no block of 2100..3000 bytes was recorded;\
 the nearest sizes are 1999 (1 block), 2000 (1 block), 3071 (1 block), 3072 ($(truth enters_3072) blocks)"
}

# A descriptor has no size: none is near another.
@test "leakfollow: descriptors are counted as such" {
	"$BUILD_DIR/test/unit/test_summary_processes" made.data
	"$BIN/leakfollow" --kind fd -i made.data >follow 2>leakfollow.err
	assert_equal "message" "$(cat leakfollow.err)" "leakfollow: 31 fds entered, 0 exited, 31 still held"
	"$BIN/leakfollow" --size 0..100 -i made.data >follow 2>leakfollow.err
	assert_equal "both" "$(cat leakfollow.err)" \
		"leakfollow: 31 blocks entered, 0 exited, 31 still held; 31 fds entered, 0 exited, 31 still held"
	"$BIN/leakfollow" --size 77 -i made.data >follow 2>leakfollow.err
	assert_equal "nearest" "$(cat leakfollow.err)" \
		"leakfollow: no block of 77 bytes was recorded; the nearest sizes are 24 (31 blocks)"
	"$BIN/leakfollow" --kind file -i made.data >follow 2>leakfollow.err
	grep -qx 'leakfollow: no operation of that kind was recorded' leakfollow.err
}

@test "leakfollow: invalid sizes" {
	local size

	for size in "" 3x 10..5 -1 .. 1... "1 2" 99999999999999999999; do
		run --separate-stderr "$BIN/leakfollow" --size "$size" </dev/null
		assert_equal "status of --size '$size'" "$status" 2
	done
}
