#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Bad input gives one clear line and an exit status, never a crash. What was recorded before the damage is read.

# shellcheck disable=SC2030,SC2031,SC2154 # each test is a subshell; run sets status and stderr
# shellcheck disable=SC2016,SC2034 # bash -c's own variables; descriptors that hold a FIFO open
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	[[ -z ${PUBLIC_DIR:-} ]] || rm -rf "$PUBLIC_DIR"
	common_teardown
}

# refused STATUS WORDS COMMAND...: the command exits with the status, prints one line on stderr that begins with the
# tool's name and contains the words, and nothing on stdout.
refused() {
	local expected=$1 words=$2

	shift 2
	run --separate-stderr "$@"
	# shellcheck disable=SC2154 # set by run
	assert_equal "status of $*" "$status" "$expected"
	assert_equal "lines on stderr ($stderr)" "$(wc -l <<<"$stderr")" 1
	[[ $stderr =~ ^leak(rec|probe|parse|follow|plot):\  ]] || fail "no tool's name: $stderr"
	grep -qiE -- "$words" <<<"$stderr" || fail "'$words' is not in: $stderr"
	# leakfollow prints its header before it has read anything.
	[[ $1 == */leakfollow ]] || assert_equal stdout "$output" ""
}

gone_pid() {
	true &
	wait $!
	echo $!
}

@test "bad input: no such PID" {
	local pid

	pid=$(gone_pid)
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
	refused 2 "give either -p PID, -a, --cgroup PATH, or a command" "$BIN/leakrec"
	refused 2 "give either -p PID, -a, --cgroup PATH, or a command" "$BIN/leakrec" -p $$ -- true
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

@test "bad input: an empty file" {
	refused 1 "empty|not a perf|no perf" "$BIN/leakparse" </dev/null
	: >empty
	refused 1 "empty" "$BIN/leakparse" -i empty
	refused 1 "empty" "$BIN/leakfollow" --size 1 -i empty
}

@test "bad input: a file that does not exist, or a directory" {
	refused 1 "nothere.*No such file" "$BIN/leakparse" -i nothere
	refused 1 "irectory" "$BIN/leakparse" -i .
}

@test "bad input: a file that is no perf.data" {
	refused 1 "perf" "$BIN/leakparse" -i "$TARGETS/null_free"
	echo "hello, this is a text of some length, and none of it is perf data at all" >text
	refused 1 "perf" "$BIN/leakparse" -i text
	refused 1 "perf" "$BIN/leakfollow" --size 1 -i text
}

@test "bad input: a perf.data without allocator events" {
	require_program perf
	perf record -q -e cpu-clock -o other.data -- true
	refused 1 "alloc|probe" "$BIN/leakparse" -i other.data
}

@test "bad input: a truncated file" {
	local bytes size

	record_command "leaky_daemon --requests 50 --interval-us 0" -z0
	size=$(stat -c %s perf.data)
	for bytes in 1 8 60 104 110 200 1000 $((size / 2)) $((size - 1000)); do
		head -c "$bytes" perf.data >cut.data
		run --separate-stderr "$BIN/leakparse" -i cut.data
		assert_equal "status for $bytes of $size bytes" "$status" 1
		[[ $stderr == "leakparse: "*cut.data* ]] || fail "$stderr"
	done
}

@test "bad input: a pipe that breaks off is read as far as it goes" {
	local size

	start_target leaky_daemon --requests 300 --interval-us 300
	attach -o - >pipe.data
	go_target
	finish_target
	finish_leakrec
	size=$(stat -c %s pipe.data)
	# This is inside a record: records begin at multiples of four.
	head -c $((size * 9 / 10 / 4 * 4 + 1)) pipe.data >cut.data
	run --separate-stderr "$BIN/leakparse" -i cut.data
	assert_equal status "$status" 1
	[[ $stderr == *cut.data* ]] || fail "$stderr"
	grep -q '^# leaks 2' <<<"$output"
	(($(grep -c '^leak 3072 ' <<<"$output") > 5))
	grep -q '^# summary .*truncated=1' <<<"$output"
}

@test "bad input: corrupted files crash nothing" {
	local i

	record_command "leaky_daemon --requests 5 --interval-us 0" -z0
	# Four bytes change in each copy: of the first fifty in the headers, of the others anywhere.
	perl -e 'srand 1;
		open my $in, "<:raw", "perf.data" or die;
		my $whole = do { local $/; <$in> };
		for my $i (0 .. 99) {
			my $bad = $whole;
			my $within = $i < 50 && length $whole > 2000 ? 2000 : length $whole;
			substr($bad, int rand $within, 1) = chr int rand 256 for 1 .. 4;
			open my $out, ">:raw", "bad.$i" or die;
			print $out $bad;
			close $out or die;
		}'
	for ((i = 0; i < 100; i++)); do
		run "$BIN/leakparse" -i bad.$i
		((status < 3)) || fail "round $i, status $status: $output"
		run "$BIN/leakfollow" --size 3072 -i bad.$i
		((status < 3)) || fail "round $i, status $status: $output"
	done
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

@test "bad input: a closed pipe ends leakparse and leakfollow" {
	local tool

	# More text than fits in a pipe.
	record_command "leaky_daemon --requests 5000 --interval-us 0"
	for tool in "leakparse" "leakfollow --size 0..9999"; do
		# shellcheck disable=SC2086
		{
			"$BIN/"$tool <perf.data 2>err 3>&- && echo 0 >status || echo $? >status
		} | head -c 100 >/dev/null
		# The reader has read enough: that is not an error to report.
		grep 'cannot write' err && fail "$(cat err)"
		assert_equal status "$(cat status)" 1
	done
}

@test "bad input: a full disk under leakparse" {
	record_command "leaky_daemon --requests 50 --interval-us 0"
	run --separate-stderr bash -c '"$1" <perf.data >/dev/full' x "$BIN/leakparse"
	assert_equal status "$status" 1
	[[ $stderr == *"No space left"* ]] || fail "$stderr"
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
