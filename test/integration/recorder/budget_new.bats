#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --budget: processes and files that are new, or cannot be probed, while a window stays open.

# shellcheck disable=SC2030,SC2031,SC2153,SC2154 # as in ending.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn
load ../support/ending
load ../support/windows

setup() {
	common_setup
	require_program perf
	require_programs
}

teardown() {
	common_teardown
}

# Records the target, which waits.
record_waiting() {
	: >leakrec.err
	"$BIN/leakrec" --budget 50% -p "$RECORDED_PID" -o - --call-graph none >stream.data 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
}

# Records the target, which goes on.
begin() {
	record_waiting
	go_target
}

# end_when CONDITION...: ends both when the condition is true.
end_when() {
	wait_until 60 "$@"
	interrupt
	kill -TERM "$RECORDED_PID"
	wait "$TARGET_PID" || true
	((STATUS == 0)) || fail "$(cat leakrec.err)"
}

# True if leaks are recorded.
has_leaks() {
	perf script -i stream.data -F event,trace 2>/dev/null | grep -q ":malloc.*bytes=3333\b"
}

# has_windows N: true if more than N windows have been opened, and leaks are recorded in one after those.
has_windows() {
	perf script -i stream.data -F event,trace 2>/dev/null |
		awk -v n="$1" '/leakrec:window: .*open=1/ { nr++ } nr > n && /:malloc.*bytes=/ { found = 1; exit } END { exit !found }'
}

said() {
	grep -q "$1" leakrec.err || has_ended "$LEAKREC_PID"
}

# leakrec has said what is missing, in its last line, too, but not that a process went on too soon: none is stopped.
assert_told_once() {
	assert_equal "told" "$(grep -c "cannot attach" leakrec.err)" 1
	grep -q " 0 or more events lost" leakrec.err || fail "$(cat leakrec.err)"
	! grep -q 'continued before its child' leakrec.err || fail "$(cat leakrec.err)"
}

@test "budget: a child of a quiet program is recorded, too" {
	start_target new_in_window fork
	begin
	end_when has_leaks
	grep -q " 0 events lost" leakrec.err || fail "$(cat leakrec.err)"
}

@test "budget: a library that a quiet program loads is recorded, too" {
	start_target new_in_window load "$TARGETS/lib/libpool_allocator.so"
	begin
	end_when has_leaks
}

monotonic_ns() {
	python3 -c 'import time; print(time.monotonic_ns())'
}

# was_open NS: true if a window was open at that time.
was_open() {
	own_samples window | awk -v at="$1" '{ sub(/:/, "", $1) } $1 * 1e9 < at { open = /open=1/ } END { exit !open }'
}

# has_closed FROM_NS TO_NS: true if a window has closed in that time.
has_closed() {
	own_samples window | awk -v from="$1" -v to="$2" '/open=0/ { sub(/:/, "", $1); t = $1 * 1e9; found = found || (t >= from && t <= to) }
		END { exit !found }'
}

# Overwrites a library of a quiet program, between FROM_NS and TO_NS.
overwrite_library() {
	rm -f target.in target.out
	cp "$TARGETS/lib/libpool_allocator.so" .
	start_target new_in_window load "$PWD/libpool_allocator.so"
	begin
	wait_until 60 has_leaks
	wait_until 60 is_open
	FROM_NS=$(monotonic_ns)
	# Opens it for writing, when its probes are gone. Those of the C library stay.
	: >>libpool_allocator.so
	TO_NS=$(monotonic_ns)
	wait_until 60 has_turns $(($(nr_turns) + 1))
	end_when grep -q "no longer recording .*/libpool_allocator.so, which is being overwritten" leakrec.err
}

@test "budget: a quiet program's window ends when one of its files is overwritten" {
	# The budget may close it just before.
	for _ in {1..5}; do
		overwrite_library
		! was_open "$FROM_NS" || break
	done
	was_open "$FROM_NS" || fail "no window was open: $(own_samples window)"
	has_closed "$FROM_NS" "$TO_NS" || fail "$(own_samples window)"
}

@test "budget: a quiet program that another thread replaces is recorded, too" {
	start_target new_in_window exec
	begin
	end_when has_leaks
}

@test "budget: a later file that the kernel takes no probes in does not end the recording" {
	python3 "$SOURCE_DIR/test/integration/support/make_elf.py" refused.so malloc,free,calloc,realloc
	# out, which only the kernel may use
	printf '\xee\xc3' | dd of=refused.so bs=1 seek=$((0x1000)) conv=notrunc status=none
	start_target new_in_window map "$PWD/refused.so"
	begin
	wait_until 60 said "refused.so is not recorded: cannot attach: the kernel does not take a probe there"
	end_when has_windows 1
	assert_told_once
}

