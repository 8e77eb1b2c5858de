#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakparse and leakfollow, run by root: they give up root's rights before they read anything, and what a hostile file
# makes of them (test/targets/libraries/bad_libelf.c) gains nothing.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	[[ -z ${READER_PID:-} ]] || kill_now "$READER_PID"
	common_teardown
}

# start_reader TOOL ARG...: starts a tool that waits for the rest of its input.
start_reader() {
	[[ -p input ]] || mkfifo input
	"$BIN/$1" "${@:2}" <input >output 2>messages 3>&- &
	READER_PID=$!
	exec {INPUT_FD}>input
}

end_input() {
	exec {INPUT_FD}>&-
}

# status_is FIELD VALUE [PID]: what /proc/PID/status has.
status_is() {
	local name values

	while IFS=$':\t' read -r name values; do
		[[ $name != "$1" ]] || break
	done <"/proc/${3:-$READER_PID}/status"
	[[ ${values//$'\t'/ } == "$2" ]]
}

find_broker() {
	# The list has no newline at its end.
	read -r BROKER_PID _ <"/proc/$READER_PID/task/$READER_PID/children" || true
	[[ -n $BROKER_PID ]]
}

has_no_rights() {
	local set

	# Where its caller says what has failed, set -e has no effect here.
	wait_until 60 status_is Seccomp 2 || return
	status_is NoNewPrivs 1 || return
	status_is Uid "65534 65534 65534 65534" || return
	status_is Gid "65534 65534 65534 65534" || return
	status_is Groups "" || status_is Groups " " || return
	for set in CapInh CapPrm CapEff CapAmb; do
		status_is $set 0000000000000000 || fail "$set" || return
	done
	# Standard input, output, error, and the broker.
	assert_equal "descriptors" "$(find "/proc/$READER_PID/fd" -type l | wc -l)" 4
}

@test "separation: the process that reads has no rights" {
	local tool

	for tool in "leakparse" "leakparse --every 10 --summary" "leakparse --diff" "leakfollow --size 1"; do
		# shellcheck disable=SC2086 # words
		start_reader $tool
		has_no_rights || fail "$tool: $(cat "/proc/$READER_PID/status" messages)"
		find_broker
		# It is forked first, but may run later.
		wait_until 60 status_is Name leak-broker "$BROKER_PID"
		# Its end is its broker's.
		kill_now "$READER_PID"
		READER_PID=
		wait_until 60 has_ended "$BROKER_PID"
		end_input
	done
}

@test "separation: the broker ends before its tool" {
	start_reader leakparse
	wait_until 60 status_is Seccomp 2
	find_broker
	end_input
	wait "$READER_PID" || true
	READER_PID=
	[[ ! -e /proc/$BROKER_PID ]]
}

@test "separation: without its broker, a tool goes on without names" {
	"$BIN/leakrec" -o - -- sh -c "exec '$TARGETS/sizes' >truth" 2>leakrec.err >piped || fail "$(cat leakrec.err)"
	start_reader leakparse
	wait_until 60 status_is Seccomp 2
	find_broker
	kill -KILL "$BROKER_PID"
	cat piped >&"$INPUT_FD"
	end_input
	wait "$READER_PID" || fail "$(cat messages)"
	READER_PID=
	grep -q "frames have no name" messages || fail "$(cat messages)"
	assert_equal "said" "$(grep -c "leak-broker, .* has ended" messages)" 1
}

@test "separation: without its broker, there is no output, and that is said" {
	"$BIN/leakrec" -o - -- true 2>leakrec.err >piped || fail "$(cat leakrec.err)"
	start_reader leakparse -o out
	wait_until 60 status_is Seccomp 2
	find_broker
	kill -KILL "$BROKER_PID"
	cat piped >&"$INPUT_FD"
	end_input
	STATUS=0
	wait "$READER_PID" || STATUS=$?
	assert_equal "status" "$STATUS" 1
	READER_PID=
	grep -q "leak-broker, .* has ended" messages
}

@test "separation: --from-live" {
	local i

	mkdir live
	{
		printf '# leaks 2\n# live: written=1.000 every=60 ended=0 left_out=0\n'
		# More than fits into a pipe.
		for ((i = 0; i < 20000; i++)); do echo "screen line $i"; done
	} >live/leaks
	mkfifo held
	"$BIN/leakparse" --from-live live >held 2>messages 3>&- &
	READER_PID=$!
	exec {INPUT_FD}<held
	has_no_rights || fail "$(cat "/proc/$READER_PID/status" messages)"
	cmp live/leaks - <&"$INPUT_FD"
	wait "$READER_PID"
	READER_PID=
	end_input
	"$BIN/leakparse" --from-live live -o copy
	cmp live/leaks copy
}

@test "separation: inputs that are links to descriptors" {
	record_command sizes
	"$BIN/leakparse" --order time /dev/stdin <perf.data >by_link
	cmp leaks by_link
	"$BIN/leakparse" --order time <(cat perf.data) >by_pipe
	cmp leaks by_pipe
	run ! "$BIN/leakparse" not/there
	contains <(echo "$output") "cannot read not/there: No such file or directory"
}

# parse_beside DEED: the target's file does DEED to leakparse, which reads it for names.
parse_beside() {
	record_command sizes
	export BAD_DEED=$1 BAD_GAIN=$PWD/gained BAD_INODE
	BAD_INODE=$(stat -c %i "$TARGETS/sizes")
	# Whoever may open files could make one here.
	chmod 777 .
	LD_PRELOAD=$BUILD_DIR/test/targets/lib/libbad_libelf.so run --separate-stderr "$BIN/leakparse" --order time -o bad.leaks perf.data
	assert_equal "gained" "$(compgen -G "gained.*")" ""
}

@test "separation: code that opens, connects, kills, forks and becomes root" {
	parse_beside attack
	assert_equal "status" "$status" 0
	cmp leaks bad.leaks
}

@test "separation: code that crashes" {
	parse_beside crash
	((status > 128)) || fail "status $status: $stderr"
}

@test "separation: code that writes to all that is open" {
	parse_beside forge
	# The recording is not open for writing.
	"$BIN/leakparse" --order time perf.data >again
	cmp leaks again
}
