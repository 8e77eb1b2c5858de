#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# jemalloc, preloaded: the recording has exactly the targets' own counts. jemalloc has no pvalloc. A program crashes if
# it frees a block of libc's pvalloc by jemalloc's free, so the targets do not call pvalloc.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/allocators

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "allocators: jemalloc, exact" {
	all_exact libjemalloc.so.2
}

@test "allocators: jemalloc, exact by perf events, too" {
	with_library libjemalloc.so.2 random_calls --rounds 3000 --pvalloc 0
	attach --perf-events
	go_target
	finish_target
	finish_leakrec
	parse
	assert_truth
}

# Of an event with several places, the kernel frees places that are in use (probes/tracefs/tracefs_uprobes.h). Such a
# removal may crash the machine, so this tries none before it has seen that each event has one place.
@test "each exit is an event of its own, which is not removed while it is in use" {
	local event
	with_library libjemalloc.so.2 random_calls --rounds 3000 --pvalloc 0
	attach --perf-events
	grep -o "^p:leakrec${LEAKREC_PID}_[^ ]*" "$TRACEFS/uprobe_events" | sort >events
	grep -q '/new_exit_1$' events
	[ -z "$(uniq -d events)" ]
	while read -r event; do
		! echo "-${event#p}" >>"$TRACEFS/uprobe_events" || fail "$event was removed"
	done <events
	go_target
	finish_target
	finish_leakrec
	parse
	assert_truth
}
