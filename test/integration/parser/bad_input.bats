#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Bad input gives one clear line and an exit status, never a crash. For recordings see bad_recordings.bats.

# shellcheck disable=SC2030,SC2031,SC2154 # each test is a subshell; run sets status and stderr
# shellcheck disable=SC2016,SC2034 # bash -c's own variables; descriptors that hold a FIFO open
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/bad_input

setup() {
	common_setup
}

teardown() {
	[[ -z ${PUBLIC_DIR:-} ]] || rm -rf "$PUBLIC_DIR"
	common_teardown
}

@test "bad input: no such PID" {
	local pid=4194304 # one more than the kernel gives

	refused 1 "$pid|no such process" "$BIN/leakrec" -o perf.data -p "$pid"
	refused 1 "$pid|no such process" "$BIN/leakprobe" add --pid "$pid"
	[[ ! -e perf.data ]]
}

@test "bad input: an invalid PID" {
	refused 2 "process id" "$BIN/leakrec" -p abc
	refused 2 "process id" "$BIN/leakrec" -p 1,,2
	refused 2 "" "$BIN/leakrec" -p 0
	refused 2 "" "$BIN/leakrec" -p -- -1
}

@test "bad input: -m 3, and other numbers that are no power of two" {
	local pages

	for pages in 3 0 -1 x 5000 99999999999999999999; do
		refused 2 "power of two" "$BIN/leakrec" -m "$pages" -p $$
	done
}

@test "bad input: wrong options" {
	refused 2 "call-graph" "$BIN/leakrec" --call-graph lbr -p $$
	refused 2 "call-graph" "$BIN/leakrec" --call-graph dwarf,99999999 -p $$
	refused 2 "-d" "$BIN/leakrec" -d never -p $$
	refused 2 "give either -p PID, -a, --cgroup PATH, --unit UNIT, --program FILE, or a command" "$BIN/leakrec"
	refused 2 "give either -p PID, -a, --cgroup PATH, --unit UNIT, --program FILE, or a command" "$BIN/leakrec" -p $$ -- true
}

@test "bad input: a command that does not exist, or maps no allocator" {
	refused 1 "cannot run /nonexistent.*No such file" "$BIN/leakrec" -o perf.data -- /nonexistent
	[[ ! -e perf.data ]]
}

@test "bad input: an output that cannot be made" {
	run --separate-stderr "$BIN/leakrec" -o nowhere/perf.data -- "$TARGETS/null_free"
	assert_equal status "$status" 1
	[[ $stderr == *nowhere/perf.data* ]]
	assert_no_probes_left
}

@test "bad input: not permitted" {
	PUBLIC_DIR=$(mktemp -d)
	chmod 755 "$PUBLIC_DIR"
	cp "$BIN/leakrec" "$BIN/leakprobe" "$PUBLIC_DIR"
	cd "$PUBLIC_DIR"
	start_as_root=$BASHPID
	refused 1 "permi|root" setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$PUBLIC_DIR/leakrec" -o perf.data -p "$start_as_root"
	refused 1 "permi|root" setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$PUBLIC_DIR/leakprobe" add --pid "$start_as_root"
	cd "$BATS_TEST_TMPDIR"
}

@test "bad input: a process of another user's container" {
	PUBLIC_DIR=$(mktemp -d)
	chmod 755 "$PUBLIC_DIR"
	cp "$BIN/leakrec" "$TARGETS/null_free" "$PUBLIC_DIR"
	mkfifo target.in target.out
	setpriv --reuid 1234 --regid 1234 --clear-groups unshare -Um \
		"$PUBLIC_DIR/null_free" --wait <target.in >target.out 3>&- &
	TARGET_PID=$!
	exec {TARGET_IN}>target.in {TARGET_OUT}<target.out
	read -r -t 60 -u "$TARGET_OUT" _ RECORDED_PID
	cd "$PUBLIC_DIR"
	refused 1 "permi|root" setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$PUBLIC_DIR/leakrec" -o perf.data -p "$RECORDED_PID"
	cd "$BATS_TEST_TMPDIR"
	# root may read it.
	attach
	go_target
	finish_target
	finish_leakrec
	parse
	assert_truth
}

