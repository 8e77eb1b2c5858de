#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What leakparse --every and leakfollow write while a recording comes in: on recordings whose every allocation is
# written down here, as perf script prints them, and on a process that is being recorded.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/written

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	common_teardown
}

@test "watch: a summary for each period, and one at the end" {
	allocations answer 0 35 10 1000 | recording >text
	"$BIN/leakparse" --every 10 --summary text >screens
	assert_equal "summaries" "$(grep -c ' recorded, ' screens)" 4
	assert_equal "lines between them" "$(grep -cx -e --- screens)" 3
	grep -oE '[0-9]+ blocks, .* in 1 stack, held .*' screens >held
	assert_equal "blocks" "$(sed 's/ .*//' held | tr '\n' ' ')" "100 200 300 350 "
	grep -q 'held after 20.0 s' held
	grep -q 'held at the end' held
}

@test "watch: periods in which nothing happened are passed over" {
	{
		allocations answer 0 5 10 1000
		allocations answer 1000 1005 10 1000
	} | recording >text
	"$BIN/leakparse" --every 10 --summary text >screens
	assert_equal "summaries" "$(grep -c ' recorded, ' screens)" 2
}

@test "watch: a terminal is redrawn in place" {
	allocations answer 0 35 10 1000 | recording >text
	TERM=xterm script -qec "'$BIN/leakparse' --every 10 --summary text" /dev/null </dev/null >screens
	assert_equal "redrawn" "$(grep -c $'\e\\[H' screens)" 4
	run ! grep -x -e '---.*' screens
	TERM=dumb script -qec "'$BIN/leakparse' --every 10 --summary text" /dev/null </dev/null >screens
	run ! grep $'\e' screens
}

@test "watch: --on-leak once for each cause, though others come before it later" {
	{
		allocations small_leak 0 60 10 1000
		allocations large_leak 25 60 10 100000
		allocations table 0 1 100 100
	} | recording >text
	cat >note <<-'END'
		#!/bin/sh
		cat >"cause.$$"
		echo "$# $1 $2" >>notes
	END
	chmod +x note
	"$BIN/leakparse" --every 5 --summary --on-leak "./note 'a  b;c" text >screens
	cat notes
	assert_equal "started" "$(grep -c . notes)" 2
	assert_equal "words" "$(sort -u notes)" "2 'a b;c"
	assert_equal "of the small one" "$(grep -l '^   small_leak' cause.* | wc -l)" 1
	assert_equal "of the large one" "$(grep -l '^   large_leak' cause.* | wc -l)" 1
	grep -h -A 1 recorded cause.* | grep -q '^1\. growth: .* in server (4165)$'
	grep -q '^	small_leak+0x10  (/gone/server)$' cause.*
	# The last screen has the large one first.
	grep '^1\. growth' screens | tail -n 1 | grep -q MiB
}

@test "watch: --on-leak when it fails, or does not exist" {
	{
		allocations one 0 60 10 1000
		allocations two 0 60 20 1000
	} | recording >text
	"$BIN/leakparse" --every 10 --on-leak ./missing text >leaks 2>messages
	assert_equal "messages" "$(grep -c -e --on-leak messages)" 1
	grep -q 'cannot start ./missing: No such file or directory' messages
	"$BIN/leakparse" --on-leak false text >leaks 2>messages
	assert_equal "messages" "$(grep -c -e --on-leak messages)" 1
	grep -q 'false ended with status 1' messages
	run -2 "$BIN/leakparse" --on-leak ' ' text
}

# It is missing while the leak is found.
@test "watch: --on-leak is given when the command can be started, once" {
	mkfifo stream
	exec 8<>stream
	allocations answer 0 60 10 1000 | recording >text
	"$BIN/leakparse" --every 10 --on-leak ./note <stream >leaks 2>messages 3>&- 8>&- &
	cat text >stream
	wait_until 60 grep -q 'cannot start ./note: No such file or directory' messages
	printf '#!/bin/sh\ncat >>alerts\n' >note
	chmod +x note
	exec 8>&-
	wait $!
	assert_equal "alerts" "$(grep -c ' recorded$' alerts)" 1
	assert_equal "messages" "$(grep -c -e --on-leak messages)" 1
}

# exceeds LIMIT: --fail-on-leak=LIMIT while the text comes in; how long the recording was that it took is in "after".
exceeds() {
	local status=0

	"$BIN/leakparse" --every 10 --summary --fail-on-leak="$1" text >screens || status=$?
	after=$(grep -o '[0-9.]* s recorded' screens | tail -n 1)
	((status == 3)) || { ((status == 0)) || fail "status $status"; } && ((status))
}

@test "watch: --fail-on-leak with a rate ends at the second period with that growth" {
	allocations answer 0 60 100 1024 | recording >text # 100 KiB/s
	exceeds 80k/s
	assert_equal "after" "$after" "20.0 s recorded"
	run ! exceeds 120k/s
	run -0 "$BIN/leakparse" --fail-on-leak=120k/s text
	run -3 "$BIN/leakparse" --fail-on-leak=80k/s text
}

