#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Many threads and busy loops on few CPUs, in every mode of recording. Nothing is lost, nothing is invented, and the
# kernel does not complain. Each test's target runs for 0.3 seconds, or for STRESS_SECONDS; test/vm/run runs it
# for longer, on other kernels.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

MS_EACH=300
[[ -z ${STRESS_SECONDS:-} ]] || MS_EACH=$((STRESS_SECONDS * 1000))
LOOPS=${STRESS_LOOPS:-3}

setup() {
	common_setup
	last_message=$(dmesg | tail -n 1)
	CGROUP=
	BUSY=()
}

teardown() {
	local status=0

	end_loops
	common_teardown || status=1
	# The folder is in memory, and stays until the last test has ended.
	rm -f "$BATS_TEST_TMPDIR"/{perf.data,leaks}
	[[ -z $CGROUP ]] || wait_until 60 rmdir "$CGROUP" || status=1
	return $status
}

# The loops run while the target does. Setting up and reading the recording need no load, but would take long beside it.
start_loops() {
	for ((i = 0; i < LOOPS; i++)); do
		(while :; do :; done) 3>&- &
		BUSY+=($!)
		STARTED_PIDS+=($!)
		disown # bash is not to tell that it was killed
	done
}

end_loops() {
	((${#BUSY[@]} == 0)) || kill_now "${BUSY[@]}"
	BUSY=()
}

# record_busy "TARGET ARG..." [OPTION...]: as record_attached, beside the loops.
record_busy() {
	local target

	read -ra target <<<"$1"
	start_target "${target[@]}"
	attach "${@:2}"
	start_loops
	go_target
	finish_target
	end_loops
	finish_leakrec
	parse
}

# Nothing that the kernel has logged since setup matches test/vm/complaints, except about crashes of other programs.
assert_kernel_silent() {
	dmesg | awk -v last="$last_message" '{ line[NR] = $0 } $0 == last { first = NR }
		END { for (i = first + 1; i <= NR; i++) print line[i] }' >kernel
	if grep -v '\btraps: ' kernel | grep -E -f "$SOURCE_DIR/test/vm/complaints"; then
		fail "the kernel complained: $(cat kernel)"
	fi
}

# target THREADS ROUNDS [OPTION...]: starts the target; the threads share the rounds, which are a maximum.
target() {
	echo "heap_stress --ms $MS_EACH --threads $1 --rounds $(($2 / $1)) ${*:3}"
}

check() {
	assert_truth
	assert_no_unexpected
	# A thread that ends calls free without an allocation.
	(($(truth threads))) || assert_summary null_frees "$(truth null_frees)"
	tail -n 1 leakrec.err | grep -q ' 0 events lost' || fail "leakrec: $(tail -n 1 leakrec.err)"
	echo "# $(truth allocations) allocations, $(truth frees) frees, exactly: $BATS_TEST_DESCRIPTION" >&3
	assert_kernel_silent
}

@test "stress: no stacks" {
	record_busy "$(target 64 4000000)" --call-graph none
	check
}

@test "stress: stacks by frame pointers" {
	record_busy "$(target 32 2000000)" --call-graph fp
	check
}

@test "stress: stacks by call frame information" {
	record_busy "$(target 16 300000)" -m 1024 --call-graph dwarf
	check
}

@test "stress: frees with stacks" {
	record_busy "$(target 8 300000)" -m 1024 --free-stacks
	check
}

@test "stress: programs without sessions" {
	require_way multi
	record_busy "$(target 16 1000000)" --call-graph fp --record-by multi
	check
}

@test "stress: programs on perf events, no stacks" {
	require_way single
	record_busy "$(target 64 4000000)" --call-graph none --record-by single
	check
}

@test "stress: programs on perf events, stacks by frame pointers" {
	require_way single
	record_busy "$(target 16 1000000)" --call-graph fp --record-by single
	check
}

@test "stress: programs on perf events, forked children" {
	require_way single
	record_busy "$(target 4 100000 --processes 8)" --call-graph fp --record-by single
	check
}

@test "stress: perf events, no stacks" {
	record_busy "$(target 64 2000000)" --perf-events --call-graph none
	check
}

@test "stress: perf events, stacks by frame pointers" {
	record_busy "$(target 32 1000000)" --perf-events --call-graph fp
	check
}

@test "stress: perf events, stacks by call frame information" {
	record_busy "$(target 16 100000)" -m 1024 --perf-events --call-graph dwarf,2048
	check
}

@test "stress: a started program, whose threads end" {
	start_loops
	record_command "$(target 16 1000000)" --call-graph fp
	end_loops
	check
}

@test "stress: mappings" {
	record_busy "$(target 16 1000000 --mappings)" --call-graph fp --with mmap
	grep -v '^truth held_\(blocks\|bytes\) ' truth >truth.heap # those of leakparse have the mappings
	# Perf events do not record mmap's caller.
	with_stacks | awk '/^[a-z#]/ { mapped = $1 == "leak" && $9 == "mmap"; size = $2; next }
		mapped && $1 ~ /^(map_or_unmap|use_heap)\+/ { n++; bytes += size; mapped = 0 }
		END { print n + 0, bytes + 0 }' >mappings
	assert_equal "mappings left, their bytes" "$(cat mappings)" \
		"$(truth mappings_left) $(truth mappings_left_bytes)"
	assert_summary allocations "$(truth allocations)"
	assert_summary frees "$(truth frees)"
	assert_summary lost 0
	assert_kernel_silent
}

@test "stress: blocks of some sizes" {
	require_programs
	record_busy "$(target 16 4000000 --min 100 --max 300)" --call-graph fp --size 100..300
	"$BIN/leakparse" --size 100..300 --order time <perf.data >leaks
	assert_summary allocations "$(truth matching_allocations)"
	assert_summary frees "$(truth matching_frees)"
	assert_summary lost 0
	sed -nE 's/^truth held_([0-9]+) ([0-9]+)$/\1 \2/p' truth | awk '$1 >= 100 && $1 <= 300' | sort >sizes.truth
	awk '$1 == "leak" { n[$2]++ } END { for (s in n) print s, n[s] }' leaks | sort | diff sizes.truth -
	assert_no_unexpected
	assert_kernel_silent
}

# If a task preempts another one inside our programs, a new thread may get no storage for its state.
@test "stress: first calls of threads, of other sizes" {
	require_programs
	record_command "first_calls --seconds ${STRESS_SECONDS:-1}" --call-graph none --size 77777
	assert_summary events 0
	assert_summary lost 0
	assert_kernel_silent
}

@test "stress: forked children" {
	record_busy "$(target 4 100000 --processes 8)" --call-graph fp
	check
}

@test "stress: forked children, perf events" {
	record_busy "$(target 4 50000 --processes 8)" --perf-events --call-graph fp
	check
}

@test "stress: a cgroup" {
	local hierarchy words

	hierarchy=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[[ -n $hierarchy ]] || skip "no cgroup2 is mounted"
	CGROUP=$hierarchy/leaktools-stress-$$
	mkdir "$CGROUP"
	read -ra words <<<"$(target 4 200000 --processes 6)"
	start_target "${words[@]}"
	echo "$RECORDED_PID" >"$CGROUP/cgroup.procs"
	attach --cgroup "$CGROUP" --call-graph fp
	start_loops
	go_target
	finish_target
	end_loops
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	parse
	check
}
