#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A file that takes over the code that reads it (test/targets/libraries/bad_libelf.c) gains nothing, and other files are
# recorded all the same.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/resources

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# start_beside DEED: starts a target that has mapped a file which does DEED to whoever reads it.
start_beside() {
	python3 "$SOURCE_DIR/test/integration/support/make_elf.py" bad.so malloc,free,calloc 10
	start_target maps_code --early "$PWD/bad.so"
	export BAD_DEED=$1 BAD_GAIN=$PWD/gained BAD_INODE
	BAD_INODE=$(stat -c %i bad.so)
}

# While DEED is done, leakprobe reads the file and nothing else goes wrong.
plan_beside() {
	start_beside "$1"
	LD_PRELOAD=$BUILD_DIR/test/targets/lib/libbad_libelf.so \
		"$BUILD_DIR/bin/leakprobe" add --pid "$RECORDED_PID" --dry-run >plan 2>plan.err || fail "$(cat plan.err)"
	grep -q malloc plan || fail "$(cat plan)"
	run compgen -G "gained.*"
	assert_equal "gained" "$output" ""
	go_target
	finish_target
}

# While DEED is done, leakprobe COMMAND reads a file that has probes. GROUP is the group of these.
ask_beside() {
	cp "$(ldd "$TARGETS/null_free" | awk '$1 ~ /^libc\.so/ { print $3 }')" mylibc.so
	add_probes --lib mylibc.so
	GROUP=$(added_groups)
	export BAD_DEED=$1 BAD_GAIN=$PWD/gained BAD_INODE
	BAD_INODE=$(stat -c %i mylibc.so)
	# Other tests may have stale probes: the exit status of check says nothing.
	LD_PRELOAD=$BUILD_DIR/test/targets/lib/libbad_libelf.so "$BIN/leakprobe" "$2" >answer 2>answer.err || true
	grep "^$GROUP:" answer >own || fail "$(cat answer answer.err)"
	run compgen -G "gained.*"
	assert_equal "gained" "$output" ""
}

# nr_messages FILE: without what the code itself has written, which is shown harmlessly.
nr_messages() {
	grep -vcE '^(\\x01)+$' "$1"
}

# left_out: the only message is that the file is left out.
left_out() {
	assert_equal "messages" "$(nr_messages "$1")" 1 || fail "$(cat "$1")"
	grep -q "bad.so: .* it is not probed" "$1" || fail "$(cat "$1")"
}

@test "sandbox: code that opens, connects, kills, forks and becomes root" {
	plan_beside attack
	# It has failed, and the file is read as usual.
	grep -q 'bad.so' plan || fail "$(cat plan)"
}

@test "sandbox: code that crashes" {
	plan_beside crash
	left_out plan.err
}

@test "sandbox: code that writes to all that is open" {
	plan_beside forge
	left_out plan.err
	run ! grep -q bad.so plan
}

@test "sandbox: code that does not end" {
	plan_beside hang
	left_out plan.err
}

@test "sandbox: list and check, and code that attacks" {
	ask_beside attack list
	assert_equal "named" "$(grep -cE ' [a-z_]+\+0x[0-9a-f]+ .* (emulated|stepped) +[a-z]+' own)" "${#OWN_EVENTS[@]}"
	"$BIN/leakprobe" check >answer || true
	grep -q "^$GROUP: .*: ok" answer || fail "$(cat answer)"
	LD_PRELOAD=$BUILD_DIR/test/targets/lib/libbad_libelf.so "$BIN/leakprobe" check >answer || true
	grep -q "^$GROUP: .*: ok" answer || fail "$(cat answer)"
	run compgen -G "gained.*"
	assert_equal "gained" "$output" ""
}

@test "sandbox: list, and code that crashes" {
	ask_beside crash list
	grep -q "mylibc.so: .* what is at its probes is not known" answer.err || fail "$(cat answer.err)"
	grep -q "^# .*mylibc.so: the file cannot be read" answer
	assert_equal "unknown" "$(grep -cE ' \? +\?$' own)" "${#OWN_EVENTS[@]}"
}

@test "sandbox: check, and code that writes to all that is open" {
	ask_beside forge check
	grep -q "^$GROUP: .*: the file cannot be read" own || fail "$(cat own)"
}

@test "sandbox: registered probes on resources, and code that attacks" {
	start_target resources
	add_probes --pid "$RECORDED_PID" --no-heap --pair "$FILES"
	export BAD_DEED=attack BAD_GAIN=$PWD/gained BAD_INODE
	BAD_INODE=$(stat -L -c %i "$(ldd "$TARGETS/resources" | awk '$1 ~ /^libc\.so/ { print $3 }')")
	LD_PRELOAD=$BUILD_DIR/test/targets/lib/libbad_libelf.so "$BIN/leakprobe" del --pid "$RECORDED_PID" >removed
	assert_equal "removed" "$(<removed)" "removed ${#OWN_EVENTS[@]} probes"
	run compgen -G "gained.*"
	assert_equal "gained" "$output" ""
	kill_now "$RECORDED_PID"
}

# pair_beside DEED: leakprobe finds the functions of --pair in a file that does DEED. Sets status, and writes plan.
pair_beside() {
	start_target resources
	export BAD_DEED=$1 BAD_GAIN=$PWD/gained BAD_INODE
	BAD_INODE=$(stat -L -c %i "$(ldd "$TARGETS/resources" | awk '$1 ~ /^libc\.so/ { print $3 }')")
	LD_PRELOAD=$BUILD_DIR/test/targets/lib/libbad_libelf.so run "$BIN/leakprobe" add --pid "$RECORDED_PID" --no-heap \
		--pair "$FILES" --ref "$WIDGETS" --dry-run
	printf '%s\n' "$output" >plan
	assert_equal "gained" "$(compgen -G "gained.*")" ""
	kill_now "$RECORDED_PID"
}

@test "sandbox: --pair, and code that attacks" {
	pair_beside attack
	assert_equal "status" "$status" 0
	# It has failed, and the file is read as usual.
	grep -q '^p:.*/file__take__fclose .*libc.so.6:' plan || fail "$(cat plan)"
}

@test "sandbox: --pair, and code that crashes or writes to all that is open" {
	local deed

	for deed in crash forge; do
		pair_beside "$deed"
		assert_equal "status" "$status" 1
		grep -q 'libc.so.6: .*; functions of --pair and --ref there are not probed' plan || fail "$(cat plan)"
		grep -q 'has mapped no file that defines fopen' plan || fail "$(cat plan)"
		assert_equal "lines" "$(nr_messages plan)" 2
		rm -f target.in target.out
	done
}