@test "watch: --fail-on-leak with a rate is not deceived by a burst" {
	{
		allocations answer 0 60 10 1024
		allocations load 8 10 1000 1024 # it looks like growth when the first ten seconds are over
	} | recording >text
	"$BIN/leakparse" --every 10 --summary text | sed '/^---$/q' | grep '^1\. growth' >first
	grep -q ' 2000 blocks' first
	run ! exceeds 500k/s
}

@test "watch: --fail-on-leak with a size ends as soon as more is held" {
	allocations answer 0 60 10 1024 | recording >text
	exceeds 250k
	assert_equal "after" "$after" "30.0 s recorded"
	run ! exceeds 601k
}

@test "watch: suppressions count what the last period's end has" {
	allocations answer 0 35 10 1000 | recording >text
	echo 'leak:answer' >known
	"$BIN/leakparse" --every 10 --suppressions known --fail-on-leak text >leaks
	"$BIN/leakparse" --suppressions known text >leaks.once
	diff leaks.once leaks
}

# The stream stays open: only leakfollow itself can end before it.
@test "watch: leakfollow shows operations as they come, and ends with its reader" {
	local status=0

	allocations answer 0 2 5 1000 | recording >text
	mkfifo stream
	exec 8<>stream
	"$BIN/leakfollow" --size 1000 <stream >shown 2>messages 3>&- 8>&- &
	cat text >stream
	wait_until 60 grep -q '^enter 8 ' shown
	exec 8>&-
	wait $!
	assert_equal "shown" "$(grep -c ^enter shown)" 10
	# More than fits in a pipe: leakfollow still writes when its reader has gone.
	allocations answer 0 300 10 1000 | recording >text
	exec 8<>stream
	cat text >stream 2>/dev/null 3>&- 8>&- &
	timeout 60 "$BIN/leakfollow" --size 1000 <stream 2>messages 3>&- 8>&- > >(head -n 1 >first) || status=$?
	exec 8>&-
	assert_equal "status" "$status" 1
	assert_equal "messages" "$(cat messages)" ""
}

# Only others come when the reader has gone, and the stream stays open.
@test "watch: what has nothing to write ends with its reader, too" {
	local status=0 head follow

	allocations answer 0 0.05 200 1000 >first
	allocations other 0.1 60 10 2000 >others
	mkfifo stream operations
	exec 8<>stream
	timeout 60 head -n 1 <operations >shown 3>&- 8>&- &
	head=$!
	timeout 60 "$BIN/leakfollow" --size 1000 <stream >operations 2>messages 3>&- 8>&- &
	follow=$!
	{ cat first && head -n 5 others; } | recording >stream
	wait "$head"
	tail -n +6 others | recording >stream 2>/dev/null 3>&- 8>&- &
	wait "$follow" || status=$?
	exec 8>&-
	assert_equal "status" "$status" 1
	assert_equal "messages" "$(cat messages)" ""
}

# The header stays in the buffer until the first hour is over.
@test "watch: leakparse --every ends with its reader" {
	local status=0

	allocations answer 0 60 10 1000 | recording >text
	mkfifo stream changes
	exec 7<>changes 8<>stream
	exec 9>changes 7>&-
	cat text >stream 2>/dev/null 3>&- 8>&- 9>&- &
	timeout 60 "$BIN/leakparse" --every 1h <stream >&9 2>messages 3>&- 8>&- || status=$?
	exec 8>&- 9>&-
	assert_equal "status" "$status" 1
	assert_equal "messages" "$(cat messages)" ""
}

@test "watch: leakparse --every ends when it cannot write" {
	local status=0

	allocations answer 0 300 10 1000 | recording >text
	mkfifo stream
	exec 8<>stream
	cat text >stream 2>/dev/null 3>&- 8>&- &
	timeout 60 "$BIN/leakparse" --every 10 <stream >/dev/full 2>messages 3>&- 8>&- || status=$?
	exec 8>&-
	assert_equal "status" "$status" 1
	grep -q 'cannot write the changes: No space left on device' messages
}

# Without a buffer, no write that failed is left for the flush that follows: as if it were the last that fits in.
@test "watch: why the output cannot be written is kept" {
	local status=0

	allocations answer 0 2 5 1000 | recording >text
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 # stdbuf preloads
	stdbuf -o0 "$BIN/leakfollow" --size 1000 text >/dev/full 2>messages || status=$?
	assert_equal "leakfollow" "$status $(cat messages)" \
		"1 leakfollow: cannot write the operations: No space left on device"
	stdbuf -o0 "$BIN/leakparse" --diff text >/dev/full 2>messages || true
	grep -qx 'leakparse: cannot write the changes: No space left on device' messages
}

@test "watch: a process that is being recorded" {
	local status=0

	common_setup
	start_target leaky_daemon --requests 0 --interval-us 1000
	mkfifo stream
	: >leakrec.err
	"$BIN/leakrec" -p "$RECORDED_PID" -m 512 -o - >stream 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	"$BIN/leakparse" --every 0.5 --summary --fail-on-leak=1k/s --on-leak 'tee cause' <stream >screens 2>messages 3>&- &
	wait_until 60 is_recording "$LEAKREC_PID"
	go_target
	wait $! || status=$?
	assert_equal "status" "$status" 3
	grep -qE '(growth|overdue|burst): .* in leaky_daemon' cause
	wait "$LEAKREC_PID" || true
	kill "$RECORDED_PID"
	finish_target
}
