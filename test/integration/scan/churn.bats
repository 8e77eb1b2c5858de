#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Threads that are inside malloc() and free() lose nothing: free chunks on their way from one list to another, or from none.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/scan

# hold_everything SNAPSHOTS HELD [ARG...]: no snapshot of reach_churn has a block without a holder.
hold_everything() {
	local i

	start_reach reach_churn "${@:3}"
	for ((i = 0; i < $1; i++)); do
		leakscan --once --blocks >"blocks.$i"
	done
	cat blocks.* >blocks
	(($(grep -c ^held blocks) > $1 * $2))
	run ! grep ^unknown blocks
	stop_reach
}

@test "churn: threads inside malloc lose nothing" {
	hold_everything 8 1000
	run ! grep -v ^held blocks
}

@test "churn: chunks on their way from fastbins are not lost" {
	GLIBC_TUNABLES=glibc.malloc.tcache_count=0 hold_everything 6 500 --fastbins
}

@test "churn: what is in the cache of a thread that ends is not lost" {
	GLIBC_TUNABLES=glibc.malloc.tcache_count=100 hold_everything 10 5 --threads
}
