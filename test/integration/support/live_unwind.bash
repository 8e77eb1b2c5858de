# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Comparisons of stacks unwound while recording with those of --raw-stacks. After chain_targets.bash.

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
