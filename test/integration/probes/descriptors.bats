#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --with fd: file descriptors, and all calls that open and close them.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/resources

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# held_by PID: lists the descriptors that process PID holds according to the recording.
held_by() {
	awk -v pid="$1" '$1 == "leak" && $6 == pid && / kind=fd/ { print $3 }' leaks | sort
}

# A proxy serves requests, and some clients connect and say nothing: their connections stay open.
is_listening() {
	grep -qi ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp
}

@test "resources: file descriptors, by all the ways that open and close them" {
	local pid

	record_attached descriptors --no-heap --with fd
	# /bin/true closes what it opens to load its libc.
	assert_equal "held" "$(held fd)" "$(truth fd_held)"
	assert_no_unexpected
	with_stacks | grep -A2 '^leak .* openat .* kind=fd' | grep -q 'use_files+0x'
	rm -f target.in target.out
	# The kernel's tracepoints do not show a pipe's two descriptors.
	record_attached descriptors --no-heap --with fd --perf-events
	assert_equal "held" "$(held fd)" $(($(truth fd_held) - $(truth pair_held)))
	# The held descriptors are those that the process has. For files, /proc shows the same.
	rm -f target.in target.out
	start_target descriptors
	attach --no-heap --with fd
	find "/proc/$RECORDED_PID/fd" -printf '%f\n' >before
	pid=$RECORDED_PID
	go_target
	finish_target
	finish_leakrec
	parse
	for fd in $(held_by "$pid"); do
		! grep -qx "$((fd))" before || fail "descriptor $((fd)) was open before"
	done
}

@test "resources: stacks with the most handles come first" {
	record_command "descriptors" --no-heap --with fd
	"$BIN/leakparse" -i perf.data >leaks
	awk '$1 == "history" && $2 != "all" {
		nr = split(substr($4, length("held_blocks=") + 1), held, ",")
		for (most = i = 0; ++i <= nr;)
			if (held[i] > most)
				most = held[i]
		print most + 0
	}' leaks >most
	[[ $(sort -u most | wc -l) -ge 2 ]]
	sort -rn most | diff most -
}

@test "resources: descriptors that clients make a server keep" {
	local port=$((10000 + $$ % 20000)) pid idle=() i fd

	require_program tinyproxy
	printf '%s\n' "Port $port" "Listen 127.0.0.1" "Timeout 600" "MaxClients 100" \
		"LogFile \"$PWD/proxy.log\"" "PidFile \"$PWD/proxy.pid\"" "Allow 127.0.0.1" >proxy.conf
	tinyproxy -d -c proxy.conf >proxy.out 2>&1 3>&- &
	pid=$!
	STARTED_PIDS+=("$pid")
	wait_until 60 is_listening "$port"
	attach -p "$pid" --no-heap --with fd
	for ((i = 0; i < 20; i++)); do
		exec {fd}<>"/dev/tcp/127.0.0.1/$port"
		printf 'GET / HTTP/1.0\r\n\r\n' >&"$fd"
		cat <&"$fd" >/dev/null
		exec {fd}>&-
	done
	has_sockets() { (($(find "/proc/$pid/fd" -lname 'socket:*' | wc -l) == $1)); }
	wait_until 60 has_sockets 1 # it listens
	for ((i = 0; i < 7; i++)); do
		exec {fd}<>"/dev/tcp/127.0.0.1/$port"
		idle+=("$fd")
	done
	wait_until 60 has_sockets 8
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	parse
	assert_equal "connections" "$(with_stacks | grep -cE '^leak .* accept4? .* kind=fd')" 7
	"$BIN/leakparse" --kind fd --summary <perf.data >screen
	grep -qE '^[0-9]+\. [a-z-]+: 7 fds' screen
	for fd in "${idle[@]}"; do
		exec {fd}>&-
	done
	kill_now "$pid"
}
