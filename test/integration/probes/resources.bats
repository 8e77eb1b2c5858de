#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Resources other than memory: what functions that the user names give and take.

# shellcheck disable=SC2030,SC2031 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/resources

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "resources: exact counts of each kind, by programs and by perf events" {
	record_attached resources --pair "$FILES" --pair "$SLOTS" --pair "$NESTED" --ref "$WIDGETS"
	assert_kind file slot widget nested
	assert_no_unexpected
	assert_equal "sizes" "$(awk '$1 == "leak" && /kind=slot/ { print $2 }' leaks | sort -u)" 100
	# A stack shows which function left it open.
	with_stacks | grep -A4 '^leak .* kind=file' | grep -q 'open_log'
	rm -f target.in target.out
	record_attached resources --perf-events --pair "$FILES" --pair "$NESTED" --ref "$WIDGETS"
	assert_kind file widget nested
	assert_no_unexpected
}

@test "resources: an object's references are listed by stack" {
	record_attached resources --no-heap --ref "$WIDGETS"
	assert_kind widget
	assert_summary held_blocks 0
	assert_summary allocations 0
	assert_equal "counts" "$(grep -cE '^leak .* kind=widget count=1 refs=3 unrefs=2$' leaks)" 3
	# Three references from three stacks, two of them dropped.
	assert_equal "histories" "$(grep -c '^refs ' leaks)" 15
	with_stacks | awk '/^refs \+1 -0 widget_ref / { getline; getline; if (/forget_a_reference/) n++ }
		END { exit n != 3 }'
}

@test "resources: every recorder records what leakprobe has registered" {
	start_target resources
	add_probes --pid "$RECORDED_PID" --pair "$FILES" --ref "$WIDGETS"
	attach
	go_target
	finish_target
	finish_leakrec
	parse
	assert_kind file widget
	grep -q "all\|added" leakprobe.out
}

@test "resources: perf's recording of them is read, too" {
	local group events=()

	require_program perf
	start_target resources
	add_probes --pid "$RECORDED_PID" --no-heap --pair "$FILES" --ref "$WIDGETS"
	kill_now "$RECORDED_PID"
	for group in $(added_groups); do
		events+=(-e "$group:*")
	done
	perf record -q -g -B -m 8192 -o perf.data "${events[@]}" -- "$TARGETS/resources" \
		>truth 2>record.err || fail "perf record: $(cat record.err)"
	parse
	assert_kind file widget
}

@test "resources: reports show one kind, and leakfollow follows it" {
	record_attached resources --pair "$FILES" --ref "$WIDGETS"
	"$BIN/leakparse" --kind file <perf.data >leaks 2>leakparse.err
	assert_equal "leaks" "$(grep -c '^leak ' leaks)" "$(truth file_held)"
	assert_summary held_blocks 0
	grep -q '^leakparse: file: 50 given, 45 taken, 5 still held$' leakparse.err
	"$BIN/leakparse" --kind memory <perf.data >leaks 2>/dev/null
	assert_equal "memory" "$(grep -c 'kind=' leaks)" 0
	"$BIN/leakparse" --summary <perf.data >screen 2>/dev/null
	grep -q '^5 file handles in 1 stack, held at the end: 50 given, 45 taken, 50 failed$' screen
	"$BIN/leakparse" --kind file --format json <perf.data 2>/dev/null | grep -q '"kind":"file"'
	"$BIN/leakparse" --kind file --format folded <perf.data 2>/dev/null | grep -q ';open_log;.* 5$'
	"$BIN/leakparse" --kind file --format tree <perf.data 2>/dev/null | grep -q '5 *total'
	"$BIN/leakfollow" --kind file <perf.data >follow 2>follow.err
	assert_equal "entered" "$(grep -c '^enter' follow)" 50
	assert_equal "exited" "$(grep -c '^exit' follow)" 45
	assert_equal "message" "$(cat follow.err)" "leakfollow: 50 file handles entered, 45 exited, 5 still held"
}

@test "resources: of a command, from its first instruction, in any of its libraries" {
	record_command resources --pair "$FILES" --ref "$WIDGETS"
	assert_kind file widget
	run -1 "$BIN/leakrec" -o perf.data --pair 'no_such_function:ret / fclose:arg1' -- true
	[[ $output == *"defines no_such_function"* ]]
}

