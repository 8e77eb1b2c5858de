#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec -- COMMAND records from the first instruction, exactly what the target itself counted.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

# The one path on which the demo daemon leaks, as its stacks must show it.
assert_daemon_stacks() {
	leak_stacks 3072 >stacks
	assert_equal "leaks with a stack" "$(wc -l <stacks)" "$(truth leaked_3072)"
	assert_equal "different stacks" "$(sort -u stacks | wc -l)" 1
	grep -qE '^( malloc)? query_font load_font render_answer handle_request serve main' stacks ||
		fail "the stack: $(head -n 1 stacks)"
	grep -qE $'^\t.*query_font\\+0x[0-9a-f]+  .*leaky_daemon\\.c:[0-9]+ ' leaks ||
		fail "no file:line in: $(grep -m1 query_font leaks)"
}

check_daemon() {
	record_command "leaky_daemon --requests 100 --interval-us 100" "$@"
	assert_truth
	assert_events
	assert_no_unexpected
	assert_equal "3072-byte leaks" "$(grep -c '^leak 3072 ' leaks)" "$(truth leaked_3072)"
}

@test "command: the demo daemon, fp" {
	check_daemon --call-graph fp
	assert_daemon_stacks
}

@test "command: the demo daemon, dwarf" {
	check_daemon --call-graph dwarf
	assert_daemon_stacks
	assert_summary unwind_failures 0
}

@test "command: the demo daemon, stack dumps" {
	check_daemon --call-graph dwarf --raw-stacks
	assert_daemon_stacks
	assert_summary unwind_failures 0
}

@test "command: the demo daemon, dwarf with a short dump" {
	check_daemon --call-graph dwarf,2048
	assert_daemon_stacks
}

@test "command: the demo daemon, no stacks" {
	check_daemon --call-graph none
}

@test "command: leakrec leaves no probes" {
	require_programs
	record_command "null_free"
	run ! grep 'adding probes' leakrec.err
	assert_no_probes_left
}

@test "command: leakrec -v says what records, and why" {
	record_command "leaky_daemon --requests 5" -v --perf-events
	grep -q '^leakrec: perf events (perf) record, because the command line says so' leakrec.err
}

@test "command: leakrec -v says why other ways are not taken" {
	"$BIN/leakrec" -v --record-by single -o single.data -- true 2>leakrec.err || require_way single
	grep -q '^leakrec: BPF programs on perf events (single) record, because the command line says so' leakrec.err
	unshare -pf --mount-proc "$BIN/leakrec" -v -o inner.data -- true 2>leakrec.err || fail "$(cat leakrec.err)"
	grep -qE '^leakrec: perf events \(perf\) record; not session: .*namespace; not multi: .*; not single: ' leakrec.err ||
		fail "$(cat leakrec.err)"
	run ! unshare -pf --mount-proc "$BIN/leakrec" --record-by single -o inner.data -- true
	grep -q '^leakrec: cannot record in the way that --record-by names: .*namespace' <<<"$output"
}

@test "command: leakrec --perf-events adds probes, says so, and removes them" {
	record_command "null_free" --perf-events
	grep -q '^leakrec: adding probes to .*, for this recording only$' leakrec.err
	assert_no_probes_left
}

@test "command: leakrec uses leakprobe's probes and leaves them" {
	add_probes --exe "$TARGETS/cases_static"
	record_command "cases_static"
	run ! grep 'adding probes' leakrec.err
	assert_equal "leaks" "$(grep -c '^leak 3072 ' leaks)" "$(truth held_3072)"
	our_probes >probes.after
	for event in "${OWN_EVENTS[@]}"; do
		grep -qxF "$event" probes.after
	done
}

@test "command: leakrec does not use an incomplete set of leakprobe's probes" {
	local engine

	add_probes --exe "$TARGETS/leaky_daemon"
	remove_event "$(added_groups)/free"
	remove_event "$(added_groups)/realloc"
	for engine in "" --perf-events; do
		# shellcheck disable=SC2086 # none, or one
		record_command "leaky_daemon --requests 60 --interval-us 100" $engine
		# Perf events never use them.
		[[ -n $engine ]] || grep -q "leakprobe's probes lack free realloc" leakrec.err ||
			fail "$(cat leakrec.err)"
		assert_truth
	done
}

@test "command: the last line has events, size, seconds and losses" {
	record_command "null_free"
	tail -n 1 leakrec.err | grep -qE '^leakrec: [0-9]+ events, [0-9.]+ [KM]iB, [0-9.]+ s, 0 events lost'
}

@test "command: leakrec reports and returns its exit status, and keeps the recording" {
	run -3 --separate-stderr "$BIN/leakrec" -o perf.data -- sh -c 'exit 3'
	[[ $stderr == *'ended with status 3'* ]] || fail "$stderr"
	parse
	cp perf.data first
	run -137 --separate-stderr "$BIN/leakrec" -o perf.data -- sh -c 'kill -9 $$'
	[[ $stderr == *'was killed by signal 9'* ]] || fail "$stderr"
	parse
	cmp first perf.data.old
}

