#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Probes are placed on the file that was analysed, wherever its path leads by then, and in no process that is not
# recorded.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	cp "$TARGETS/lib/libfar_allocator.so" libown.so
	C_LIBRARY=$(awk '$6 ~ /libc\.so/ { print $6; exit }' /proc/self/maps)
}

teardown() {
	common_teardown
}

guard_pid() {
	pgrep -P "$LEAKREC_PID" -x leak-watchdog
}

no_code_changed() {
	local changed

	changed=$(python3 "$SOURCE_DIR/test/integration/support/changed_code.py" "$@")
	[[ -z $changed ]] || fail "$changed"
}

# record_replaced OPTION...: records a target that replaces its library by a link to the C library, and forks.
record_replaced() {
	local word

	start_target replaced_library "$PWD/libown.so" "$C_LIBRARY"
	attach "$@"
	go_target
	read -r -t 60 -u "$TARGET_OUT" word
	assert_equal "the target's word" "$word" forked
	no_code_changed "$LEAKREC_PID" "$(guard_pid)"
	go_target
	finish_target
	finish_leakrec
	parse
}

@test "wrong files: a library that is replaced before its process forks" {
	record_replaced
	for size in 5001 5002; do
		assert_equal "leaks of $size" "$(grep -c "^leak $size " leaks)" "$(truth "held_$size")"
		(($(truth "held_$size") > 0))
	done
	assert_summary lost 0
}

@test "wrong files: the same with perf events" {
	record_replaced --perf-events
	assert_equal "leaks of 5001" "$(grep -c "^leak 5001 " leaks)" "$(truth held_5001)"
}

# is_on FILE LINE: true if the event in this line of uprobe_events is on the file. The kernel refuses to add to an event
# a place that it has already.
is_on() {
	local line

	line=$(sed -E "s, [^ ]*(:0x[0-9a-f]+), $1\\1," <<<"$2")
	! echo "$line" 2>/dev/null >>"$TRACEFS/uprobe_events"
}

@test "wrong files: leakprobe, while the path changes between two files" {
	local flipper line nr=0

	ln libown.so looked_at.so
	cp libown.so other.so
	start_target replaced_library "$PWD/libown.so" "$C_LIBRARY"
	python3 "$SOURCE_DIR/test/integration/support/exchange_files.py" libown.so other.so &
	flipper=$!
	STARTED_PIDS+=("$flipper")
	for _ in {1..12}; do
		add_probes --pid "$RECORDED_PID"
		while read -r line; do
			is_on "$PWD/looked_at.so" "$line" || fail "on another file: $line"
			nr=$((nr + 1))
		done < <(uprobe_events | grep -E ":leakprobe_[a-z_0-9]*(libown|other)_so_")
		"$BIN/leakprobe" del --pid "$RECORDED_PID" >/dev/null
	done
	((nr >= 12 * 5)) || fail "only $nr probes were looked at"
	kill_now "$flipper"
	go_target
	go_target
	finish_target
}

@test "wrong files: leakprobe, with events that are on another file" {
	local event

	cp libown.so other.so
	start_target replaced_library "$PWD/libown.so" "$C_LIBRARY"
	add_probes --pid "$RECORDED_PID"
	uprobe_events | grep -E ":leakprobe_[a-z_0-9]*libown_so_" >events
	"$BIN/leakprobe" del --pid "$RECORDED_PID" >/dev/null
	mv libown.so kept.so
	mv other.so libown.so
	cat events >>"$TRACEFS/uprobe_events"
	mv kept.so libown.so
	event=$(sed -nE '1s,^[a-z]+:([^ ]*) .*,\1,p' events)
	echo 1 >"$TRACEFS/events/$event/enable"
	run --separate-stderr "$BIN/leakprobe" add --pid "$RECORDED_PID"
	echo 0 >"$TRACEFS/events/$event/enable"
	assert_equal status "$status" 1
	assert_equal message "$stderr" "leakprobe: cannot remove $event, which is on another file than $PWD/libown.so: a \
recorder uses it; end that recorder"
	run --separate-stderr "$BIN/leakprobe" add --pid "$RECORDED_PID"
	assert_equal status "$status" 1
	assert_equal message "$stderr" "leakprobe: removed $event: it was on another file than $PWD/libown.so; try again"
	go_target
	go_target
	finish_target
}
