#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --with mmap: what a program itself maps and does not unmap, by the function that mapped it. Mappings of the
# allocator and of the C library are not counted among these.

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

# perf counts as many entries as returns, too.
assert_perf_reads() {
	local call

	for call in mmap munmap mremap brk; do
		(($(events sys_enter_$call) > 0))
		assert_equal "sys_exit_$call" "$(events sys_exit_$call)" "$(events sys_enter_$call)"
	done
}

@test "mappings: started" {
	recorded mappings mappings --with mmap
	assert_left
	assert_perf_reads
}

@test "mappings: attached" {
	record_attached mappings --with mmap
	assert_left
}

@test "mappings: perf events" {
	record_command mappings --with mmap --perf-events
	assert_left
	assert_perf_reads
}

# Perf events do not record where the break was before it first grew.
@test "mappings: perf events, attached" {
	record_attached mappings --with mmap --perf-events
	sed -i 's/^left keep_break .*/left keep_break 1 24576/' truth
	assert_left
}

@test "mappings: small rings lose nothing" {
	record_command mappings --with mmap --call-graph fp -m 16
	assert_left_in_all
}

@test "mappings: one size" {
	record_command mappings --with mmap --size 4096..8192
	assert_equal "of these sizes" "$(left | grep -E 'keep_(plain|file)' | xargs)" \
		"left keep_file 1 8192 left keep_plain 2 12288"
	assert_summary lost 0
}

@test "mappings: nothing else" {
	record_command mappings --no-heap --with mmap
	grep '^left ' truth | sort | diff - <(left)
	assert_equal "large blocks" "$(with_stacks | grep -c '^leak .* [a-z_]*alloc ')" 0
}

@test "mappings: with --own-mappings, those of the allocator" {
	recorded mappings mappings --with mmap
	"$BIN/leakparse" --own-mappings <perf.data >leaks 2>leakparse.err
	assert_equal "own mappings" "$(summary own_mappings)" missing
	(($(with_stacks | awk '$1 == "leak" && $9 == "mmap" { bytes += $2 } END { print bytes }') > 8 * LARGE))
	run ! grep -q 'own-mappings' leakparse.err
	"$BIN/leakparse" <perf.data 2>leakparse.err >leaks
	grep -qE "^leakparse: $(summary own_mappings) more mappings with [0-9.]+ [KM]iB belong" leakparse.err
	"$BIN/leakparse" --summary <perf.data | grep -q "^Not counted: $(summary own_mappings) mappings, "
	"$BIN/leakparse" --format json <perf.data |
		python3 -c 'import json, sys; report = json.load(sys.stdin)
assert report["summary"]["own_mappings"] == int(sys.argv[1]), report["summary"]
assert {"mmap", "mremap", "brk"} <= {block["allocator"] for block in report["blocks"]}' \
			"$(summary own_mappings)"
}

@test "mappings: leakfollow of one size" {
	recorded mappings mappings --with mmap
	"$BIN/leakfollow" --size $((99 * 4096)) <perf.data >follow
	assert_equal "enters and exits" "$(awk '/^(enter|exit)/ { print $1, $2, $10 }' follow | xargs)" \
		"enter 1 mmap exit 0 munmap"
	"$BIN/leakfollow" --kind mapping <perf.data >follow
	assert_equal "held in the end" \
		"$(awk '/^(enter|exit)/ { held = $2 } END { print held }' follow)" 31
	assert_equal "ended with the child" "$(awk '$1 == "exit" { print $10 }' follow | grep -cx exit)" 1
	"$BIN/leakparse" --func mremap <perf.data >leaks
	assert_equal "by mremap" "$(left | wc -l)" 3
}

@test "mappings: --kind mapping" {
	recorded mappings mappings --with mmap
	assert_summary held_blocks "$(with_stacks | grep -c '^leak .* [a-z_]*alloc ')"
	grep -qE '^# resource mapping: [0-9]+ given, [0-9]+ taken, [34] failed; 32 held$' leaks
	"$BIN/leakparse" --kind mapping <perf.data >leaks
	grep '^left ' truth | sort | diff - <(left)
	assert_equal "other kinds" "$(grep '^leak ' leaks | grep -vc ' kind=mapping$')" 0
	run -3 "$BIN/leakparse" --kind mapping --fail-on-leak=2M -i perf.data
	run -0 "$BIN/leakparse" --kind mapping --fail-on-leak=3M -i perf.data
	"$BIN/leakparse" --kind memory <perf.data >leaks
	assert_equal "mappings" "$(left)" ""
	"$BIN/leakparse" --summary <perf.data |
		grep -qE '^32 mappings, 2.16 MiB in [0-9]+ stacks, held at the end: '
}

@test "mappings: perf record's own events" {
	perf record -q -m 4096 --call-graph dwarf,2048 -o perf.data -e task:task_newtask \
		-e 'syscalls:sys_enter_mmap,syscalls:sys_exit_mmap,syscalls:sys_enter_munmap' \
		-e 'syscalls:sys_exit_munmap,syscalls:sys_enter_mremap,syscalls:sys_exit_mremap' \
		-e 'syscalls:sys_enter_brk,syscalls:sys_exit_brk' -- "$TARGETS/mappings" >truth 2>perf.err
	parse
	grep '^left ' truth | sort | diff - <(left)
}

@test "mappings: usage" {
	run -2 "$BIN/leakrec" --with maps -- true
	grep -q 'leakrec: --with takes mmap and fd, not "maps"' <<<"$output"
	run -2 "$BIN/leakrec" --with mmap, -- true
}
