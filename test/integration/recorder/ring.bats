#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --ring: segments in memory, which are written when a condition is met.

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
	! mountpoint -q disk || umount disk
	[[ -z ${CGROUP:-} ]] || wait_until 60 remove_cgroup || status=1
	return $status
}

# Makes a cgroup of version 2, $CGROUP, if the test may.
make_cgroup() {
	local hierarchy

	hierarchy=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[[ -n $hierarchy ]] && mkdir "$hierarchy/leaktools-ring-$$" 2>/dev/null || return
	CGROUP=$hierarchy/leaktools-ring-$$
	echo +memory 2>/dev/null >"$hierarchy/cgroup.subtree_control" || true
}

remove_cgroup() {
	rmdir "$CGROUP" 2>/dev/null || [[ ! -e $CGROUP ]]
}

# ring LIMIT [OPTION...]: begins to record the target into the memory of leakrec, and to write it below ring/.
ring() {
	attach --ring "$1" -o ring --call-graph fp "${@:2}"
	prefer "$LEAKREC_PID" # as in segments.bats
}

# has_written N REASON: true if so many recordings were written because of that.
has_written() {
	local found

	mapfile -t found < <(grep -F "because of $2: " leakrec.err)
	((${#found[@]} >= $1))
}

# written REASON: stores the directory that was written because of it in REPLY.
written() {
	local found=(ring/*."$1")

	[[ ${#found[@]} == 1 && -d ${found[0]} ]] || fail "not one directory for $1: ${found[*]}"
	REPLY=${found[0]}
	[[ $REPLY =~ ^ring/[0-9]{8}T[0-9]{6}Z\. ]] || fail "$REPLY"
}

# Has leakparse read the directory in REPLY.
read_ring() {
	"$BIN/leakparse" --order time "$REPLY" >leaks 2>leakparse.err || fail "$(cat leakparse.err)"
	"$BIN/leakparse" --summary "$REPLY" >summary.txt 2>&1
	! grep -E "out of order|pauses of up to|cut off|corrupted" summary.txt || fail "$(cat summary.txt)"
}

assert_nothing_lost() {
	assert_summary lost 0
	assert_summary loss_windows 0
}

# The end line says how many were written, and whether that includes the end.
assert_end_line() {
	local lines

	mapfile -t lines <leakrec.err
	[[ ${lines[-1]} =~ $1 ]] || fail "${lines[-1]}"
}

@test "ring: a target that grows is written at its limit, with the stacks of what it held before" {
	start_churn --resting --threads 1 --leak-every 3
	ring 1s --when rss=60M
	go_target
	wait_until 60 has_written 1 rss=60M
	finish_churn
	finish_leakrec
	written rss=60M
	# Most was allocated in segments that are not in memory any more.
	[[ ! -e $REPLY/000001.00000001.data ]]
	assert_equal "owners" "$(stat -c %u:%a "$REPLY" "$REPLY"/*.data | sort -u | tr '\n' ' ')" "$UID:600 $UID:700 "
	assert_equal "other files" "$(find "$REPLY" -type f ! -name '*.data')" ""
	read_ring
	assert_nothing_lost
	# Most of the 60 MiB were in blocks that it leaked, of which one stack has all.
	(($(summary held_bytes) > 30000000)) || fail "$(head -3 leaks)"
	assert_equal "stacks with blocks of 3072 bytes" \
		"$(awk '$1 == "leak" && $2 == 3072 { print $8 }' leaks | sort -u | wc -l)" 1
	assert_end_line ", 0 events lost,.* 1 written, the last [0-9.]+ m?s not written: ring$"
}

@test "ring: growth has it written, and a target that does not grow does not" {
	start_churn --resting --threads 1
	ring 24s --when rss+=30M/m --when rss=10G
	go_target
	wait_until 60 has_made 40000
	finish_churn
	finish_leakrec
	assert_equal "directories" "$(find ring -mindepth 1 | wc -l)" 0
	assert_end_line ", 0 written, the last [0-9.]+ m?s not written: ring$"

	rm target.in target.out
	start_churn --resting --threads 1 --leak-every 3
	ring 24s --when rss+=30M/m --when rss=10G
	go_target
	wait_until 60 has_written 1 rss+=30M/m
	finish_churn
	finish_leakrec
	written rss+=30M-m
	read_ring
	assert_nothing_lost
}

@test "ring: SIGUSR2 has it written each time, with all that was recorded before" {
	local made dir

	start_churn --resting --threads 2 --leak-every 97
	ring 5min,64M
	go_target
	wait_until 60 has_made 20000
	kill -USR2 "$LEAKREC_PID"
	wait_until 60 has_written 1 SIGUSR2
	made=$(progress)
	wait_until 60 has_made $((made + 20000))
	kill -USR2 "$LEAKREC_PID"
	wait_until 60 has_written 2 SIGUSR2
	finish_churn
	finish_leakrec
	for dir in ring/*; do
		REPLY=$dir
		read_ring
		assert_nothing_lost
	done
	# The second one has the first one's events, too.
	[[ -e $dir/000001.00000001.data && -e $dir/000001.00000002.data ]]
	(($(summary allocations) >= made)) || fail "$(head -3 leaks)"
	assert_end_line ", 0 events lost,.* 2 written, the last [0-9.]+ m?s not written: ring$"
}

@test "ring: at the end it is what one recording is" {
	start_churn --resting --threads 4 --leak-every 97
	ring 5min --when end
	go_target
	wait_until 60 has_made 100000
	finish_churn
	finish_leakrec
	written end
	read_ring
	assert_nothing_lost
	assert_truth
	assert_end_line ", 0 events lost,.* 1 written: ring$"
}

# Before Linux 6.15, the target's parent may be faster than leakrec, which then writes in any case.
skip_unless_ends_are_known() {
	local major minor

	IFS=.- read -r major minor _ </proc/sys/kernel/osrelease
	((major > 6 || (major == 6 && minor >= 15))) || skip "before Linux 6.15, how a process ended may not be known"
}

@test "ring: a fatal signal of the target has it written, an exit does not" {
	skip_unless_ends_are_known
	start_churn --resting --threads 2 --leak-every 97
	ring 24s --when signal
	go_target
	wait_until 60 has_made 20000
	kill -SEGV "$RECORDED_PID"
	finish_leakrec
	written signal-11
	read_ring
	assert_nothing_lost
	((10#$(summary held_blocks) > 0))
	assert_end_line ", 0 events lost,.* 1 written: ring$"

	rm -rf ring target.in target.out
	start_churn --resting --threads 2 --leak-every 97
	ring 24s --when signal
	go_target
	wait_until 60 has_made 20000
	finish_churn
	finish_leakrec
	assert_equal "directories" "$(find ring -mindepth 1 | wc -l)" 0
}

@test "ring: a command's fatal signal" {
	run "$BIN/leakrec" --ring 24s --when signal -o ring -- sh -c 'kill -ABRT $$'
	((status == 134)) || fail "$output"
	written signal-6
	read_ring
}

# leakrec keeps the right to see how it ended, although it needs that for nothing else.
@test "ring: a command's fatal signal, by perf events" {
	run "$BIN/leakrec" --perf-events --call-graph fp --ring 24s --when signal -o ring -- sh -c 'kill -ABRT $$'
	((status == 134)) || fail "$output"
	written signal-6
	read_ring
}

@test "ring: a full disk costs the oldest part, and the recording goes on" {
	mkdir disk
	mount -t tmpfs -o size=6m tmpfs disk || skip "tmpfs cannot be mounted"
	start_churn --resting --threads 2 --leak-every 97
	attach --ring 24s -o disk/ring --call-graph fp -z0
	go_target
	# Two segments of 2 s, and each has more than a third of the disk.
	wait_until 60 has_made 100000
	kill -USR2 "$LEAKREC_PID"
	wait_until 60 has_failed
	assert_advances
	wait_until 60 none_stopped
	# With room it is written.
	rm -r disk/ring/* || true
	mount -o remount,size=2g disk
	kill -USR2 "$LEAKREC_PID"
	wait_until 60 has_written 1 SIGUSR2
	finish_churn
	status=0
	wait "$LEAKREC_PID" || status=$?
	((status == 1)) || fail "$status: $(cat leakrec.err)"
	for REPLY in disk/ring/*; do
		assert_equal "other files" "$(find "$REPLY" -type f ! -name '*.data')" ""
		read_ring
		assert_nothing_lost
	done
	umount disk
}

has_failed() {
	contains leakrec.err "No space left on device; "
}

@test "ring: leakrec killed leaves what was written, and the target runs on" {
	start_churn --resting --threads 1 --leak-every 97
	ring 24s
	go_target
	wait_until 60 has_made 20000
	kill -USR2 "$LEAKREC_PID"
	wait_until 60 has_written 1 SIGUSR2
	kill -KILL "$LEAKREC_PID"
	wait "$LEAKREC_PID" || true
	assert_runs
	written SIGUSR2
	read_ring
	assert_nothing_lost
	# The directory is not locked any more.
	wait_until 60 no_recorders
	ring 24s --when end
	finish_churn
	finish_leakrec
	written end
	read_ring
	assert_nothing_lost
}

@test "ring: conditions of a cgroup" {
	make_cgroup || skip "no cgroup of version 2 can be made"
	start_churn --resting --threads 1 --leak-every 3
	echo "$RECORDED_PID" >"$CGROUP/cgroup.procs"
	if [[ ! -e $CGROUP/memory.events ]]; then
		run "$BIN/leakrec" -p "$RECORDED_PID" --ring 24s --when memory.max -o ring
		((status == 1))
		[[ $output == *"has no memory.events"* ]] || fail "$output"
		go_target
		finish_churn
	else
		ring 24s --when memory.high
		go_target
		echo 50M >"$CGROUP/memory.high"
		wait_until 60 has_written 1 memory.high
		echo max >"$CGROUP/memory.high"
		finish_churn
		finish_leakrec
	fi
}

@test "ring: memory is bounded, and what it has no room for is said" {
	start_churn --resting --threads 4 --leak-every 97
	ring 1h,64M -z0
	go_target
	wait_until 120 contains leakrec.err "64.0 MiB have room for the last "
	kill -USR2 "$LEAKREC_PID"
	wait_until 60 has_written 1 SIGUSR2
	finish_churn
	finish_leakrec
	written SIGUSR2
	(($(du -s --apparent-size -B1 "$REPLY" | cut -f1) < 100000000))
	read_ring
	assert_nothing_lost
}

@test "ring: conditions have 32 written in all, so that a program that ends again and again fills no disk" {
	local told='conditions have had 32 recordings written into the directory'

	mkdir -m 700 ring
	mkdir ring/20261129T0000{10..40}Z.{end,SIGUSR2} ring/other
	run -0 "$BIN/leakrec" --ring 5min --when end -o ring -- true
	[[ $output != *"$told"* && $output == *" because of end: "* ]] || fail "$output"
	run -0 "$BIN/leakrec" --ring 5min --when end -o ring -- true
	[[ $output == *"warning: $told"*"; remove some"* && $output == *", 0 written"* ]] || fail "$output"
	rmdir ring/20261129T000010Z.end
	run -0 "$BIN/leakrec" --ring 5min --when end -o ring -- true
	[[ $output == *" because of end: "* ]] || fail "$output"
}

@test "ring: what cannot be is refused" {
	local args

	while IFS='|' read -r args expected; do
		# shellcheck disable=SC2086 # several words
		run "$BIN/leakrec" $args -- true
		((status == 2)) || fail "$args: $status: $output"
		[[ $output == *"$expected"* ]] || fail "$args: $output"
	done <<-'END'
		--ring 5min|name it with -o
		--ring 1M -o ring|--ring takes a size from 64M
		--ring 5min --keep 1G -o ring|either --keep
		--when signal|--when goes with --ring
		--keep 5min --when signal -o ring|--when goes with --ring
		--ring 5min --when rss=0 -o ring|--when takes rss=2G
		--ring 5min --when cpu=3 -o ring|--when takes rss=2G
		--ring 5min --scan -o ring|do not go with --scan
		--ring 5min --with fd -o ring|allocators only
	END
	[[ ! -e ring ]]
}
