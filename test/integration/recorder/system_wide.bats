#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# All processes of the machine, or of a cgroup: present ones, new ones and those that are left out. None stays stopped.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn
load ../support/mappings

setup() {
	common_setup
	require_program perf
	HIERARCHY=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	if [[ -z $HIERARCHY ]]; then
		mkdir cgroup2
		mount -t cgroup2 none cgroup2
		HIERARCHY=$PWD/cgroup2
	fi
	CGROUP=leaktools-test-$$-$BATS_TEST_NUMBER
	mkdir "$HIERARCHY/$CGROUP" "$HIERARCHY/$CGROUP/inner"
}

teardown() {
	local status=0

	common_teardown || status=1
	wait_until 60 remove_cgroup || status=1
	return $status
}

remove_cgroup() {
	rmdir "$HIERARCHY/$CGROUP/inner" "$HIERARCHY/$CGROUP" 2>/dev/null || [[ ! -e $HIERARCHY/$CGROUP ]]
}

# enter CGROUP COMMAND...: executes the command, which is in the cgroup from its first instruction.
enter() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	exec sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' enter "$HIERARCHY/$1" "${@:2}"
}

# The target is moved while it waits.
start_target_there() {
	start_target "$@"
	echo "$RECORDED_PID" >"$HIERARCHY/$CGROUP/cgroup.procs"
}

stop_leakrec() {
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	parse
}

# The recording has nothing of this process, except the bounds, which leakrec itself writes.
assert_left_out() {
	assert_equal "leaks of $1" "$(leaks_of "$1")" ""
	assert_equal "events of $1" "$(perf script -i perf.data -F pid,event 2>/dev/null |
		awk -v pid="$1" '$1 == pid && !/leakrec:recording:/' | wc -l)" 0
}

# --- The whole machine ---

# record_machine OPTION...: records a target that runs already and one that starts later.
record_machine() {
	local first_pid later_pid

	start_target sizes
	first_pid=$RECORDED_PID
	attach_all -a "$@"
	go_target
	finish_target
	"$TARGETS/fork_tree" >truth.later &
	later_pid=$!
	wait "$later_pid"
	stop_leakrec
	# The test's own shell is never stopped, so its own events may be lost; others lose nothing.
	assert_held_by "$first_pid"
	grep -q '^truth held_' truth.later
	mv truth.later truth
	# The children hold blocks of other sizes.
	leaks_of "$later_pid" >sizes.later
	while read -r size number; do
		((size < 500)) || continue
		assert_equal "blocks of $size" "$number" "$(truth "held_$size")"
	done <sizes.later
	assert_equal "processes" "$(with_stacks | awk '$1 == "leak" && $8 == "fork_tree" { print $6 }' | sort -u | wc -l)" 13
	assert_left_out "$LEAKREC_PID"
}

# attach_all OPTION...: starts leakrec in the background, and returns when it records.
attach_all() {
	: >leakrec.err
	"$BIN/leakrec" -o perf.data "$@" 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
	grep -q '^leakrec: recording ' leakrec.err || fail "leakrec ended before it recorded: $(cat leakrec.err)"
}

@test "machine: present and new processes" {
	record_machine
	grep -q '^leakrec: recording all processes: [0-9]* processes with [0-9]* allocators* so far;' leakrec.err
}

@test "machine: the same with perf events" {
	record_machine --perf-events --call-graph none
}

@test "machine: the reader of the recording is left out" {
	local watchdog_pid reader_pid out

	mkfifo pipe
	{
		echo "$BASHPID" >reader.pid
		exec "$BIN/leakparse" --order time >leaks 2>leakparse.err
	} <pipe 3>&- &
	STARTED_PIDS+=($!)
	# As in a shell's pipeline, the reader must have the pipe when leakrec looks for it.
	exec {out}>pipe
	wait_until 60 test -s reader.pid
	attach_all -a -o - >&"$out"
	exec {out}>&-
	watchdog_pid=$(pgrep -P "$LEAKREC_PID" -x leak-watchdog)
	"$TARGETS/sizes" >truth &
	wait $!
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	reader_pid=$(cat reader.pid)
	wait "$reader_pid"
	(($(summary events) > 1000))
	for pid in "$reader_pid" "$LEAKREC_PID" "$watchdog_pid"; do
		assert_equal "leaks of $pid" "$(leaks_of "$pid")" ""
	done
}

@test "machine: mappings" {
	start_target mappings
	attach_all -a --no-heap --with mmap
	go_target
	finish_target
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	"$BIN/leakparse" --order time --stack '/mappings$' <perf.data >leaks
	grep '^left ' truth | sort | diff - <(left)
	assert_summary lost 0
}