@test "bad input: a full disk keeps what was recorded" {
	mkdir mnt
	cat >full <<-'END'
		mount -t tmpfs -o size=1m none mnt
		"$1/leakrec" -z0 -o mnt/perf.data -- "$2/leaky_daemon" --requests 2000 --interval-us 0 \
			>truth 2>leakrec.err
		echo $? >status
		cp mnt/perf.data perf.data
	END
	unshare -m --propagation private bash full "$BIN" "$TARGETS"
	assert_equal "leakrec's status" "$(cat status)" 1
	assert_equal "lines about it" "$(grep -ci 'no space left' leakrec.err)" 1
	run --separate-stderr "$BIN/leakparse" -i perf.data
	((status < 128))
	(($(grep -c '^leak 3072 ' <<<"$output") > 5)) || fail "$stderr"
	assert_no_probes_left
}

@test "bad input: a limit on the size of files ends no tool, and is the command's, too" {
	# leakrec makes a copy, of the same size, of the headers of files that others can change.
	cp "$TARGETS/leaky_daemon" large
	truncate -s 64M large
	chmod 0777 large
	(
		ulimit -f $((32 << 10))
		"$BIN/leakrec" -o perf.data -- ./large --requests 100 --interval-us 0 >truth 2>leakrec.err &&
			"$BIN/leakparse" -i perf.data >leaks &&
			"$BIN/leakrec" -o other -- sh -c 'head -c 64M /dev/zero >too_large; echo $? >status' 2>other.err
	) || fail "$(cat leakrec.err other.err)"
	grep -q 'more than the limit on files are not read' leakrec.err
	(($(grep -c '^leak 3072 ' leaks) > 5))
	assert_equal "the command's status" "$(<status)" $((128 + $(kill -l XFSZ)))
}

@test "bad input: a closed pipe ends leakrec" {
	start_target leaky_daemon --interval-us 1000
	go_target
	{
		"$BIN/leakrec" -p "$RECORDED_PID" -o - 2>leakrec.err 3>&- && echo 0 >status || echo $? >status
	} | head -c 100 >/dev/null
	((0 < $(cat status) && $(cat status) < 128)) || fail "status $(cat status)"
	assert_equal "lines" "$(grep -ci 'broken pipe' leakrec.err)" 1
	kill -TERM "$RECORDED_PID"
	finish_target
}

@test "bad input: a stripped static binary without a malloc symbol" {
	cp "$TARGETS/cases_static" stripped
	strip stripped
	refused 1 "malloc|symbol|allocator" "$BIN/leakprobe" add --exe stripped
	refused 1 "malloc|symbol|allocator" "$BIN/leakrec" -o perf.data -- ./stripped
	mkfifo target.in target.out
	./stripped --wait <target.in >target.out 3>&- &
	TARGET_PID=$!
	STARTED_PIDS+=("$TARGET_PID")
	exec {TARGET_IN}>target.in {TARGET_OUT}<target.out
	read -r -t 60 -u "$TARGET_OUT" _ RECORDED_PID
	refused 1 "malloc|symbol|allocator" "$BIN/leakrec" -o perf.data -p "$RECORDED_PID"
	go_target
	finish_target
}

@test "bad input: files that are no ELF files" {
	echo text >text
	: >empty
	head -c 1000 "$TARGETS/null_free" >cut.elf
	refused 1 "text" "$BIN/leakprobe" add --lib text
	refused 1 "empty" "$BIN/leakprobe" add --exe empty
	refused 1 "cut.elf" "$BIN/leakprobe" add --dry-run --exe cut.elf
	refused 1 "No such file" "$BIN/leakprobe" add --lib nothere
	refused 2 "" "$BIN/leakprobe" add
	refused 2 "" "$BIN/leakprobe" frobnicate
}
