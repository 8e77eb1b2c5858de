#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --call-graph dwarf unwinds while it records. The stacks equal those that leakparse finds in the dumps of
# --raw-stacks, and the file is as small as with fp.

# shellcheck disable=SC2030,SC2031,SC2034,SC2094,SC2153 # as in bad_input.bats; SIZE is chain_targets'
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/chain_targets
load ../support/live_unwind

setup() {
	common_setup
	require_program cc
}

teardown() {
	common_teardown
}

@test "live: cc -O2 -fomit-frame-pointer" {
	build_chain cc -O2 -fomit-frame-pointer
	same_as_raw -- ./chain
}

@test "live: perf script reads the chains" {
	require_program perf
	build_chain cc -O2 -fomit-frame-pointer
	record --call-graph dwarf -- ./chain
	perf script -i perf.data >script 2>script.err
	assert_equal "perf's whole stacks" "$(awk '
		/ link_1\+/ { n = 1 } / link_[0-9]+\+/ && n { links++ }
		/ _start\+/ { whole += links == '"$DEPTH"'; n = links = 0 } END { print whole }' script)" "$NR_BLOCKS"
	perf report --stats -i perf.data >stats 2>stats.err
	assert_equal "perf's complaints" \
		"$(grep -v 'not valid for .* events. Ignoring' script.err stats.err)" ""
}

# --- Size and time ---

@test "live: the file is a twentieth of that of --raw-stacks" {
	local raw

	record_command "big_churn --threads 2 --pairs 5000 --leak-every 1000" -z0 --call-graph dwarf --raw-stacks
	raw=$(stat -c %s perf.data)
	record_command "big_churn --threads 2 --pairs 5000 --leak-every 1000" -z0 --call-graph dwarf
	assert_truth
	assert_summary unwind_failures 0
	(($(stat -c %s perf.data) * 20 <= raw)) ||
		fail "$(stat -c %s perf.data) bytes, of raw stacks $raw"
}

@test "live: --raw-stacks goes with dwarf" {
	run -2 "$BIN/leakrec" --call-graph none --raw-stacks -p $$
	run -2 "$BIN/leakrec" --call-graph fp --raw-stacks -p $$
}
