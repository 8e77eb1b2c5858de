#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The rights of each process and thread while leakrec records, and while root's leakparse, leakplot and leakscan read: those
# that docs/security.md has ("Rights at run time"), and no others.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/system_wide

# documented WAY: the rows in docs/security.md.
documented() {
	grep -F "| $1 | leak" "$SOURCE_DIR/docs/security.md"
}

# has_documented_rights WAY PID: whether its rows, in $ACTUAL, are those of the document. Processes that place a probe or
# analyse a file come and go, and are left out. Some kernels demand CAP_SYS_ADMIN for perf_event_open()
# (recorder/session/privileges.c).
has_documented_rights() {
	local row level

	ACTUAL=
	read -r level </proc/sys/kernel/perf_event_paranoid
	while read -r row; do
		[[ $row == *"| leak-attach |"* || $row == *"| leak-analyst |"* ]] || ACTUAL+=$row$'\n'
	done < <("$SOURCE_DIR/scripts/rights" "$1" "$2")
	((level <= 2)) || ACTUAL=${ACTUAL// SYS_ADMIN/}
	[[ $ACTUAL == "$DOCUMENTED"$'\n' ]]
}

assert_rights() {
	local DOCUMENTED

	DOCUMENTED=$(documented "$1") || fail "no rows of $1 in docs/security.md"
	wait_until 30 has_documented_rights "$1" "$2" || fail "$(
		diff <(echo "$DOCUMENTED") <(echo -n "$ACTUAL")
		cat leakrec.err
	)"
	# Each thread with uid 0 has a reason.
	run ! grep -E '\| 0 \|.*\| (none|-) \|$' <<<"$ACTUAL"
}

@test "rights: leakrec -p" {
	start_target leaky_daemon --requests 1000000 --interval-us 1000
	go_target
	attach_all -p "$RECORDED_PID"
	assert_rights "leakrec -p" "$LEAKREC_PID"
	stop_leakrec
	kill_now "$RECORDED_PID"
}

@test "rights: leakrec -a" {
	attach_all -a
	assert_rights "leakrec -a" "$LEAKREC_PID"
	stop_leakrec
}

@test "rights: leakrec --cgroup" {
	attach_all --cgroup "$CGROUP"
	assert_rights "leakrec --cgroup" "$LEAKREC_PID"
	stop_leakrec
}

@test "rights: leakrec --live" {
	start_target leaky_daemon --requests 1000000 --interval-us 1000
	go_target
	attach_all -p "$RECORDED_PID" --live state --on-leak true
	assert_rights "leakrec --live" "$LEAKREC_PID"
	stop_leakrec
	kill_now "$RECORDED_PID"
}

# The thread that reads begins when the first window ends.
@test "rights: leakrec --budget" {
	start_target leaky_daemon --requests 1000000 --interval-us 100
	go_target
	attach_all -p "$RECORDED_PID" --budget 1%
	assert_rights "leakrec --budget" "$LEAKREC_PID"
	stop_leakrec
	kill_now "$RECORDED_PID"
}

# The child of the process $1 is leakrec, LEAKREC_PID.
is_leakrec_of() {
	LEAKREC_PID=$(pgrep -P "$1" -x leakrec)
}

@test "rights: leakrec --top" {
	local terminal

	require_program python3
	start_target leaky_daemon --requests 1000000 --interval-us 1000
	go_target
	TERM=xterm python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$BIN/leakrec" -p "$RECORDED_PID" --top \
		</dev/null >leakrec.err 3>&- &
	terminal=$!
	STARTED_PIDS+=("$terminal")
	wait_until 30 is_leakrec_of "$terminal"
	assert_rights "leakrec --top" "$LEAKREC_PID"
	kill -INT "$LEAKREC_PID"
	wait "$terminal"
	kill_now "$RECORDED_PID"
}

@test "rights: leakrec --scan" {
	start_target leaky_daemon --requests 1000000 --interval-us 1000
	go_target
	attach_all -p "$RECORDED_PID" --scan
	assert_rights "leakrec --scan" "$LEAKREC_PID"
	stop_leakrec
	kill_now "$RECORDED_PID"
}

# assert_reader WAY TOOL ARG...: the tool waits for its input.
assert_reader() {
	local input pid

	mkfifo input
	"$BIN/$2" "${@:3}" <input >output 2>leakrec.err 3>&- &
	pid=$!
	STARTED_PIDS+=("$pid")
	exec {input}>input
	assert_rights "$1" "$pid"
	exec {input}>&-
	wait "$pid" || true
}

@test "rights: root's leakparse" {
	assert_reader leakparse leakparse
}

@test "rights: root's leakplot" {
	assert_reader leakplot leakplot -o picture.png
}

@test "rights: root's leakscan" {
	local input slow target pid

	mkfifo reach.in output
	"$TARGETS/reach_memory" <reach.in >truth 3>&- &
	target=$!
	STARTED_PIDS+=("$target")
	exec {input}>reach.in
	wait_until 60 grep -q '^ready' truth
	# Nobody reads what is more than a pipe can hold.
	exec {slow}<>output
	"$BIN/leakscan" -p "$target" --pause-limit 30 --once --blocks >&"$slow" 2>leakrec.err 3>&- &
	pid=$!
	STARTED_PIDS+=("$pid")
	assert_rights leakscan "$pid"
	kill_now "$pid"
	kill_now "$target"
	exec {input}>&- {slow}>&-
}

@test "rights: the head of the table" {
	grep -qxF "$("$SOURCE_DIR/scripts/rights" | head -n 1)" "$SOURCE_DIR/docs/security.md"
}
