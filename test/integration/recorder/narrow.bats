#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --narrow: the calls of one cause are recorded, all of them and no others.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

KINDS=(malloc calloc realloc new wrapped)

setup() {
	common_setup
	require_programs
	[[ $(uname -m) == x86_64 ]] || skip "calls are found on x86-64 only"
}

teardown() {
	common_teardown
}

# row_of WORDS: prints the number of the row in "screen" whose path begins with them.
row_of() {
	awk -v path="^   $1" '/^[0-9]+\. / { nr = $1 + 0 } $0 ~ path { print nr; exit }' screen
}

# record_first "TARGET ARG...": records all into first.data, and writes its summary into "screen".
record_first() {
	record_command "$1"
	mv perf.data first.data
	"$BIN/leakparse" --summary --limit 100 first.data >screen 2>/dev/null
}

# narrowly ROW "TARGET ARG..." [OPTION...]: records another process of the target, narrowed to that row.
narrowly() {
	local row=$1 target=$2

	rm -f target.in target.out
	# shellcheck disable=SC2086 # the target and its arguments
	start_target $target
	attach --narrow "$row:first.data" "${@:3}"
	go_target
	finish_target
	finish_leakrec
	grep -q ' 0 events lost, only a part (--narrow): perf.data$' leakrec.err || fail "$(cat leakrec.err)"
	parse
}

@test "narrow: a leak in another process of the program" {
	record_first "leaky_daemon --requests 200 --interval-us 1000"
	narrowly "$(row_of query_font)" "leaky_daemon --requests 400 --interval-us 1000"
	assert_summary allocations "$(truth requests)"
	assert_summary frees $(($(truth requests) - $(truth leaked_3072)))
	assert_summary held_blocks "$(truth leaked_3072)"
	grep -qxE 'leakrec: narrowed to 1 call that allocates and 1 that releases, made [0-9.]+ times a second, which costs up to [0-9.]+% of a CPU' \
		leakrec.err || fail "$(cat leakrec.err)"
	# Its stacks are those of any recording; the rest of the program is not there.
	assert_equal stacks "$(leak_stacks 3072 | sort -u | cut -d' ' -f2-5)" \
		"malloc query_font load_font render_answer"
	assert_equal "events of other calls" "$(events calloc realloc)" 0
	# Other calls may have released the blocks.
	assert_summary firm_blocks 0
	"$BIN/leakparse" --summary perf.data >screen 2>/dev/null
	grep -qx 'Only a part of the calls was recorded (leakrec --narrow)' screen || fail "$(cat screen)"
	grep -q '^1\. growth, doubtful:unseen-free: ' screen || fail "$(cat screen)"
}

# assert_kinds TARGET FORK: each kind of call, narrowed to it, of the process and with --fork also of its child.
assert_kinds() {
	local kind row made taken

	for kind in "${KINDS[@]}"; do
		record_first "$1 --requests 200 --only $kind"
		row=$(row_of "make_$kind")
		[[ $kind != wrapped ]] || row=$(row_of wrapper)
		[[ -n $row ]] || fail "$kind is no cause: $(cat screen)"
		# shellcheck disable=SC2086 # none or one option
		narrowly "$row" "$1 --requests 400 ${2:-}"
		made=$(($(truth "${kind}_made") + $(truth "child_${kind}_made")))
		taken=$(($(truth "${kind}_taken") + $(truth "child_${kind}_taken")))
		assert_summary allocations "$made"
		assert_summary frees "$taken"
		assert_summary unpaired_entries 0
		assert_summary unpaired_returns 0
		assert_summary still_held 0
	done
}

@test "narrow: calls of each kind" {
	assert_kinds narrow_calls
}

@test "narrow: in a static program, and in a child" {
	assert_kinds narrow_calls_static --fork
}

@test "narrow: blocks that calls release which the first recording has not seen" {
	local made

	record_first "narrow_calls --requests 200 --only malloc"
	narrowly "$(row_of make_malloc)" "narrow_calls --requests 400 --elsewhere"
	made=$(truth malloc_made)
	assert_summary allocations "$made"
	assert_summary frees $((made * 9 / 20))
	# Some of their addresses are given again.
	(($(summary still_held) > 0)) || fail "no release was found missing"
	assert_summary firm_blocks 0
	"$BIN/leakparse" --summary perf.data >screen 2>/dev/null
	if grep -q certainly screen; then fail "$(cat screen)"; fi
}

# refused WORDS OPTION...: leakrec prints one line with these words last, exits with 1, and leaves no file and no probes.
refused() {
	run -1 "$BIN/leakrec" "${@:2}" -o perf.data
	[[ ${lines[-1]} == *"$1"* ]] || fail "$output"
	assert_no_probes_left
	[[ ! -s perf.data ]] || fail "a file was left"
}

@test "narrow: calls that are made all the time are refused" {
	record_first "narrow_calls --requests 50000 --only wrapped"
	rm -f target.in target.out
	start_target narrow_calls
	refused "leakrec: cannot narrow: the calls of this cause are made " \
		-p "$RECORDED_PID" --narrow "$(row_of wrapper):first.data"
	go_target
	finish_target
}

@test "narrow: a cause that there is not, another program, and options that do not go with it" {
	local options

	record_first "leaky_daemon --requests 200 --interval-us 1000"
	rm -f perf.data target.in target.out
	start_target sizes
	refused 'leakparse: there is no row 77: ' -p "$RECORDED_PID" --narrow 77:first.data
	refused "leakrec: cannot narrow: process $RECORDED_PID has none of the calls" -p "$RECORDED_PID" --narrow 1:first.data
	refused 'no-such.data' -p "$RECORDED_PID" --narrow 1:no-such.data
	for options in x 0x1 1: :first.data ""; do
		run -2 "$BIN/leakrec" --narrow="$options" -p "$RECORDED_PID"
		[[ $output == 'leakrec: --narrow takes '* ]] || fail "$output"
	done
	for options in "--budget 2%" "--size 100" "--with mmap" --no-heap --mismatch --scan --perf-events "--keep 1h"; do
		# shellcheck disable=SC2086 # an option and its value
		run -2 "$BIN/leakrec" --narrow 1:first.data -p "$RECORDED_PID" $options
		[[ $output == leakrec:*--narrow* ]] || fail "$options: $output"
	done
	run -2 "$BIN/leakrec" --narrow 1:first.data -a
	[[ $output == leakrec:*--narrow* ]] || fail "$output"
	go_target
	finish_target
}
