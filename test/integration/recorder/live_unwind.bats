#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --call-graph dwarf unwinds while it records. The stacks equal those that leakparse finds in the dumps of
# --raw-stacks, and the file is as small as with fp.

# shellcheck disable=SC2030,SC2031,SC2034,SC2094,SC2153 # as in bad_input.bats; SIZE is chain_targets'
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/chain_targets

setup() {
	common_setup
	require_program cc
}

teardown() {
	common_teardown
}

# Prints each leak's size, function and stack by name, offset and line, without addresses, which vary.
stacks() {
	with_stacks | awk '/^leak/ { print $1, $2, $9 } /^\t/ { print "\t" $1, $2 }'
}

# same_as_raw OPTION... -- COMMAND...: compares a file and a pipe, recorded by BPF programs and by perf events.
same_as_raw() {
	local options

	record --call-graph dwarf --raw-stacks "$@"
	check_chain
	stacks >stacks.raw
	for options in '' --perf-events; do
		# shellcheck disable=SC2086
		record --call-graph dwarf $options "$@"
		check_chain
		stacks | diff stacks.raw - || fail "the stacks differ from those of --raw-stacks"
		assert_plain_chains
	done
	"$BIN/leakrec" -o - --call-graph dwarf "$@" 2>leakrec.err | "$BIN/leakparse" --order time --size "$SIZE" >leaks
	check_chain
	stacks | diff stacks.raw - || fail "through the pipe, the stacks differ"
}

# The file shows no trace of dumps.
assert_plain_chains() {
	! command -v perf >/dev/null || ! perf evlist -v -i perf.data 2>/dev/null |
		grep -E 'REGS_USER|STACK_USER' || fail "the attributes promise dumps"
}

@test "live: cc -O2 -fomit-frame-pointer" {
	build_chain cc -O2 -fomit-frame-pointer
	same_as_raw -- ./chain
}

@test "live: a static program" {
	build_chain cc -O2 -fomit-frame-pointer -static
	same_as_raw -- ./chain
}

@test "live: clang, no PIE" {
	require_program clang
	build_chain clang -O2 -fno-pie -no-pie
	same_as_raw -- ./chain
}

@test "live: a library opened with dlopen" {
	write_chain c
	write_main
	cc -g -O2 -fomit-frame-pointer -fPIC -shared -o libchain.so chain.c
	cc -g -O2 -o chain main.c -pthread -ldl
	same_as_raw -- ./chain ./libchain.so
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
