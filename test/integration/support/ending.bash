# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2119,SC2120 # a signal is passed elsewhere
#
# How, and how soon, a recording must end. After churn.bash.

LIMIT_MS=$((2000 * ${WAIT_FACTOR:-1}))

# interrupt [SIGNAL]: sends the signal. leakrec must end in time; its exit status is in STATUS.
interrupt() {
	local began_ms took_ms

	# Start no process below: it would wait for its turn on a busy machine.
	began_ms=$((${EPOCHREALTIME/[.,]/} / 1000))
	kill "-${1:-INT}" "$LEAKREC_PID"
	STATUS=0
	wait "$LEAKREC_PID" || STATUS=$?
	took_ms=$((${EPOCHREALTIME/[.,]/} / 1000 - began_ms))
	echo "took $took_ms ms" >&2
	((took_ms < LIMIT_MS)) || fail "leakrec took $took_ms ms to end: $(tail -n 1 leakrec.err)"
}

# Checks that libc's code in the target equals the file's, so that no breakpoint is in it.
is_unprobed() {
	perl -e 'my ($pid) = @ARGV;
		open my $maps, "<", "/proc/$pid/maps" or die;
		open my $mem, "<:raw", "/proc/$pid/mem" or die;
		while (<$maps>) {
			my ($from, $to, $offset, $path) =
				/^(\w+)-(\w+) r-xp (\w+) .* (\S+\/lib\/libc\.so\S*)$/ or next;
			my $size = hex($to) - hex($from);
			open my $file, "<:raw", $path or die;
			sysseek $mem, hex $from, 0;
			sysseek $file, hex $offset, 0;
			sysread($mem, my $now, $size) == $size or die;
			my $nr = sysread $file, my $code, $size;
			exit(substr($now, 0, $nr) ne $code);
		}
		die "no code"' "$RECORDED_PID"
}

no_events() {
	read_events
	[[ "${EVENTS[*]}" != *":leakrec${LEAKREC_PID}_"* ]]
}

# The probes that leakrec has registered show how far set-up has come.
has_events() {
	! no_events || has_ended "$LEAKREC_PID"
}

# Checks that the target runs, and after a while without probes.
assert_let_go() {
	assert_runs
	# A probe that has not been removed yet costs its CPU time, and the kernel needs some to remove it.
	kill -USR1 "$RECORDED_PID"
	wait_until 120 no_events # for those of all processes
	wait_until 60 is_unprobed
}

assert_whole() {
	assert_equal "status" "$STATUS" 0
	"$BIN/leakparse" <perf.data >leaks 2>leakparse.err || fail "$(cat leakparse.err)"
	assert_equal "lost" "$(summary lost)" "$(end_line lost)"
	assert_equal "events" "$(summary events)" "$(end_line events)"
	! grep -q '^# summary .*truncated=1' leaks || fail "the recording is truncated"
}

# check_ending OPTION...: checks how a running recording ends.
check_ending() {
	# Start it first: set-up takes long while many threads keep the CPUs busy.
	attach "$@"
	set_niceness -20
	go_target
	! is_unprobed || fail "no probe is seen where there are some"
	wait_until 60 has_made $(($(progress) + 1000))
	interrupt
	assert_let_go
	assert_whole
	finish_churn
	set_niceness 0
}
