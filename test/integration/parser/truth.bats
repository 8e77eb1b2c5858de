#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Checks the targets' own counts by an independent tool: perf stat, on uprobes that these tests put at the entries of
# the C library's functions, must see as many calls as the target counted.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
	require_program readelf
	GROUP=truthcheck_$$
	FUNCTIONS=(malloc calloc realloc aligned_alloc posix_memalign valloc pvalloc free)
}

teardown() {
	common_teardown
}

libc_of() {
	ldd "$1" | awk '$1 ~ /^libc\.so/ { print $3 }'
}

# offset_of FILE FUNCTION: that of its symbol.
offset_of() {
	readelf -W --dyn-syms "$1" | awk -v name="^$2@@" '$8 ~ name { print $2; exit }'
}

# probe_entries FILE: puts an entry probe on each function.
probe_entries() {
	local function

	# In Debian 12's glibc, both are one function.
	[[ $(offset_of "$1" memalign) == "$(offset_of "$1" aligned_alloc)" ]] || FUNCTIONS+=(memalign)
	for function in "${FUNCTIONS[@]}"; do
		echo "p:$GROUP/$function $1:0x$(offset_of "$1" "$function")" >>"$TRACEFS/uprobe_events"
		OWN_EVENTS+=("$GROUP/$function")
	done
}

# check NAME: counts the events, as assert_events expects them.
check() {
	local events

	probe_entries "$(libc_of "$TARGETS/$1")"
	events=$(printf ",$GROUP:%s" "${FUNCTIONS[@]}")
	perf stat -x, -o stat -e "${events#,}" "$TARGETS/$1" "${@:2}" >truth
	awk -F, '$3 ~ /:/ { sub(/.*:/, "", $3); print $1, $3 }' stat >events
}

exact() {
	local function expected

	for function in "${FUNCTIONS[@]}"; do
		expected=$(truth "$function")
		[[ $function != aligned_alloc || ${FUNCTIONS[*]} == *" memalign"* ]] ||
			expected=$((expected + $(truth memalign)))
		[[ $function != free || -z ${MORE_FREES:-} ]] || continue
		assert_equal "$function of ${BATS_TEST_DESCRIPTION}" "$(events "$function")" "$expected"
	done
}

@test "truth: aligned" {
	check aligned
	exact
	(($(truth aligned_alloc) > 0))
}

@test "truth: double_free" {
	check double_free
	exact
}

@test "truth: exec_self" {
	check exec_self
	exact
}

@test "truth: killed by itself" {
	check killed
	exact
}

@test "truth: leaky_daemon" {
	check leaky_daemon --requests 50 --interval-us 0
	exact
	assert_equal "leaked blocks" "$(truth held_3072)" "$(truth leaked_3072)"
}

@test "truth: null_free" {
	check null_free
	exact
}

@test "truth: posix_memalign_cases" {
	check posix_memalign_cases
	exact
}

@test "truth: realloc_cases" {
	check realloc_cases
	MORE_FREES=1 exact
}

@test "truth: sizes" {
	check sizes
	exact
}

@test "truth: threads_cross_free" {
	check threads_cross_free
	MORE_FREES=1 exact
}

@test "truth: thread_exits, whose exits free more than the program" {
	check thread_exits
	MORE_FREES=1 exact
	(($(events free) > $(truth free)))
}

@test "truth: big_churn" {
	check big_churn --pairs 5000 --leak-every 100
	MORE_FREES=1 exact
	assert_equal "leaked blocks" "$(truth held_3072)" 100
}