# The next recorder removes them, which may be another test's.
@test "machine: a killed recorder: its file is read, the next recorder removes its probes" {
	start_target leaky_daemon --interval-us 100
	attach --perf-events
	go_target
	wait_until 60 has_grown_to perf.data 300000
	kill -KILL "$LEAKREC_PID"
	wait "$LEAKREC_PID" || true
	[[ -e /proc/$RECORDED_PID ]]
	our_probes | grep -q "^leakrec${LEAKREC_PID}_"
	"$BIN/leakprobe" list >/dev/null
	"$BIN/leakrec" -p "$RECORDED_PID" -d 0.1 -o next.data
	assert_equal "probes left" "$(abandoned_probes | comm -13 abandoned.before -)" ""
	kill -TERM "$RECORDED_PID"
	finish_target
	run --separate-stderr "$BIN/leakparse" -i perf.data
	assert_equal status "$status" 1
	[[ $stderr == *"did not finish"* || $stderr == *killed* ]] || fail "$stderr"
	grep -q '^# summary .*truncated=1' <<<"$output"
	(($(grep -c '^leak 3072 ' <<<"$output") > 1))
}

# --- Process ids that a target chooses for the whole machine ---

# Both are forks of one heap: what they hold has the same addresses.
assert_two_of_one_pid() {
	assert_truth
	assert_events
	assert_no_unexpected
	assert_equal "processes that leak" "$(awk '$1 == "leak" { print $6 }' leaks | sort -u)" "$(truth reused)"
	assert_equal "blocks of the first" "$(grep -c '^leak 593 ' leaks)" 13
	assert_equal "blocks of the next" "$(grep -c '^leak 600 ' leaks)" 13
	assert_equal "addresses" "$(awk '$1 == "leak" { print $3 }' leaks | sort -u | wc -l)" 13
}

@test "machine: two processes with one id, started" {
	record_command pid_reuse
	assert_two_of_one_pid
}

@test "machine: two processes with one id, attached" {
	record_attached pid_reuse
	assert_two_of_one_pid
}

@test "machine: two processes with one id, with perf events" {
	record_attached pid_reuse --perf-events
	assert_two_of_one_pid
}

# --- A cgroup ---

@test "machine: a cgroup, exactly" {
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

@test "machine: a cgroup, exactly, with perf events" {
	start_target_there fork_tree
	attach_all --cgroup "$CGROUP" --perf-events
	"$TARGETS/sizes" >/dev/null
	go_target
	finish_target
	stop_leakrec
	assert_truth
	assert_events
}

@test "machine: processes that enter a cgroup, and one below it" {
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

@test "machine: by size" {
	start_target_there fork_tree
	attach_all --cgroup "$CGROUP" --size 600..700
	go_target
	finish_target
	stop_leakrec
	assert_equal "blocks of 600 bytes" "$(grep -c '^leak 600 ' leaks)" "$(truth held_600)"
	assert_equal "blocks of 700 bytes" "$(grep -c '^leak 700 ' leaks)" "$(truth held_700)"
	assert_equal "others" "$(grep '^leak' leaks | grep -vcE '^leak [67]00 ')" 0
}

@test "machine: a cgroup of version 1, and what is no cgroup, are refused" {
	run -1 "$BIN/leakrec" --cgroup "$CGROUP/nosuch"
	[[ $output == "leakrec: cannot record cgroup $CGROUP/nosuch: No such file or directory;"* ]]
	mkdir one
	mount -t cgroup -o none,name=leaktools-test none one || skip "this kernel has no cgroups of version 1"
	run -1 "$BIN/leakrec" --cgroup one
	umount one
	[[ $output == "leakrec: cannot record cgroup one: it is a cgroup v1; choose a cgroup below $HIERARCHY" ]]
}

@test "machine: only one of -p, -a, --cgroup and a command" {
	run -2 "$BIN/leakrec" -a -p 1
	run -2 "$BIN/leakrec" -a --cgroup /
	run -2 "$BIN/leakrec" --cgroup / -- true
	[[ $output == "leakrec: give either -p PID, -a, --cgroup PATH, or a command to record;"* ]]
}

@test "machine: a cgroup that begins with many files of one user" {
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

# --- Overload ---

@test "machine: under load nothing is lost" {
	start_churn --threads 2 --pairs 100000 --leak-every 1000
	echo "$RECORDED_PID" >"$HIERARCHY/$CGROUP/cgroup.procs"
	attach_all --cgroup "$CGROUP" -m 64
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
@test "machine: no process is stopped for long" {
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

@test "machine: a killed recorder leaves no process stopped" {
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
@test "machine: a shell's job is not stopped" {
	require_program script
	local pid script_pid

	attach_unread
	script -qec "sh -c 'echo \$\$ >$HIERARCHY/$CGROUP/cgroup.procs; echo \$\$ >job.pid; exec $TARGETS/endless_churn --pairs 300000'" /dev/null >truth 3>&- &
	script_pid=$!
	wait_until 60 test -s job.pid
	pid=$(cat job.pid)
	while [[ -e /proc/$pid ]] && ! is_zombie "$pid"; do
		! is_stopped "$pid" || fail "the job was stopped"
	done
	wait "$script_pid"
	tr -d '\r' <truth >truth.job
	grep -q '^truth malloc 600000' truth.job
	kill_now "$LEAKREC_PID" "$UNREAD_PID"
	wait "$LEAKREC_PID" || true
}