# Lets leakrec open no descriptor. It has to be done again: one that is below the limit may be closed.
take_descriptors() {
	local nr=0

	while [[ -e /proc/$LEAKREC_PID/fd/$nr ]]; do
		nr=$((nr + 1))
	done
	prlimit --pid "$LEAKREC_PID" --nofile="$nr:"
}

is_left_out() {
	take_descriptors
	said "process [0-9]*, and maybe others, are not recorded in some windows: cannot attach to "
}

@test "budget: a window for which there are no descriptors is left out" {
	start_target new_in_window fork
	record_waiting
	take_descriptors
	go_target
	wait_until 60 is_left_out
	# As many as it may.
	prlimit --pid "$LEAKREC_PID" --nofile="$(prlimit --pid "$LEAKREC_PID" --nofile --output HARD --noheadings):" ||
		fail "$(cat leakrec.err)"
	end_when has_leaks
	assert_told_once
}

# has_all_since NS NR: true if calls of so many processes were recorded after that time.
has_all_since() {
	perf script -i stream.data --ns -F pid,time,event,trace 2>/dev/null |
		awk -v from="$1" -v nr="$2" '/:malloc/ { sub(/:/, "", $2); if ($2 * 1e9 > from) seen[$1] = 1 }
			END { for (pid in seen) n++; exit n < nr }'
}

@test "budget: processes for which there are no descriptors follow in turn" {
	local pids=() all

	for _ in {1..6}; do
		"$TARGETS/steady_calls" --threads 1 --pause-us 50 <<<go >/dev/null 2>&1 3>&- &
		pids+=($!)
		STARTED_PIDS+=($!)
	done
	all=$(IFS=, && echo "${pids[*]}")
	: >leakrec.err
	"$BIN/leakrec" --budget 5% -p "$all" -o - --call-graph none >stream.data 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
	wait_until 60 has_windows 0
	# Room for the links of four of them: each has two.
	leave_descriptors 8
	wait_until 60 said "process [0-9]*, and maybe others, are not recorded in some windows: cannot attach to "
	wait_until 60 has_all_since "$(monotonic_ns)" 6
	interrupt
	kill -TERM "${pids[@]}"
	wait "${pids[@]}" || true
	((STATUS == 0)) || fail "$(cat leakrec.err)"
	assert_told_once
}

@test "budget: a process that gets the id of an ended one is not probed" {
	own_libc
	timeout -k 5 200 python3 "$SOURCE_DIR/test/integration/support/reuse_pid_in_window.py" "$BIN/leakrec" \
		"$BUILD_DIR/test/targets/lib/libwaits.so" "$PWD/lib" 3>&-
}

pids_of_first_window() {
	perf script -i stream.data -F pid,event,trace 2>/dev/null |
		awk '/leakrec:window: .*open=1/ { nr++ } /:malloc/ && nr == 1 { print $1 }' | sort -u
}

@test "budget: children for which the target table has no room are told of" {
	local input

	mkfifo input
	python3 "$SOURCE_DIR/test/integration/support/full_table.py" "$TARGETS/crowding_ids" <input >ready 3>&- &
	RECORDED_PID=$!
	TARGET_PID=$RECORDED_PID
	STARTED_PIDS+=("$RECORDED_PID")
	exec {input}>input
	wait_until 60 grep -q ready ready
	record_waiting
	echo >&"$input"
	end_when said "the table has no room for more processes"
	grep -q " 0 or more events lost" leakrec.err || fail "$(cat leakrec.err)"
	! grep -q 'continued before its child' leakrec.err || fail "$(cat leakrec.err)"
	# So that it ends its children, too, and they have no id any more.
	exec {input}>&-
	wait "$RECORDED_PID"
}

@test "budget: many busy processes are not all probed at once" {
	local pids=() all

	for _ in {1..300}; do
		nice -n 19 "$TARGETS/steady_calls" --threads 1 --pause-us 3000 <<<go >/dev/null 2>&1 3>&- &
		pids+=($!)
		STARTED_PIDS+=($!)
	done
	all=$(IFS=, && echo "${pids[*]}")
	: >leakrec.err
	"$BIN/leakrec" --budget 0.1% -p "$all" -o - --call-graph none >stream.data 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
	wait_until 60 said "too many busy processes to probe at once: a window has [0-9]* of them, and the others follow in turn"
	wait_until 60 has_windows 0
	interrupt
	kill -TERM "${pids[@]}"
	wait "${pids[@]}" || true
	((STATUS == 0)) || fail "$(cat leakrec.err)"
	(($(pids_of_first_window | wc -l) <= $(sed -n 's/.*a window has \([0-9]*\) of them,.*/\1/p' leakrec.err))) || fail "$(cat leakrec.err)"
	grep -q " 0 events lost" leakrec.err || fail "$(cat leakrec.err)"
}