@test "command: leakrec does not run it with its own priority" {
	"$BIN/leakrec" -o perf.data -- nice >niceness
	assert_equal "niceness" "$(<niceness)" "$(nice)"
	nice -n 3 "$BIN/leakrec" -o perf.data -- nice >niceness
	assert_equal "niceness" "$(<niceness)" "$(nice -n 3 nice)"
}

@test "command: a 32-bit program is rejected, started or attached" {
	local pid options

	[[ $(uname -m) == x86_64 ]] || skip "only x86-64 runs other code"
	cat >prog32.c <<-'END'
		void _start(void)
		{
			for (;;)
				__asm__ volatile("int $0x80" : : "a"(SYSCALL), "b"(0));
		}
	END
	# exit() and pause()
	cc -m32 -DSYSCALL=1 -static -nostdlib -fno-pic -no-pie -o ends32 prog32.c || skip "the compiler makes no 32-bit code"
	cc -m32 -DSYSCALL=29 -static -nostdlib -fno-pic -no-pie -o prog32 prog32.c
	./ends32 || skip "this kernel runs no 32-bit code"
	./prog32 3>&- &
	pid=$!
	STARTED_PIDS+=("$pid")
	wait_until 60 grep -q prog32 "/proc/$pid/comm"
	for options in "-- ./prog32" "-p $pid" "-p $pid --with mmap" "--no-heap --with mmap -p $pid"; do
		# shellcheck disable=SC2086 # several words
		run -1 --separate-stderr timeout -k 5 60 "$BIN/leakrec" -o perf.data $options
		[[ $stderr == "leakrec: cannot record process "*": $PWD/prog32 is 32-bit code or "* ]] || fail "$options: $stderr"
		[[ $stderr != *$'\n'* ]] || fail "$options: more than one line: $stderr"
	done
	kill_now "$pid"
}

# A process has one tracer.
@test "command: another tracer has the command" {
	require_program strace
	run -1 --separate-stderr strace -f -o strace.out "$BIN/leakrec" -o perf.data -- "$TARGETS/null_free"
	[[ $stderr == "leakrec: cannot start "*" (strace) traces leakrec and what it starts, "*" with -p"* ]] ||
		fail "$stderr"
	[[ $stderr != *$'\n'* ]] || fail "more than one line: $stderr"
}

@test "command: -o - is a pipe that leakparse reads, the target's output goes to stderr" {
	"$BIN/leakrec" -o - -- "$TARGETS/leaky_daemon" --requests 50 --interval-us 100 \
		2>leakrec.err | "$BIN/leakparse" >leaks
	grep '^truth ' leakrec.err >truth
	assert_truth
	assert_no_unexpected
	assert_equal "3072-byte leaks" "$(grep -c '^leak 3072 ' leaks)" 10
}

@test "command: file and pipe hold the same leaks" {
	record_command "leaky_daemon --requests 50 --interval-us 100"
	assert_truth
	perf script -i perf.data >/dev/null 2>&1
	"$BIN/leakparse" --order time -i perf.data >leaks.by-name
	# shellcheck disable=SC2002 # a pipe cannot be seeked, which is the point
	cat perf.data | "$BIN/leakparse" --order time >leaks.by-pipe
	diff leaks leaks.by-name
	diff leaks leaks.by-pipe
}

@test "command: from a time namespace with another clock, nothing is recorded" {
	local offset

	unshare -T --monotonic 1000 --fork true 2>unshare.err || skip "$(cat unshare.err)"
	for offset in 1000 -1; do
		run -1 unshare -T --monotonic "$offset" --fork "$BIN/leakrec" -o perf.data -- "$TARGETS/null_free"
		[[ $output == "leakrec: cannot record from a time namespace "*"; run it on the host" ]] ||
			fail "$output"
	done
	unshare -T --boottime 1000 --fork "$BIN/leakrec" -o perf.data -- "$TARGETS/null_free"
}

# The kernel accepts the recording programs with all options.
@test "command: programs record in every mode" {
	local mode options

	require_programs
	for mode in "--call-graph none" "--call-graph fp" "--free-stacks" "--raw-stacks" \
		"--call-graph dwarf,65000 --raw-stacks --free-stacks" "--size 1..100" "-m 65536" \
		"--size 1..100 --free-stacks --call-graph fp" "-m 16 --on-overload drop"; do
		read -ra options <<<"$mode"
		"$BIN/leakrec" -o perf.data "${options[@]}" -- "$TARGETS/null_free" \
			2>leakrec.err >/dev/null
		! grep -q "perf events record" leakrec.err || fail "$mode: no programs"
	done
}

@test "command: its failure is seen though SIGCHLD is ignored" {
	run perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV' "$BIN/leakrec" -o perf.data -- sh -c 'exit 3'
	assert_equal "status" "$status" 3
	[[ $output == *": sh ended with status 3"* ]] || fail "$output"
}
