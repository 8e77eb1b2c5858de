# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Targets that wait for "go" before they allocate, for recordings with a scan.

# start_waiting TARGET [ARG...]: returns when the target waits.
start_waiting() {
	mkfifo reach.in
	"$1" "${@:2}" <reach.in >truth 2>reach.err 3>&- &
	RECORDED_PID=$!
	STARTED_PIDS+=("$RECORDED_PID")
	exec {REACH_IN}>reach.in
	wait_until 60 grep -q waits truth
}

go_waiting() {
	echo go >&"$REACH_IN"
	wait_until 60 grep -q '^ready ' truth
}

# Lets the target go, ends the recording, which has been attached, and parses it.
finish_scanned() {
	go_waiting
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	end_waiting
	parse
}

# Lets the target end.
end_waiting() {
	exec {REACH_IN}>&-
	wait_until 60 has_ended "$RECORDED_PID"
}
