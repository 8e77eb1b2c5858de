#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Compares the growth of a process with what was recorded of it.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# grow TARGET-OPTION LEAKREC-OPTION...: records a growth by 100 MiB, and stores what --summary says about it.
grow() {
	start_target grows_unseen --mib 100 "$1"
	attach "${@:2}"
	go_target
	while read -r line <&"$TARGET_OUT" && [[ $line != "truth done 1" ]]; do :; done
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	kill_now "$RECORDED_PID"
	rm -f target.in target.out
	"$BIN/leakparse" --summary perf.data >screen
}

# assert_mib NAME[+NAME] FROM TO: members of the JSON report's balance, in MiB.
assert_mib() {
	"$BIN/leakparse" --format json perf.data >report.json
	python3 - "$@" <<-END
		import json, sys
		name, low, high = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
		memory = json.load(open("report.json"))["memory"]
		parts = [memory[part] for part in ("recorded", "other", "file", "shared", "swap")]
		assert sum(parts) == memory["rss"], memory
		assert low <= sum(memory[part] for part in name.split("+")) / 2**20 <= high, memory
		assert len(memory["samples"]) == memory["processes"] == 1 and memory["ended"] == 0, memory
	END
}

@test "memory: direct mappings are distinguished from blocks" {
	local engine

	for engine in "" --perf-events; do
		# shellcheck disable=SC2086 # none, or one
		grow --mapped $engine
		cat screen
		grep -q '^RSS grew by 10[2-9] MiB: +2.00 MiB in recorded blocks, +10[0-7] MiB in other anonymous memory' screen
		grep -qE '^  No recorded allocation can explain (9[89]|100)\.?[0-9]* MiB of the other anonymous memory$' screen
		grep -q '^  Record with --with mmap to see who maps memory: ' screen
		assert_mib recorded 2 2
		assert_mib other 100 107
	done
	grow --mapped --with mmap
	grep -qE '^100 mappings, 100 MiB ' screen
	grep -qx '  leakparse --kind mapping shows what was mapped' screen
}

@test "memory: growth is explained though nothing was recorded" {
	grow --own-heap
	cat screen
	assert_equal "lines" "$(sed -n '2,$p' screen | cut -c1-60)" "\
Nothing was recorded: no probe was hit
RSS grew by 100 MiB: 0 bytes in recorded blocks, +100 MiB in
  No recorded allocation can explain 100 MiB of the other an
  Record with --with mmap to see who maps memory: the progra
  as Go's or Java's, or an allocator that is not recorded"
	grow --older
	grep -qx '  Hardly any memory was mapped: the process may have begun to use memory that it had before' screen
}

@test "memory: file pages are listed separately, in tmpfs as shared memory" {
	head -c 20M /dev/zero >data
	start_target grows_unseen --mib 20 --file "$PWD/data"
	attach
	go_target
	while read -r line <&"$TARGET_OUT" && [[ $line != "truth done 1" ]]; do :; done
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	kill_now "$RECORDED_PID"
	assert_mib file+shared 20 21
	assert_mib other 0 0.5
}

@test "memory: perf script shows the samples, also of children, and they are few" {
	require_program perf
	start_target grows_unseen --mib 1
	attach -d 3
	finish_leakrec
	kill_now "$RECORDED_PID"
	perf script -i perf.data -F pid,event,trace 2>/dev/null | grep leakrec:memory >samples
	# At 0, 0.1, 0.2, 0.4, 0.8, 1.6, 2.6 and 3 seconds, or fewer on a busy machine.
	(($(wc -l <samples) >= 3 && $(wc -l <samples) <= 9)) || fail "$(cat samples)"
	assert_equal "samples of others" "$(awk -v pid="$RECORDED_PID" '$1 != pid' samples)" ""
	assert_equal "samples without a value" \
		"$(grep -vcE ' anon=[1-9][0-9]* file=[1-9][0-9]* shared=[0-9]+ swap=[0-9]+ data=[1-9][0-9]* turn=[1-9]' samples)" 0
	"$BIN/leakrec" -d 3 -o perf.data -- sh -c 'sleep 4 & wait' 2>leakrec.err
	perf script -i perf.data -F pid,event 2>/dev/null | awk '/leakrec:memory/ { print $1 }' | sort | uniq -c >pids
	assert_equal "processes with several samples" "$(awk '$1 > 2' pids | wc -l)" 2
}
