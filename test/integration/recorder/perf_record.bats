#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakparse reads perf record's recordings, with our probes and with perf probe's.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

DAEMON="leaky_daemon --requests 60 --interval-us 100"

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

# Prints what two recordings of the same target have in common: sizes, functions, and stacks by name.
leaks_without_addresses() {
	with_stacks "$1" | awk '/^leak/ { print $1, $2, $9 } /^\t/ { name = $1; sub(/\+0x.*/, "", name)
		if (name != "malloc" && name != "calloc" && name != "realloc") print "  " name }' | grep -vE '^  (_start|__libc.*)$'
}

# compare_with_leakrec OPTION...: perf.data is perf record's. A recording by leakrec must have the same leaks.
compare_with_leakrec() {
	parse
	assert_equal "3072-byte leaks" "$(grep -c '^leak 3072 ' leaks)" "$(truth leaked_3072)"
	assert_summary held_blocks "$(truth held_blocks)"
	assert_summary held_bytes "$(truth held_bytes)"
	leaks_without_addresses leaks >leaks.perf
	record_command "$DAEMON" "$@"
	leaks_without_addresses leaks >leaks.leakrec
	diff leaks.perf leaks.leakrec
}

# perf_record OPTION...: records all events of $GROUP of the demo daemon, from its start. Without -B, perf 6.1 crashes
# where another recorder asks the kernel for build-ids on the same CPUs (docs/promises.md).
perf_record() {
	# shellcheck disable=SC2086 # a list of words
	perf record -q -B -m 8192 -o perf.data -e "$GROUP:*" "$@" -- "$TARGETS/"$DAEMON \
		>truth 2>record.err || fail "perf record: $(cat record.err)"
}

@test "perf: leakparse reads perf record -g with leakprobe's probes" {
	add_probes --exe "$TARGETS/leaky_daemon"
	GROUP=$(added_groups)
	perf_record -g
	compare_with_leakrec --call-graph fp
}

@test "perf: leakparse reads perf record --call-graph dwarf with leakprobe's probes" {
	add_probes --exe "$TARGETS/leaky_daemon"
	GROUP=$(added_groups)
	perf_record --call-graph dwarf,4096
	compare_with_leakrec --call-graph dwarf,4096
}

@test "perf: leakparse reads perf record without stacks" {
	add_probes --exe "$TARGETS/leaky_daemon"
	GROUP=$(added_groups)
	perf_record
	parse
	assert_truth
}

# has_files N: perf record has written that many files, and goes on with the next.
has_files() {
	local files=(perf.data.*)

	[[ -e ${files[0]} ]] && ((${#files[@]} >= $1))
}

# True when perf has set up the recording and has started the daemon.
runs_daemon() {
	PERF_PID=$(pgrep -x perf -P "$1") && DAEMON_PID=$(pgrep -x leaky_daemon -P "$PERF_PID")
}

# start_switching: begins a recording in files of two seconds each.
start_switching() {
	DAEMON="leaky_daemon --requests 1000000 --interval-us 5000" perf_record --switch-output=2s 3>&- &
	RECORDING=$!
	wait_until 60 runs_daemon "$RECORDING"
	# If the test fails, all have to end: otherwise perf keeps the probes, and the next tests find none that they can add.
	STARTED_PIDS+=("$RECORDING" "$PERF_PID" "$DAEMON_PID")
}

end_switching() {
	kill -TERM "$DAEMON_PID"
	wait "$RECORDING" || fail "perf record ended with $?: $(cat record.err)"
}

@test "perf: the files of perf record --switch-output are one recording, others are refused" {
	add_probes --exe "$TARGETS/leaky_daemon"
	GROUP=$(added_groups)
	# Perf sets one alarm before it sets up the recording. If that takes longer than two seconds, perf ignores it, and never
	# begins a second file: then record again.
	start_switching
	for _ in {1..5}; do
		! wait_until 10 has_files 1 || break
		end_switching
		rm -f perf.data*
		start_switching
	done
	wait_until 60 has_files 3 || fail "perf record: $(cat record.err; ls -l)"
	end_switching
	mapfile -t files < <(ls perf.data.*)
	"$BIN/leakparse" --order time "${files[@]}" >leaks 2>messages
	assert_truth
	run ! grep -E 'order|another recording' messages
	perf_record
	run -1 --separate-stderr "$BIN/leakparse" "${files[0]}" perf.data
	assert_equal "report" "$output" ""
	assert_equal "message" "$stderr" "leakparse: perf.data: belongs to another recording than the files before it: analyse it by itself"
	run -1 --separate-stderr "$BIN/leakparse" "${files[2]}" "${files[0]}"
	assert_equal "message" "$stderr" "leakparse: ${files[0]} begins before the file before it: give the files in the order in which they were recorded"
}

@test "perf: leakparse reads perf record on a pipe" {
	add_probes --exe "$TARGETS/leaky_daemon"
	GROUP=$(added_groups)
	# shellcheck disable=SC2086
	perf record -q -B -m 8192 -o - -e "$GROUP:*" -- "$TARGETS/"$DAEMON 2>truth 3>&- |
		"$BIN/leakparse" --order time >leaks || fail "perf record: $(cat truth)"
	assert_truth
}

# Probes that perf probe makes: with its names, its arguments (by register, so that no debug information is needed), its
# return probes, and all locations that it finds.
perf_probe() {
	local libc probe

	GROUP=probe_libc$$
	libc=$(ldd "$TARGETS/leaky_daemon" | awk '$1 ~ /^libc\.so/ { print $3 }')
	for probe in 'malloc=malloc bytes=%di' 'malloc_ret=malloc%return $retval' \
		'calloc=calloc n=%di elem_size=%si' 'calloc_ret=calloc%return $retval' \
		'realloc=realloc oldmem=%di bytes=%si' 'realloc_ret=realloc%return $retval' \
		'posix_memalign=posix_memalign memptr=%di alignment=%si size=%dx' \
		'posix_memalign_ret=posix_memalign%return $retval' \
		'memalign=memalign alignment=%di bytes=%si' 'memalign_ret=memalign%return $retval' \
		'free=free mem=%di'; do
		# -f: accept names that events of other groups have.
		perf probe -f -x "$libc" --add "$GROUP:$probe" 2>probe.err ||
			fail "perf probe $probe: $(cat probe.err)"
	done
	mapfile -t -O "${#OWN_EVENTS[@]}" OWN_EVENTS < <(
		uprobe_events | sed -nE "s/^[pr][0-9]*:($GROUP\/[^ ]*) .*/\1/p"
	)
	((${#OWN_EVENTS[@]} >= 11))
}

@test "perf: leakparse reads perf record -g with perf probe's probes" {
	perf_probe
	perf_record -g
	compare_with_leakrec --call-graph fp
}

@test "perf: leakparse reads perf record --call-graph dwarf with perf probe's probes" {
	perf_probe
	perf_record --call-graph dwarf,4096
	compare_with_leakrec --call-graph dwarf,4096
}
