#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --live, --metrics and --on-leak, and leakparse --from-live: the state of a recording that goes on.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# record_live OPTION...: records the target with a state each second, and waits for the first one.
record_live() {
	start_target leaky_daemon --requests 0 --interval-us 1000
	: >leakrec.err
	"$BIN/leakrec" -p "$RECORDED_PID" -m 512 --live-every 1 "$@" >leakrec.out 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
	go_target
}

end_live() {
	kill -INT "$LEAKREC_PID"
	wait "$LEAKREC_PID" || LEAKREC_STATUS=$?
	kill "$RECORDED_PID"
	finish_target
}

# says TEXT FILE: has it a line with that text?
says() {
	grep -q -e "$1" "$2" 2>/dev/null
}

live_pid() {
	pgrep -P "$LEAKREC_PID" -x leak-live
}

# What /proc/PID/status has of leak-live's broker.
broker_status() {
	sed -n "s/^$1:\t//p" "/proc/$(pgrep -P "$(live_pid)" -x leak-broker)/status"
}

# The line of state $1 that has key $2.
live_key() {
	sed -n "s/^# live: .*\b$2=\([^ ]*\).*/\1/p" "$1"
}

# leakrec waits ten seconds for the last state, which may take longer on a busy machine.
is_last() {
	[[ $(live_key state/leaks ended) == 1 ]]
}

# A later state may have another verdict: what is waited for stays in the file "screen".
shows_growth() {
	"$BIN/leakparse" --from-live state --summary >screen 2>/dev/null && grep -q '^1\. growth: ' screen
}

@test "live: the state of a recording that goes on, and its last one" {
	record_live --live state -o perf.data
	wait_until 60 shows_growth
	head -n 1 screen | grep -qxE 'Being recorded; as it was [0-9.]+ m?s ago'
	grep -q 'held after [0-9.]* s' screen
	grep -q 'query_font (leaky_daemon.c:' screen
	[[ $(stat -c %a state) == 700 && $(stat -c %a state/leaks) == 600 ]]
	run ! grep -E '^(leak|thread|unexpected) ' state/leaks
	end_live
	((!${LEAKREC_STATUS:-0})) || fail "$(cat leakrec.err)"
	wait_until 60 is_last
	assert_equal "files" "$(find state -type f)" state/leaks
	"$BIN/leakparse" --from-live state --summary >screen
	head -n 1 screen | grep -qxE 'Recorded until [0-9.]+ m?s ago'
	# The last one is what the recording says: causes, verdicts and figures. A busy machine may show more causes than
	# are listed, and a state has no limit to give.
	assert_equal "left out" "$(live_key state/leaks left_out)" 0
	LC_ALL=C.UTF-8 "$BIN/leakparse" --summary perf.data |
		sed -e 's/^\(and [0-9]* more\) (--limit N)$/\1/' \
			-e '$s/^Omit --summary .*/A recording (leakrec -o) would have the stacks and each block./' >summary
	LC_ALL=C.UTF-8 "$BIN/leakparse" --from-live state --summary | sed 1d | diff summary -
	LC_ALL=C "$BIN/leakparse" --from-live state --summary >ascii
	run ! LC_ALL=C grep -P '[^\x00-\x7f]' ascii
	grep -q '\[[1-9. ]*\]$' ascii
	# Others read it as a leaks text.
	"$BIN/leakparse" --from-live state >leaks
	cmp leaks state/leaks
	assert_equal "stacks" "$(grep '^stack ' leaks | cut -d ' ' -f 2-6)" \
		"$("$BIN/leakparse" perf.data 2>/dev/null | grep '^stack ' | cut -d ' ' -f 2-6)"
}

no_command_is_left() {
	! pgrep -s 0 -x 'leak-live|leak-broker|note' >/dev/null
}

has_cause() {
	grep -qs '^	query_font+0x' cause.*
}

