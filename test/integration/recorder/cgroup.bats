#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# All processes of a cgroup: present ones, and those that enter it. None stays stopped.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn
load ../support/system_wide

@test "cgroup: exactly" {
	start_target_there fork_tree
	attach_all --cgroup "$CGROUP"
	# The probes are on the file that was analysed, wherever its path leads.
	find "/proc/$LEAKREC_PID/fd" -lname '*/libc*' | grep -q . || fail "leakrec does not hold the C library open"
	"$TARGETS/sizes" >/dev/null
	go_target
	finish_target
	stop_leakrec
	assert_truth
	assert_events
	assert_no_unexpected
	grep -q "^leakrec: recording cgroup $CGROUP: 1 process with 1 allocator so far;" leakrec.err
}

@test "cgroup: exactly, with perf events" {
	start_target_there fork_tree
	attach_all --cgroup "$CGROUP" --perf-events
	"$TARGETS/sizes" >/dev/null
	go_target
	finish_target
	stop_leakrec
	assert_truth
	assert_events
}

@test "cgroup: processes that enter it, and one below it" {
	local pid

	attach_all --cgroup "$HIERARCHY/$CGROUP"
	start_target_there sizes
	go_target
	finish_target
	enter "$CGROUP/inner" "$TARGETS/sizes" >truth.inner &
	pid=$!
	wait "$pid"
	stop_leakrec
	assert_held_by "$RECORDED_PID"
	mv truth.inner truth
	assert_held_by "$pid"
	assert_no_unexpected
	# Names are found, too, though the target mapped its files before it entered the cgroup.
	leak_stacks 3072 | grep -q ' main '
}

@test "cgroup: by size" {
	start_target_there fork_tree
	attach_all --cgroup "$CGROUP" --size 600..700
	go_target
	finish_target
	stop_leakrec
	assert_equal "blocks of 600 bytes" "$(grep -c '^leak 600 ' leaks)" "$(truth held_600)"
	assert_equal "blocks of 700 bytes" "$(grep -c '^leak 700 ' leaks)" "$(truth held_700)"
	assert_equal "others" "$(grep '^leak' leaks | grep -vcE '^leak [67]00 ')" 0
}

@test "cgroup: one of version 1, and what is none, are refused" {
	run -1 "$BIN/leakrec" --cgroup "$CGROUP/nosuch"
	[[ $output == "leakrec: cannot record cgroup $CGROUP/nosuch: No such file or directory;"* ]]
	mkdir one
	mount -t cgroup -o none,name=leaktools-test none one || skip "this kernel has no cgroups of version 1"
	run -1 "$BIN/leakrec" --cgroup one
	umount one
	[[ $output == "leakrec: cannot record cgroup one: it is a cgroup v1; choose a cgroup below $HIERARCHY" ]]
}

@test "cgroup: one that begins with many files of one user" {
	local i size many many_pid in out

	python3 "$SOURCE_DIR/test/integration/support/make_elf.py" many.so malloc,free,calloc,realloc,memalign,aligned_alloc,valloc,pvalloc
	# More functions than there are probe sites.
	for i in {1..130}; do
		cp many.so "many$i.so"
	done
	for i in 1 2 3; do
		cp "$TARGETS/lib/libpool_allocator.so" "late$i.so"
	done
	chown 65534 many*.so
	chown 65533 late*.so
	start_target_there maps_code --early many?*.so
	many=$TARGET_PID many_pid=$RECORDED_PID
	exec {in}>&"$TARGET_IN" {out}<&"$TARGET_OUT" {TARGET_IN}>&- {TARGET_OUT}<&-
	rm target.in target.out
	start_target_there late_allocator "$PWD"/late[123].so
	attach_all --cgroup "$CGROUP"
	assert_equal "told" "$(grep -c "of user 65534 and other files are not recorded: a user's files may" leakrec.err)" 1
	echo >&"$in"
	cat <&"$out" >truth.many
	wait "$many"
	exec {in}>&- {out}<&-
	go_target
	finish_target
	stop_leakrec
	# Another user's files get their probe sites, though they come last.
	for size in 5001 5002 5003; do
		assert_equal "leaks of $size" "$(grep -c "^leak $size " leaks)" "$(truth "held_$size")"
		(($(truth "held_$size") > 0))
	done
	# So does the C library, also for the user with the many files.
	mv truth.many truth
	assert_held_by "$many_pid"
	assert_summary lost 0
	assert_no_unexpected
}

