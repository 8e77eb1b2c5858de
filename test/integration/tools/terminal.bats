#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What leakparse does only on a terminal: a pager, colours.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program python3
	require_program less
	record_command "leaky_daemon --requests 200 --interval-us 100"
	unset PAGER LEAKTOOLS_PAGER LESS NO_COLOR
}

teardown() {
	common_teardown
}

# on_terminal CASE COMMAND...: runs a case of drive_reader.py. The last screen is in the file "screen".
on_terminal() {
	PYTHONDONTWRITEBYTECODE=1 timeout 300 python3 "$SOURCE_DIR/test/integration/support/drive_reader.py" "$@" \
		>screen 3>&- || fail "$(cat screen)"
}

@test "terminal: less shows long output, and can be left" {
	on_terminal paged "$BIN/leakparse" -i perf.data
	on_terminal paged env PAGER="less -X" "$BIN/leakparse" -i perf.data
}

@test "terminal: what fits on the screen is written without waiting" {
	on_terminal coloured "$BIN/leakparse" --summary --top 1 -i perf.data
	grep -q '^1\. .* blocks' screen
	run ! grep -q END screen
}

@test "terminal: the user's pager gets all output and messages" {
	LEAKTOOLS_PAGER='cat >paged' PAGER='cat >wrong' on_terminal any "$BIN/leakparse" -i perf.data
	grep -q '^# leaks 2' paged
	grep -q '^leakparse: .* events, ' paged
	[[ ! -e wrong ]]
	PAGER='cat >other' on_terminal any "$BIN/leakparse" --diff -i perf.data
	grep -q '^# changes 1' other
	for none in "" cat; do
		LEAKTOOLS_PAGER=$none PAGER='cat >wrong' on_terminal any "$BIN/leakparse" --summary -i perf.data
		grep -q '^1\. .* blocks' screen
	done
	[[ ! -e wrong ]]
}

@test "terminal: root's pager starts no other programs" {
	LESSSECURE=0 LESSSECURE_ALLOW=shell LEAKTOOLS_PAGER='env | grep ^LESSSECURE >secure; cat' \
		on_terminal any "$BIN/leakparse" -i perf.data
	assert_equal "secure" "$(<secure)" LESSSECURE=1
}

@test "terminal: without a terminal, no pager and no colours" {
	local pager='cat >wrong'

	for format in tree html json; do
		PAGER=$pager "$BIN/leakparse" --format $format -i perf.data >out 2>/dev/null
		PAGER=$pager on_terminal any "$BIN/leakparse" --format $format -i perf.data -o written
		diff out written
		run ! grep -q $'\e' out
	done
	PAGER=$pager "$BIN/leakparse" --summary -i perf.data >out
	run ! grep -q $'\e' out
	[[ ! -e wrong ]]
}

@test "terminal: NO_COLOR, and terminals without" {
	export LEAKTOOLS_PAGER=cat
	on_terminal coloured "$BIN/leakparse" --format tree -i perf.data
	NO_COLOR=1 on_terminal plain "$BIN/leakparse" --format tree -i perf.data
	NO_COLOR=1 on_terminal plain "$BIN/leakparse" --summary -i perf.data
	NO_COLOR='' on_terminal coloured "$BIN/leakparse" --summary -i perf.data
	on_terminal plain env TERM=dumb "$BIN/leakparse" --summary -i perf.data
}

@test "terminal: progress and remaining time for a large file" {
	"$BUILD_DIR/test/bench/make_stream" --events 1000000 --live 1000 --stacks 50 >large
	on_terminal progress "$BIN/leakparse" --summary --top 1 large
	grep -q '^1000 blocks, ' screen
	"$BIN/leakparse" --summary large >out 2>err
	[[ ! -s err ]] || fail "$(cat err)"
}