# The kernel makes a call of a probed nop of five bytes, and of its target no child has a copy (docs/placement.md).
@test "resources: functions that begin with a nop, and children of recorded processes" {
	local way line pair

	[[ $(uname -m) == x86_64 ]] || skip "these nops are of x86-64"
	pair='thing=give_gcc|give_clang|give_prefixed:arg1 / take_gcc|take_clang|take_prefixed:arg1'
	for way in single multi session; do
		require_way "$way"
		start_target nop_entries
		attach --record-by "$way" --no-heap --pair "$pair"
		go_target
		read -r -t $((60 * ${WAIT_FACTOR:-1})) -u "$TARGET_OUT" line
		assert_equal "the target said" "$line" recorded
		kill -INT "$LEAKREC_PID"
		finish_leakrec
		run ! code_is_changed
		go_target
		finish_target
		assert_equal "$way: children that a signal killed" "$(truth died)" 0
		parse
		assert_kind thing
		rm -f target.in target.out
	done
	# What an argument points to is read at the entry, where no probe may be.
	run -0 "$BIN/leakrec" --no-heap -o perf.data --pair 'thing=give_gcc:arg1 / take_gcc:*arg1' -- "$TARGETS/nop_entries"
	[[ $output == *"cannot record take_gcc of "*" not safe, on "* ]]
}

# The kernel has made calls of these nops. That is no hook.
@test "resources: functions whose first nop another tracer probes" {
	local function at line tracer events=()

	[[ $(uname -m) == x86_64 ]] || skip "these nops are of x86-64"
	require_program perf
	require_program objdump
	start_target nop_entries
	for function in give_gcc give_clang give_prefixed; do
		at=$(objdump -dF --disassemble="$function" "$TARGETS/nop_entries" |
			sed -nE "s/.*<$function> \(File Offset: (0x[0-9a-f]+)\):.*/\1/p")
		echo "p:nops_$$/$function $TARGETS/nop_entries:$at" >>"$TRACEFS/uprobe_events"
		OWN_EVENTS+=("nops_$$/$function")
		events+=(-e "nops_$$:$function")
	done
	perf stat -o stat "${events[@]}" -p "$RECORDED_PID" 2>stat.err 3>&- &
	tracer=$!
	STARTED_PIDS+=("$tracer")
	wait_until 60 code_is_changed
	go_target
	read -r -t $((60 * ${WAIT_FACTOR:-1})) -u "$TARGET_OUT" line
	assert_equal "the target said" "$line" recorded
	"$BIN/leakrec" -p "$RECORDED_PID" -d 0.1 --no-heap -o perf.data \
		--pair 'thing=give_gcc|give_clang|give_prefixed:arg1 / take_gcc:arg1' 2>leakrec.err || fail "$(cat leakrec.err)"
	go_target
	finish_target
	kill_now "$tracer"
}

code_is_changed() {
	[[ -n $(python3 "$SOURCE_DIR/test/integration/support/changed_code.py" "$RECORDED_PID") ]]
}

@test "resources: leakprobe lists and deletes them" {
	start_target resources
	add_probes --pid "$RECORDED_PID" --no-heap --ref "$WIDGETS"
	assert_equal "probes" "${#OWN_EVENTS[@]}" 4
	"$BIN/leakprobe" list >listed
	grep -qE ':widget__unref__widget_unref +widget_unref ' listed
	"$BIN/leakprobe" del --pid "$RECORDED_PID"
	assert_equal "probes left" "$(uprobe_events | grep -c widget__)" 0
	kill_now "$RECORDED_PID"
}

@test "resources: a program's own pool, by the program's reports" {
	for engine in "" --perf-events; do
		# shellcheck disable=SC2086 # none, or one
		record_attached pools $engine
		assert_kind pool
		assert_summary held_bytes "$(truth held_bytes)"
		assert_equal "bytes" "$(awk '$1 == "leak" && /kind=pool/ { n += $2 } END { print n }' leaks)" \
			"$(truth pool_bytes)"
		assert_no_unexpected
		rm -f target.in target.out
	done
	"$BIN/leakparse" --kind pool --summary <perf.data 2>/dev/null | grep -q '^   main (pools.c:[0-9]*) < '
	# The function that took it is known by symbol, or by a line of main().
	with_stacks | grep -A3 '^leak 48 .* kind=pool' | grep -q 'use+0x'
	with_stacks | grep -A1 '^leak 100 .* kind=pool' | grep -q 'main+0x'
	start_target pools
	add_probes --pid "$RECORDED_PID"
	attach
	go_target
	finish_target
	finish_leakrec
	parse
	assert_kind pool
}
