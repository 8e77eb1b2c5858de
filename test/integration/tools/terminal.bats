#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What leakparse does only on a terminal: a pager, colours.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program python3
	require_program less
	recorded daemon "leaky_daemon --requests 200 --interval-us 100"
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
	on_terminal coloured "$BIN/leakparse" --summary --limit 1 -i perf.data
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
	on_terminal progress "$BIN/leakparse" --summary --limit 1 large
	grep -q '^1000 blocks, ' screen
	"$BIN/leakparse" --summary large >out 2>err
	[[ ! -s err ]] || fail "$(cat err)"
}

@test "terminal: after reading, what goes on" {
	"$BUILD_DIR/test/bench/make_stream" --events 200000 --live 20000 --stacks 50 >large
	# More than a second has passed when it begins.
	mkfifo stream
	{
		nap 1.2
		cat large
	} >stream &
	TERM=xterm script -qec "'$BIN/leakparse' stream >leaks" /dev/null </dev/null >screen
	grep -q 'judging what is held' screen
	grep -qE 'writing, [0-9,]+ of 20,000 blocks' screen
	head -n 1 leaks | grep -qx '# leaks 2'
	"$BIN/leakparse" large >leaks 2>messages
	run ! grep -E 'judging|writing' messages
}

@test "terminal: leakrec records, and for how long it will" {
	start_target leaky_daemon --requests 0 --interval-us 1000
	go_target
	TERM=xterm script -qec "'$BIN/leakrec' -p $RECORDED_PID -d 2.5 -o perf.data" /dev/null </dev/null >screen
	grep -qE $'\r\e\\[K[12] s, [1-9][0-9,]* events/s, [012] s left\r' screen
	# It is gone when the next message comes.
	sed 's/.*\r\x1b\[K//' screen | grep -q '^leakrec: [0-9]* events, '
	TERM=xterm script -qec "'$BIN/leakrec' -o perf.data -- '$TARGETS/leaky_daemon' --requests 300" /dev/null \
		</dev/null >screen
	TERM=dumb script -qec "'$BIN/leakrec' -p $RECORDED_PID -d 1.5 -o perf.data" /dev/null </dev/null >>screen
	run ! grep 'events/s' screen
	kill "$RECORDED_PID"
	finish_target
}
