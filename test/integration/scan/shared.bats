#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Memory that mappings and processes share holds blocks, wherever its pages are. If some was not read, leakscan says so.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/scan

# start_shared ARG: afterwards, REACH_PID is the child process that is to be scanned.
start_shared() {
	[[ $(id -u) == 0 ]] || skip "only root may open the files of other processes' mappings"
	start_reach reach_shared "$@"
	REACH_PID=$(awk '/^ready/ { print $2 }' truth)
}

@test "shared: what a child has not touched, what only the file has, what another mapping wrote" {
	start_shared "$PWD/file"
	leakscan --blocks >blocks
	compare_cases
	stop_reach
}

@test "shared: a file is read once for all of its mappings, and its holes are not; the process gets no page" {
	start_shared --many
	grep RssShmem "/proc/$REACH_PID/status" >before
	leakscan --blocks --once >blocks
	compare_cases any-lost=unknown
	diff <(grep RssShmem "/proc/$REACH_PID/status") before
	# 1,920 MiB of it are mapped, and 64 GiB of holes.
	python3 - "$BIN/leakscan" -p "$REACH_PID" --pause-limit 30 --once <<-'END'
		import resource, subprocess, sys
		subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
		peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
		assert peak < 200 << 10, peak
	END
	stop_reach
}

@test "shared: without privileges, leakscan says what it cannot read, and calls no block lost" {
	start_shared --many
	run setpriv --bounding-set -sys_admin,-checkpoint_restore --inh-caps -sys_admin,-checkpoint_restore \
		"$BIN/leakscan" -p "$REACH_PID" --pause-limit 30
	echo "$output"
	grep -qE "No block is called lost: [0-9.]+ [KMG]iB of its memory could not be read, first in the mapping of /" \
		<<<"$output"
	stop_reach
}
