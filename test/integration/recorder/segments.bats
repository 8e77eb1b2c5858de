#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --keep: a recording in segments, of which the oldest ones are removed.

# shellcheck disable=SC2030,SC2031,SC2153,SC2154 # as in ending.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn

setup() {
	common_setup
}

teardown() {
	local status=0

	common_teardown || status=1
	! mountpoint -q disk || umount disk || status=1
	return $status
}

# keep LIMIT [OPTION...]: begins to record the target into the directory segments. Its rings have room for less time than
# a process may wait for a busy CPU.
keep() {
	attach --keep "$1" -o segments --call-graph fp "${@:2}"
	prefer "$LEAKREC_PID"
}

# The number of the newest segment.
newest() {
	local names=(segments/*.data)

	REPLY=${names[-1]##*/*.0} REPLY=${REPLY%.data}
	REPLY=$((10#$REPLY))
}

has_segment() {
	newest
	((REPLY >= $1))
}

# True if the first segment is gone, and the newest one has that number at least.
has_dropped_first() {
	[[ ! -e segments/000001.00000001.data ]] && has_segment "$1"
}

# read_segments [ARG...]: has leakparse read the directory, or what is named.
read_segments() {
	"$BIN/leakparse" --order time "${@:-segments}" >leaks 2>leakparse.err || fail "$(cat leakparse.err)"
}

# What leakparse says of losses, gaps and order: nothing.
assert_seamless() {
	assert_summary lost 0
	assert_summary loss_windows 0
	assert_summary still_held 0
	"$BIN/leakparse" --summary segments >summary.txt 2>&1
	! grep -E "out of order|pauses of up to|cut off|corrupted" summary.txt || fail "$(cat summary.txt)"
}

# Of what the target holds at its end, nothing may be missing, and there may be nothing else.
assert_held() {
	assert_summary held_blocks "$(truth held_blocks)"
	assert_summary held_bytes "$(truth held_bytes)"
	assert_sizes
}

@test "segments: together they have what one recording has" {
	start_churn --resting --threads 4 --leak-every 97
	keep 24s
	go_target
	wait_until 60 has_segment 3
	finish_churn
	finish_leakrec
	[[ -e segments/000001.00000001.data ]]
	read_segments
	assert_truth
	assert_seamless
}

@test "segments: the oldest ones go, and what was allocated in them keeps its stack" {
	local file files=()

	require_program perf
	start_churn --resting --threads 2 --leak-every 97
	keep 1s
	go_target
	wait_until 60 has_dropped_first 16
	finish_churn
	finish_leakrec
	grep -q ", 0 events lost" leakrec.err || fail "$(cat leakrec.err)"
	read_segments
	assert_held
	assert_seamless
	grep -q "is not here: only blocks that were still held" summary.txt
	# Each by itself is a recording, for perf script, too. A last one may begin after the target's end.
	for file in segments/*.data; do
		"$BIN/leakparse" <"$file" >/dev/null 2>&1
		if perf script -i "$file" 2>/dev/null | grep -q "leakrec:held: text=malloc"; then
			files=("$file")
		else
			files+=("$file")
		fi
	done
	((${#files[@]} <= 3))
	read_segments "${files[@]}"
	assert_held
	# Their stacks are those of other blocks of the same place.
	assert_equal "stacks with blocks of 3072 bytes" \
		"$(awk '$1 == "leak" && $2 == 3072 { print $8 }' leaks | sort -u | wc -l)" 1
}

has_estimate() {
	read_segments && (($(summary estimated_blocks) > 0))
}

@test "segments: with a budget, each begins between two windows, or in one" {
	local began held
	require_programs

	start_churn --threads 2 --leak-every 3000
	keep 8s --budget 20%
	go_target
	began=$SECONDS
	wait_until 60 has_dropped_first 20
	# On a busy machine, few windows are in eight seconds.
	wait_until 60 has_estimate
	finish_churn
	finish_leakrec
	grep -q ", 0 events lost" leakrec.err || fail "$(cat leakrec.err)"
	held=$(($(truth held_blocks) / (SECONDS - began)))
	read_segments
	assert_summary lost 0
	assert_summary loss_windows 0
	(($(summary windows) > 0)) || fail "no windows: $(cat leakparse.err)"
	# An estimate of what eight seconds have left, from the few windows that a busy machine has in them. A block from
	# before does not stand for all of the time.
	(($(summary estimated_blocks) > 0 && $(summary estimated_blocks) < 50 * held)) ||
		fail "estimated $(summary estimated_blocks), $held in each second"
	"$BIN/leakparse" --summary segments >summary.txt 2>&1
	grep -q "is not here: blocks of windows that had closed by then are unknown" summary.txt
	grep -A2 "^1\. " summary.txt | grep -q "one_pair" || fail "$(cat summary.txt)"
	for file in segments/*.data; do
		"$BIN/leakparse" <"$file" >/dev/null 2>leakparse.err || fail "$(cat leakparse.err)"
	done
}

@test "segments: with a budget, a quiet program's are as without one" {
	require_programs
	start_churn --resting --threads 1 --leak-every 97
	keep 1s --budget 100%
	go_target
	wait_until 60 has_dropped_first 16
	finish_churn
	finish_leakrec
	read_segments
	assert_held
	assert_seamless
}

@test "segments: leakparse reads them while they are written" {
	start_churn --resting --threads 1 --leak-every 97
	keep 1s
	go_target
	wait_until 60 has_dropped_first 14
	for _ in {1..8}; do
		read_segments
		assert_seamless
	done
	finish_churn
	finish_leakrec
	read_segments
	assert_held
}

@test "segments: after kill -9 of leakrec, all are readable up to its last flush" {
	start_churn --resting --threads 1 --leak-every 97
	keep 1s
	go_target
	wait_until 60 has_dropped_first 14
	kill -KILL "$LEAKREC_PID"
	wait "$LEAKREC_PID" || true
	read_segments
	assert_seamless
	((10#$(summary held_blocks) > 0))
	# Another recording goes on in the same directory, which is not locked any more.
	wait_until 60 no_recorders
	keep 1s
	wait_until 60 has_recording 2
	finish_churn
	finish_leakrec
	read_segments
	assert_seamless
}

@test "segments: one from the future does not keep the others" {
	mkdir -m 700 segments
	: >segments/000001.00000001.data
	: >segments/000001.00000002.data
	touch -d "1 year" segments/000001.00000001.data
	start_churn --resting --threads 1 --leak-every 97
	keep 1s
	go_target
	are_gone() { ! compgen -G "segments/000001.*" >/dev/null; }
	wait_until 60 are_gone
	finish_churn
	finish_leakrec
}

@test "segments: recordings that are too short to be cut push out earlier ones, too" {
	mkdir -m 700 segments
	for recording in 1 2 3 4; do
		truncate -s 20M "segments/00000$recording.00000001.data"
	done
	"$BIN/leakrec" --keep 64M -o segments -- true 2>leakrec.err || fail "$(cat leakrec.err)"
	assert_equal "segments" "$(cd segments && echo *)" \
		"000003.00000001.data 000004.00000001.data 000005.00000001.data"
	touch -d "1 hour ago" segments/000003.00000001.data
	"$BIN/leakrec" --keep 30min -o segments -- true 2>leakrec.err || fail "$(cat leakrec.err)"
	assert_equal "segments" "$(cd segments && echo *)" \
		"000004.00000001.data 000005.00000001.data 000006.00000001.data"
}

# True if a recording of that number has three segments.
has_recording() {
	compgen -G "segments/00000$1.00000003.data" >/dev/null
}

@test "segments: a target that is started again is another recording in the same directory" {
	for _ in 1 2; do
		start_churn --resting --threads 1 --leak-every 97
		keep 10min
		go_target
		wait_until 60 has_made 20000
		finish_churn
		finish_leakrec
		rm target.in target.out
	done
	[[ -e segments/000001.00000001.data && -e segments/000002.00000001.data ]]
	read_segments
	grep -q "also has [0-9]* segments\? of earlier recordings" leakparse.err
	assert_truth
	# Files of both are no recording.
	run "$BIN/leakparse" segments/000001.00000001.data segments/000002.00000001.data
	((status == 1))
	[[ $output == *"another recording"* ]]
}

@test "segments: a recording that has only been begun does not hide the one before" {
	start_churn --resting --threads 1 --leak-every 97
	keep 10min
	go_target
	wait_until 60 has_made 20000
	finish_churn
	finish_leakrec
	# Killed at once, and on a full disk.
	: >segments/000002.00000001.data
	head -c 50 segments/000001.00000001.data >segments/000003.00000001.data
	read_segments
	assert_truth
	"$BIN/leakparse" segments 2>&1 >/dev/null | grep -q 'the newest recording has no records; this is an earlier one$'
	# Alone, it is what there is.
	mkdir -m 700 other
	: >other/000001.00000001.data
	run -1 "$BIN/leakparse" other
	# One that another leakrec is writing is not ours to remove.
	sleep 1000 3>&- &
	RECORDED_PID=$!
	STARTED_PIDS+=("$RECORDED_PID")
	"$BIN/leakrec" --keep 24s -o other -p "$RECORDED_PID" 2>first.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	begins() { contains first.err 'leakrec: recording '; }
	wait_until 60 begins
	run -1 "$BIN/leakrec" --keep 24s -o other -- true
	[[ -e other/000001.00000001.data && -e other/000002.00000001.data ]]
	kill "$RECORDED_PID"
	wait "$RECORDED_PID" || true
	finish_leakrec
}

@test "segments: a missing one is a loss" {
	start_churn --resting --threads 1 --leak-every 97
	keep 6s
	go_target
	wait_until 60 has_segment 6
	finish_churn
	finish_leakrec
	newest
	rm "segments/000001.$(printf %08d $((REPLY - 3))).data"
	read_segments
	((10#$(summary loss_windows) > 0))
}

@test "segments: a full disk ends the recording, and what was recorded is readable" {
	mkdir disk
	mount -t tmpfs -o size=6m tmpfs disk || skip "tmpfs cannot be mounted"
	start_churn --resting --threads 2 --leak-every 97
	attach --keep 24s -o disk/segments --call-graph fp -z0
	go_target
	status=0
	wait "$LEAKREC_PID" || status=$?
	((status == 1)) || fail "$status: $(cat leakrec.err)"
	finish_churn
	grep -q "No space left on device" leakrec.err
	run "$BIN/leakparse" disk/segments
	umount disk
	[[ $output == "# leaks 2"* ]] || fail "$output"
}

@test "segments: a disk that is full of what is too old has room" {
	mkdir disk
	mount -t tmpfs -o size=16m tmpfs disk || skip "tmpfs cannot be mounted"
	mkdir -m 700 disk/segments
	! head -c 20M /dev/zero >disk/segments/000001.00000001.data || fail "the disk has room"
	touch -d "2 hours ago" disk/segments/000001.00000001.data
	"$BIN/leakrec" --keep 1h -o disk/segments -- true 2>leakrec.err || fail "$(cat leakrec.err)"
	assert_equal "segments" "$(ls disk/segments)" 000002.00000001.data
	"$BIN/leakparse" disk/segments >/dev/null 2>leakparse.err || fail "$(cat leakparse.err)"
	umount disk
}

@test "segments: the directory's owner has them, and other directories are refused" {
	start_churn --resting --threads 1 --leak-every 97
	chmod 711 .
	export SUDO_UID=65534 SUDO_GID=65534
	keep 1s
	go_target
	wait_until 60 has_dropped_first 14
	run "$BIN/leakrec" --keep 1s -o segments -p "$RECORDED_PID"
	((status == 1))
	[[ $output == *"another leakrec is writing there"* ]] || fail "$output"
	unset SUDO_UID SUDO_GID
	finish_churn
	finish_leakrec
	assert_equal "owners" "$(stat -c %u:%g:%a segments/*.data | sort -u)" 65534:65534:600
	assert_equal "owner" "$(stat -c %u:%g:%a segments)" 65534:65534:700
	ln -s segments link
	run "$BIN/leakrec" --keep 1s -o link -- true
	((status == 1))
	[[ $output == *"symbolic link"* ]]
	run "$BIN/leakrec" --keep 1s -o segments -- true
	((status == 1))
	[[ $output == *"belongs to another user"* ]]
	# A link where a segment will be: nothing is written through it.
	mkdir other
	ln -s "$PWD/target.err" other/000007.00000001.data
	"$BIN/leakrec" --keep 1s -o other -- true
	[[ -L other/000007.00000001.data && -f other/000008.00000001.data ]]
	touch other/4294967294.00000001.data
	run -1 "$BIN/leakrec" --keep 1s -o other -- true
	[[ $output == *"cannot write into other: "*"name another directory" ]] || fail "$output"
}

@test "segments: a limit that may be minutes or MiB is refused" {
	for option in --keep --ring; do
		run "$BIN/leakrec" "$option" 6h,100m -o segments -- true
		((status == 2))
		[[ $output == *"$option: 100m may be minutes or MiB"* ]] || fail "$output"
	done
}