@test "live: a command once for a cause, with no rights, and leakrec's limits" {
	cat >note <<-'END'
		#!/bin/sh
		echo run >>runs
		cat >"cause.$$"
		grep -E '^(Uid|Cap(Prm|Eff|Bnd)):' /proc/self/status >rights
		cat /proc/self/oom_score_adj >limits
		ulimit -d >>limits
		ls /proc/self/fd >descriptors
		echo "$# $1"
	END
	chmod +x note
	record_live --on-leak "./note 'a;b"
	wait_until 60 has_cause
	wait_until 60 says "^1 'a;b" leakrec.err
	end_live
	# leakrec does not wait for them.
	wait_until 60 no_command_is_left
	# On a busy machine, other causes may look like leaks, too.
	CAUSE=$(grep -l '^	query_font+0x.*leaky_daemon.c' cause.*)
	grep -qE '^[1-9]\. (growth|overdue|burst): .* in leaky_daemon' "$CAUSE"
	assert_equal "capabilities" "$(sed -n 's/^Cap.*:\t//p' rights | sort -u)" 0000000000000000
	assert_equal "descriptors" "$(wc -l <descriptors)" 4 # that of ls, too
	assert_equal "limits" "$(<limits)" "$(</proc/self/oom_score_adj)"$'\n'"$(ulimit -d)"
	assert_equal "runs" "$(grep -c . runs)" "$(find . -name 'cause.*' | wc -l)"
	assert_equal "alerts of the leak" "$(grep -l '^	query_font+0x' cause.* | wc -l)" 1
	[[ ! -e perf.data ]]
	grep -q 'shown only; -o FILE keeps the recording' leakrec.err
}

@test "live: under sudo, all is the caller's" {
	mkdir metrics
	chown 65534:65534 metrics
	export SUDO_UID=65534 SUDO_GID=65534
	record_live --live state --metrics metrics/x.prom --on-leak id
	wait_until 60 says "^uid=65534" leakrec.err
	assert_equal "broker" "$(broker_status Uid)" $'65534\t65534\t65534\t65534'
	# Only reading: CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE.
	assert_equal "others" "$((0x$(broker_status CapPrm) & ~(1 << 2 | 1 << 19 | 1 << 40)))" 0
	end_live
	wait_until 60 is_last
	unset SUDO_UID SUDO_GID
	run ! grep -E '^uid=.*[=,]0\(' leakrec.err
	assert_equal "owners" "$(stat -c %u state state/leaks metrics/x.prom | sort -u)" 65534
	grep -q 'query_font (leaky_daemon.c:' state/leaks
}

@test "live: the recording outlives the parser, and says so once" {
	record_live --live state -o perf.data
	wait_until 60 test -s state/leaks
	kill -KILL "$(live_pid)"
	wait_until 60 says 'its reader is gone' leakrec.err
	grep -q 'cannot write the pipe to the live parser' leakrec.err
	wait_until 60 says 'there are no live reports any more: the recording goes on without them' leakrec.err
	end_live
	((!${LEAKREC_STATUS:-0})) || fail "$(cat leakrec.err)"
	"$BIN/leakparse" --summary perf.data | grep -q 'query_font (leaky_daemon.c:'
	assert_equal "state is older" "$(live_key state/leaks ended)" 0
}

@test "live: a parser that does not run is not waited for" {
	local pid bytes

	record_live --live state -o perf.data
	wait_until 60 test -s state/leaks
	pid=$(live_pid)
	kill -STOP "$pid"
	bytes=$(stat -c %s perf.data)
	# test_perf_writer has more than memory would hold.
	more_is_recorded() { (($(stat -c %s perf.data) > bytes + 100000)); }
	wait_until 60 more_is_recorded
	kill -CONT "$pid"
	end_live
	((!${LEAKREC_STATUS:-0})) || fail "$(cat leakrec.err)"
	wait_until 60 is_last
}

