#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --scan and SIGUSR2: scans while the recording goes on.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/recorded

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# The blocks of one size that are held, by what a scan has said of them.
reach_of() {
	awk -v size="$1" '$1 == "leak" && $2 == size { reach = "not-scanned"; for (i = 4; i <= NF; i++) if ($i ~ /^reach=/) reach = substr($i, 7); print reach }' leaks |
		sort | uniq -c | awk '{ print $1, $2 }'
}

# scan_now NR: returns when that scan has ended.
scan_now() {
	kill -USR2 "$LEAKREC_PID"
	wait_until 60 grep -q "^leakrec: scan $1: " leakrec.err
}

is_ready_again() {
	[[ $(grep -c '^ready ' truth) == 2 ]]
}

# start_scanned: the target holds 20 blocks of each kind, and was scanned. Then it has changed them.
start_scanned() {
	start_waiting "$TARGETS/reach_later" 20
	attach --scan
	go_waiting
	scan_now 1
	echo later >&"$REACH_IN"
	wait_until 60 is_ready_again
}

# By a line: leakrec, too, has the pipe of its standard input open.
end_target() {
	echo end >&"$REACH_IN"
	wait_until 60 has_ended "$RECORDED_PID"
	finish_leakrec
	cat leakrec.err
	parse
}

@test "signalled: a process that ends later has the result of SIGUSR2" {
	start_scanned
	end_target
	[[ $(reach_of 3000) == "20 lost" ]]
	[[ $(reach_of 3032) == "20 held" ]]
	# What was freed is no leak, and what has its address now was not scanned.
	[[ $(reach_of 3048) == "" ]]
	[[ $(reach_of 600) == "7 not-scanned" && $(reach_of 700) == "7 not-scanned" ]]
	[[ $(grep -c '^leakrec: scan ' leakrec.err) == 1 ]]
}

@test "signalled: the last scan counts" {
	start_scanned
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	cat leakrec.err
	end_waiting
	parse
	[[ $(reach_of 3000) == "20 lost" ]]
	[[ $(reach_of 3016) == "20 lost" ]]
	[[ $(reach_of 3032) == "20 held" ]]
	[[ $(reach_of 600) == "7 held" && $(reach_of 700) == "7 lost" ]]
	grep -q '^leakrec: scan 2: .* are lost; ' leakrec.err
	"$BIN/leakparse" --summary <perf.data >screen
	grep -q '^ *held by ' screen
}

@test "signalled: SIGUSR2 during a scan asks for another one" {
	start_waiting "$TARGETS/reach_later" 20
	attach --scan
	go_waiting
	kill -USR2 "$LEAKREC_PID"
	wait_until 60 pgrep -f "^leakscan -p $RECORDED_PID "
	kill -USR2 "$LEAKREC_PID"
	wait_until 60 grep -q '^leakrec: scan 1 goes on; scan 2 follows it$' leakrec.err
	wait_until 60 grep -q '^leakrec: scan 2: ' leakrec.err
	end_target
}

# leakscan has the rights to see that.
@test "signalled: a process that sleeps is not stopped" {
	local before

	[[ $(uname -m) == x86_64 && -e /sys/kernel/btf/vmlinux ]] || skip "needs BPF and x86-64"
	start_waiting "$TARGETS/reach_later" 20
	attach --scan
	go_waiting
	# It says that it is ready, and then waits.
	wait_until 60 grep -q '^State:[[:space:]]*S' "/proc/$RECORDED_PID/status"
	before=$(grep ctxt_switches "/proc/$RECORDED_PID/status")
	scan_now 1
	assert_equal "switches" "$(grep ctxt_switches "/proc/$RECORDED_PID/status")" "$before"
	end_target
}

# The limit is that of a small process.
@test "signalled: a scan that does not end is left out, and the recording is whole" {
	start_waiting "$TARGETS/reach_later" 20
	attach --scan
	go_waiting
	pkill -STOP -P "$LEAKREC_PID" leak-scanner
	kill -USR2 "$LEAKREC_PID"
	wait_until 120 grep -q "^leakrec: warning: scan of process $RECORDED_PID: left out, " leakrec.err
	wait_until 60 grep -q '^leakrec: warning: scan 1 has no result; ' leakrec.err
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	grep -q "cannot scan process $RECORDED_PID: an earlier scan took too long$" leakrec.err
	end_waiting
	parse
	[[ $(reach_of 3032) == "20 not-scanned" ]]
}

# The service has NoNewPrivileges=yes.
@test "signalled: no_new_privs" {
	mkdir no_new_privs
	printf '#!/bin/sh\nexec setpriv --no-new-privs "%s/leakrec" "$@"\n' "$BIN" >no_new_privs/leakrec
	chmod +x no_new_privs/leakrec
	start_waiting "$TARGETS/reach_later" 20
	BIN=$PWD/no_new_privs attach --scan
	go_waiting
	scan_now 1
	grep -q '^leakrec: scan 1: .* are lost; ' leakrec.err
	echo later >&"$REACH_IN"
	wait_until 60 is_ready_again
	end_target
}

@test "signalled: without --scan, SIGUSR2 ends nothing" {
	start_waiting "$TARGETS/reach_later" 5
	attach
	kill -USR2 "$LEAKREC_PID"
	wait_until 60 grep -q 'SIGUSR2 does nothing here: .* start leakrec with --scan$' leakrec.err
	go_waiting
	end_target
	[[ $(grep -c '^leak 3000 ' leaks) == 5 ]]
}

@test "signalled: --pause-limit is that of leakscan" {
	# It does not sleep for long, and 64 MiB cannot be copied so soon.
	# shellcheck disable=SC2016 # Perl's variable
	start_waiting perl -e '$x = "x" x (64 << 20); syswrite(STDOUT, "waits"); select(undef, undef, undef, 0.0005) while 1'
	attach --scan --pause-limit 1ms
	kill -USR2 "$LEAKREC_PID"
	wait_until 60 grep -q '^leakrec: warning: scan 1 has no result; ' leakrec.err
	kill_now "$RECORDED_PID"
	finish_leakrec
	grep -q '^leakscan: process [0-9]* was let go after 1[.0-9]* ms' leakrec.err
	run -2 "$BIN/leakrec" --pause-limit 1 -- true
	[[ $output == *"--pause-limit goes with --scan"* ]]
}
