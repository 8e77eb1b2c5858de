#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --filter: the recording has exactly the events that the filter selects, and without a filter all.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

# entries EVENT: prints the values of the event's field "bytes".
entry_bytes() {
	perf script -i perf.data -F event,trace 2>/dev/null |
		sed -nE "s/^ *[^ ]*:$1: .* bytes=([0-9]+).*/\\1/p"
}

@test "filter: records exactly the events for which the expression is true" {
	record_attached sizes --filter "malloc:bytes == 3072 || bytes == 100" \
		--filter "realloc:bytes > 3072"
	assert_equal "mallocs of other sizes" "$(entry_bytes malloc | grep -vcE '^(3072|100)$')" 0
	assert_equal "mallocs of 3072" "$(entry_bytes malloc | grep -cx 3072)" 5
	assert_equal "mallocs of 100" "$(entry_bytes malloc | grep -cx 100)" 1
	assert_equal "reallocs" "$(entry_bytes realloc | paste -sd,)" 6000
	assert_equal "returns of malloc" "$(events malloc_ret)" "$(truth malloc)"
	assert_equal "callocs" "$(events calloc)" "$(truth calloc)"
	assert_equal "frees" "$(events free)" "$(truth free)"
}

@test "filter: frees of NULL only" {
	record_attached null_free --filter "free:mem == 0"
	assert_equal "frees" "$(events free)" "$(truth null_frees)"
	# What is held may have been freed. Both tools say that calls are missing.
	tail -n 1 leakrec.err | grep -q ' 0 events lost,.* only a part (--filter): perf.data$' || fail "$(cat leakrec.err)"
	"$BIN/leakparse" --summary -i perf.data >screen
	grep -qx 'Only a part of the calls was recorded (leakrec --filter)' screen || fail "$(cat screen)"
	if grep -q certainly screen; then fail "$(cat screen)"; fi
	"$BIN/leakparse" -i perf.data >leaks 2>leakparse.err
	grep -q '^# summary filtered=1 ' leaks
	grep -q ': only a part of the calls was recorded (leakrec --filter)' leakparse.err || fail "$(cat leakparse.err)"
	"$BIN/leakparse" --format json -i perf.data >leaks.json 2>/dev/null
	grep -q '"filtered":true,' leaks.json
}

# refused WORDS OPTION...: leakrec prints one line with these words, exits with 1, and leaves no file and no probes.
refused() {
	run -1 "$BIN/leakrec" "${@:2}" -o perf.data -- "$TARGETS/null_free"
	[[ $(grep -v 'adding probes to\|twice the cost\|^truth' <<<"$output") == leakrec:*"$1"* ]] ||
		fail "$output"
	assert_no_probes_left
	[[ ! -s perf.data ]] || fail "a file was left"
}

@test "filter: an unknown event" {
	refused "there is no event mallocc" --filter "mallocc:bytes > 1"
}

@test "filter: an invalid expression" {
	refused 'cannot filter' --filter "malloc:bytes >"
}

@test "filter: an unknown field" {
	refused 'cannot filter' --filter "malloc:size > 1"
}

@test "filter: the caller, which the kernel does not read" {
	refused 'cannot filter by caller' --filter "free:caller > 1"
}

@test "filter: usage" {
	run -2 "$BIN/leakrec" --filter malloc -o perf.data -- true
	[[ $output == *"EVENT:EXPR"* ]] || fail "$output"
}

@test "perf events: everything is recorded" {
	record_attached random_calls --perf-events
	assert_truth
	assert_events
}