# assert_others_recorded OPTION...: one of two files does not hold up the recording of the other.
assert_others_recorded() {
	start_target_there maps_code --early "$PWD/refused.so"
	attach_all --cgroup "$CGROUP" "$@"
	go_target
	finish_target
	stop_leakrec
	assert_equal "leaks" "$(grep -c '^leak 3001 ' leaks)" "$(truth held_3001)"
	rm target.in target.out
}

# make_refused CODE: makes refused.so, whose malloc consists of CODE.
make_refused() {
	python3 "$SOURCE_DIR/test/integration/support/make_elf.py" refused.so malloc,free,calloc,realloc
	printf '%b' "$1" | dd of=refused.so bs=1 seek=$((0x1000)) conv=notrunc status=none
}

@test "cgroup: a file that the kernel does not take probes in" {
	local mode

	# out, which only the kernel may use
	make_refused '\xee\xc3'
	for mode in --call-graph=fp --perf-events; do
		assert_others_recorded "$mode"
		assert_equal "told" "$(grep -c 'refused.so is not recorded: cannot attach: the kernel does not take' leakrec.err)" 1
		grep -q ' 0 or more events lost' leakrec.err || fail "$(cat leakrec.err)"
	done
}

@test "cgroup: a file whose code shows that the kernel does not take probes in it" {
	# cs ret
	make_refused '\x2e\xc3'
	assert_others_recorded
	grep -q 'cannot probe .*/refused.so: a probe is not possible, or not safe, on ".*ret" in malloc$' leakrec.err || fail "$(cat leakrec.err)"
}

@test "cgroup: a named process with such a file is refused" {
	make_refused '\xee\xc3'
	start_target maps_code --early "$PWD/refused.so"
	run -1 "$BIN/leakrec" -p "$RECORDED_PID" -d 0.1
	[[ $output == *"cannot attach to $PWD/refused.so in process $RECORDED_PID: the kernel does not take a probe there" ]]
	go_target
	finish_target
}

# --- Overload ---

@test "cgroup: under load nothing is lost" {
	start_churn --threads 2 --pairs 100000 --leak-every 1000
	echo "$RECORDED_PID" >"$HIERARCHY/$CGROUP/cgroup.procs"
	attach_all --cgroup "$CGROUP" -m 64
	# Unlike others, this test has small rings, and no loss is excused.
	prefer "$LEAKREC_PID"
	go_target
	finish_target
	stop_leakrec
	assert_truth
}

# attach_unread: attaches to the cgroup; nothing reads the recording.
attach_unread() {
	mkfifo unread
	tail -f /dev/null <unread 3>&- &
	UNREAD_PID=$!
	STARTED_PIDS+=("$UNREAD_PID")
	attach_all --cgroup "$CGROUP" -m 64 -o - >unread
}

# The recorder waits for a reader that does not read. Processes that are stopped because of that run on all the same.
@test "cgroup: no process is stopped for long" {
	start_churn
	echo "$RECORDED_PID" >"$HIERARCHY/$CGROUP/cgroup.procs"
	attach_unread
	go_target
	wait_until 60 was_held
	assert_advances
	kill_now "$LEAKREC_PID" "$UNREAD_PID"
	wait "$LEAKREC_PID" || true
	assert_runs
	finish_churn
}

@test "cgroup: a killed recorder leaves no process stopped" {
	start_churn --threads 2
	echo "$RECORDED_PID" >"$HIERARCHY/$CGROUP/cgroup.procs"
	go_target
	for _ in 1 2 3 4 5; do
		attach_all --cgroup "$CGROUP" -m 64
		kill -KILL "$LEAKREC_PID"
		wait "$LEAKREC_PID" || true
		assert_runs
	done
	finish_churn
}

# A shell would take that for Ctrl-Z.
@test "cgroup: a shell's job is not stopped" {
	require_program script
	local pid script_pid

	attach_unread
	script -qec "sh -c 'echo \$\$ >$HIERARCHY/$CGROUP/cgroup.procs; echo \$\$ >job.pid; exec $TARGETS/endless_churn --pairs 60000'" /dev/null >truth 3>&- &
	script_pid=$!
	wait_until 60 test -s job.pid
	pid=$(cat job.pid)
	# A stop would last: nothing reads the recording.
	until has_ended "$pid"; do
		! is_stopped "$pid" || fail "the job was stopped"
		nap 0.02
	done
	wait "$script_pid"
	tr -d '\r' <truth >truth.job
	grep -q '^truth malloc 120000' truth.job
	# Nor was it stopped between two looks.
	grep -qx 'truth continued 0' truth.job
	kill_now "$LEAKREC_PID" "$UNREAD_PID"
	wait "$LEAKREC_PID" || true
}