@test "live: a directory that is replaced by a link, and a full disk" {
	mkdir other full
	mount -t tmpfs -o size=1m nodev full
	record_live --live full/state -o perf.data
	wait_until 60 test -s full/state/leaks
	# The directory that was named is written, wherever its name leads.
	mv full/state full/moved
	ln -s "$PWD/other" full/state
	cp full/moved/leaks before
	changed() { ! cmp -s full/moved/leaks before; }
	wait_until 60 changed
	assert_equal "others" "$(ls -A other)" ""
	# The old state stays, whole.
	head -c 2M /dev/zero >full/zeros 2>/dev/null || true
	wait_until 60 says 'cannot write full/state: No space left' leakrec.err
	"$BIN/leakparse" --from-live full/moved --summary | grep -q 'query_font'
	cp full/moved/leaks before
	rm full/zeros
	wait_until 60 changed
	end_live
	assert_equal "said" "$(grep -c 'cannot write' leakrec.err)" 1
	umount full
}

@test "live: that only the metrics cannot be written is said once" {
	chmod 711 .
	mkdir metrics
	export SUDO_UID=65534 SUDO_GID=65534
	record_live --live state --metrics metrics/x.prom
	unset SUDO_UID SUDO_GID
	wait_until 60 says 'cannot write metrics/x.prom: Permission denied' leakrec.err
	cp state/leaks before
	is_newer() { ! cmp -s state/leaks before; }
	wait_until 60 is_newer
	end_live
	assert_equal "said" "$(grep -c 'cannot write' leakrec.err)" 1
}

@test "live: directories and files that are refused" {
	mkdir real open
	ln -s real link
	chmod 777 open
	mkfifo pipe
	ln -s /etc/passwd link.prom
	for args in "--live link" "--live open" "--metrics link.prom" "--metrics pipe" "--metrics none/x.prom"; do
		# shellcheck disable=SC2086
		run -1 "$BIN/leakrec" $args -- true
		[[ $output == "leakrec: cannot "* ]] || fail "$output"
	done
	assert_equal "written" "$(find real open -type f)" ""
	run -2 "$BIN/leakrec" --live-every 5 -- true
	run -2 "$BIN/leakparse" --from-live real --size 3
	run -2 "$BIN/leakparse" --from-live real perf.data
	run -1 "$BIN/leakparse" --from-live real
	[[ $output == *"cannot read real/leaks: No such file"* ]]
}

@test "live: a state that others have changed" {
	mkdir state
	ln -s /etc/passwd state/leaks
	run -1 "$BIN/leakparse" --from-live state
	rm state/leaks
	mkfifo state/leaks
	run -1 "$BIN/leakparse" --from-live state
	rm state/leaks
	printf 'root:x\n' >state/leaks
	run -1 "$BIN/leakparse" --from-live state --summary
	[[ $output == *"is not the state of a recording"* ]]
	printf '# leaks 2\n# live: written=1.000 every=60 ended=0 left_out=7\nscreen \e[2Jx \\x1b y\n\tf\e+0x1\nscreen cut' \
		>state/leaks
	"$BIN/leakparse" --from-live state --summary >screen
	run ! grep $'\e' screen
	grep -qxF '\x1b[2Jx \x1b y' screen
	grep -q '^! leakrec writes this every 60.0 s' screen
	grep -q '^! 7 events are not in it' screen
	run ! grep cut screen
	"$BIN/leakparse" --from-live state >leaks
	run ! grep $'\e' leaks
	for times in "written=-inf every=60" "written=nan every=60" "written=1e300 every=60" "written=1 every=-inf"; do
		printf '# leaks 2\n# live: %s ended=0 left_out=0\n' "$times" >state/leaks
		run -1 "$BIN/leakparse" --from-live state --summary
		[[ $output == *"is not the state of a recording"* ]] || fail "$times: $output"
	done
}

@test "live: read while it is written" {
	record_live --live state --metrics x.prom
	wait_until 60 says '^screen 1\. ' state/leaks
	wait_until 60 test -s x.prom
	for _ in $(seq 20); do
		"$BIN/leakparse" --from-live state --summary >screen
		tail -n 1 screen | grep -q '^A recording (leakrec -o)' || fail "$(cat screen)"
		tail -n 1 x.prom | grep -q '^leakrec_unlisted_causes'
	done
	end_live
}

