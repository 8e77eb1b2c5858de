#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --with mmap: which function made each mapping that is left, with all kinds of stacks, and without stacks.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/mappings

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

@test "mappings: raw dumps" {
	record_command mappings --with mmap --raw-stacks
	assert_left
}

@test "mappings: releases with stacks" {
	record_command mappings --with mmap --free-stacks
	assert_left
	perf script -i perf.data -F event,ip,sym 2>/dev/null |
		awk '/sys_enter_munmap:/ { inside = 1; next } inside && /drop_all/ { nr++ } /:$/ || !NF { inside = 0 }
			END { exit nr < 100 }'
}

# To the parser, the call that was left by a jump looks open. The stacks of later mappings do not contain it.
@test "mappings: after a jump out of the allocator" {
	for options in "" --raw-stacks; do
		# shellcheck disable=SC2086
		record_command "mappings --jump" --with mmap $options
		assert_left_in_all
	done
	record_command "mappings --jump" --with mmap --perf-events
	assert_left
}

@test "mappings: a static program" {
	record_command mappings_static --with mmap
	assert_left
}

# Frame pointers miss the callers of frameless functions, such as mremap and sbrk.
@test "mappings: frame pointers" {
	record_command mappings --with mmap --call-graph fp
	assert_left_in_all
	diff <(grep -E '^left keep_(plain|parts|by_wrapper|in_thread|in_child) ' truth | sort) \
		<(left | grep -E '^left keep_(plain|parts|by_wrapper|in_thread|in_child) ')
}

@test "mappings: frame pointers, perf events" {
	record_command mappings --with mmap --call-graph fp --perf-events
	assert_left_in_all
}

@test "mappings: no stacks" {
	record_command mappings --with mmap --call-graph none
	assert_left_in_all
	record_command mappings --with mmap --call-graph none --perf-events
	assert_left_in_all
}