@test "live: the state of a program that does nothing" {
	start_target leaky_daemon --requests 0 --interval-us 1000
	: >leakrec.err
	"$BIN/leakrec" -p "$RECORDED_PID" --live state --live-every 1 >leakrec.out 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 test -s state/leaks
	go_target
	end_live
}

@test "live: in windows, the state and the metrics are estimates" {
	require_programs
	record_live --live state --metrics x.prom --budget 1%
	wait_until 60 says '^screen .* recorded in [0-9]* windows\?, ' state/leaks
	wait_until 60 says '^leakrec_held_bytes' x.prom
	end_live
	((!${LEAKREC_STATUS:-0})) || fail "$(cat leakrec.err)"
	wait_until 60 is_last
}

# As in exempt.bats: the target is the recorder's parent, which must not be stopped at its fork.
@test "live: what may be missing is said before the recording ends" {
	cat >parent.py <<-'END'
		import os, signal, subprocess, sys, time
		recorder = subprocess.Popen([sys.argv[1], "-p", str(os.getpid()), "--live", "state", "--live-every", "1"],
		                            stderr=subprocess.PIPE, text=True)
		for line in recorder.stderr:
		    if "Ctrl-C ends it" in line:
		        break
		for _ in range(3):
		    if os.fork() == 0:
		        os._exit(0)
		    os.wait()
		end = time.monotonic() + 60
		while time.monotonic() < end:
		    time.sleep(0.05)
		    if os.path.exists("state/leaks") and " or more events lost" in open("state/leaks").read():
		        break
		else:
		    sys.exit("the state has no word of it")
		recorder.send_signal(signal.SIGINT)
		recorder.stderr.read()
		sys.exit(recorder.wait())
	END
	timeout -k 5 120 python3 parent.py "$BIN/leakrec" 2>parent.err 3>&- || fail "$(cat parent.err)"
}

@test "live: without a recording, the end of the parser is the end" {
	record_live --live state
	wait_until 60 test -s state/leaks
	kill -KILL "$(live_pid)"
	wait "$LEAKREC_PID" || LEAKREC_STATUS=$?
	assert_equal "status" "$LEAKREC_STATUS" 1
	assert_equal "said" "$(grep -c 'cannot write the pipe to the live parser: Broken pipe' leakrec.err)" 1
	grep -q 'the live parser was killed by signal 9' leakrec.err
	kill "$RECORDED_PID"
	finish_target
}

@test "live: a parser that is killed at the end" {
	local pid

	record_live --live state
	wait_until 60 test -s state/leaks
	pid=$(live_pid)
	kill -STOP "$pid"
	kill -INT "$LEAKREC_PID"
	# It waits for the parser's last state.
	wait_until 60 says 'shown only; -o FILE keeps the recording' leakrec.err
	kill -KILL "$pid"
	wait "$LEAKREC_PID" || LEAKREC_STATUS=$?
	assert_equal "status" "$LEAKREC_STATUS" 1
	grep -q 'the live parser was killed by signal 9' leakrec.err
	kill "$RECORDED_PID"
	finish_target
}

@test "live: a command, without a recording" {
	run -0 --separate-stderr "$BIN/leakrec" --live state --metrics x.prom -- echo said
	# Its output stays where it is.
	assert_equal "output" "$output" said
	assert_equal "last" "$(live_key state/leaks ended)" 1
	grep -q '^leakrec_allocations_total' x.prom
	[[ ! -e perf.data ]]
}

@test "live: metrics by the rules of the format" {
	record_live --metrics daemon.prom
	wait_until 60 says '^leakrec_cause_leaks' daemon.prom
	end_live
	wait_until 60 says 'function="query_font"' daemon.prom
	assert_equal "mode" "$(stat -c %a daemon.prom)" 644
	grep -qxE 'leakrec_cause_held_bytes\{recording="daemon",function="query_font",module="leaky_daemon"\} [0-9]+' daemon.prom
	grep -qx 'leakrec_lost_events_total{recording="daemon"} 0' daemon.prom
	"$SOURCE_DIR/test/integration/support/check_metrics.py" daemon.prom
	! command -v promtool >/dev/null || promtool check metrics <daemon.prom
}
