#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Files that are mapped while recording, and take long to analyse or are many: limits hold for each file and each user,
# and other files are recorded.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "dlopen watch: files that take long to analyse, and their user's other files" {
	local i files=()

	python3 "$SOURCE_DIR/test/integration/support/make_elf.py" slow.so malloc,free,calloc 1000000
	for i in 1 2 3 4 5 6 7 8; do
		cp slow.so "slow$i.so"
		files+=("$PWD/slow$i.so")
	done
	start_target maps_code "${files[@]}"
	attach
	# The limits are CPU time per window, so leakrec must get a CPU on a busy machine, too.
	prefer "$LEAKREC_PID"
	go_target
	finish_target
	finish_leakrec
	parse
	assert_equal "leaks" "$(grep -c '^leak 3001 ' leaks)" "$(truth held_3001)"
	assert_summary lost 0
	grep -q "slow1.so: .*takes too long .* it is not probed" leakrec.err || fail "$(cat leakrec.err)"
	# The user's time is used up by then. One message says so.
	! grep -q "slow8.so: .*takes too long" leakrec.err || fail "$(cat leakrec.err)"
	assert_equal "told" "$(grep -c 'files take too long to analyse' leakrec.err)" 1 ||
		fail "$(cat leakrec.err)"
}

@test "dlopen watch: files of huge code, while another process is recorded" {
	local i huge huge_pid in out files=() busy=()

	# Any of its bytes may begin a jump.
	python3 "$SOURCE_DIR/test/integration/support/make_elf.py" huge1.so malloc,free,calloc,realloc,memalign,valloc 0 8
	for i in 2 3 4; do
		cp huge1.so "huge$i.so"
	done
	files=("$PWD"/huge[1-4].so)
	start_target maps_code "${files[@]}"
	huge=$TARGET_PID huge_pid=$RECORDED_PID
	exec {in}>&"$TARGET_IN" {out}<&"$TARGET_OUT" {TARGET_IN}>&- {TARGET_OUT}<&-
	rm target.in target.out
	# Its rings are so large that they do not fill up before the files' time is used up, even on a busy machine.
	start_target leaky_daemon --interval-us 5000
	attach -p "$huge_pid,$RECORDED_PID" -m 512
	go_target
	wait_until 60 has_grown_to perf.data 10000
	# leakrec gets a third of a CPU here, and not much less on a busy machine: the analysis takes longer than a stop may.
	[[ ! -e /proc/$LEAKREC_PID/autogroup ]] || echo -5 >"/proc/$LEAKREC_PID/autogroup"
	renice -n 0 -p "$LEAKREC_PID" >/dev/null
	for _ in $(seq $(($(nproc) * 2))); do
		(while :; do :; done) 3>&- &
		busy+=("$!")
	done
	STARTED_PIDS+=("${busy[@]}")
	echo >&"$in"
	cat <&"$out" >truth.huge
	wait "$huge"
	kill_now "${busy[@]}"
	exec {in}>&- {out}<&-
	kill -TERM "$RECORDED_PID"
	finish_target
	finish_leakrec
	parse
	assert_summary lost 0
	assert_held_by "$RECORDED_PID"
	mv truth.huge truth
	assert_held_by "$huge_pid"
	grep -q "huge1.so: .*takes too long .* it is not probed" leakrec.err || fail "$(cat leakrec.err)"
	# The limit is 5 s. On a busy machine, the process waits for a CPU afterwards.
	(($(truth longest_ms) < 7000)) || fail "stopped for $(truth longest_ms) ms"
}

@test "dlopen watch: a user's many files take no more than a share" {
	local i files=()

	python3 "$SOURCE_DIR/test/integration/support/make_elf.py" small.so \
		malloc,free,calloc,realloc,memalign,aligned_alloc,valloc,pvalloc
	for i in {1..60}; do
		cp small.so "small$i.so"
		files+=("$PWD/small$i.so")
	done
	chown 65534 ./*.so
	cp "$TARGETS/lib/libpool_allocator.so" late.so
	record_attached "maps_code ${files[*]} $PWD/late.so"
	assert_equal "leaks" "$(grep -c '^leak 3001 ' leaks)" "$(truth held_3001)"
	assert_equal "told" "$(grep -c 'of user 65534.*a user.s files may have' leakrec.err)" 1
	# The system's files come later, and are recorded.
	grep -q "recording $PWD/late.so, too" leakrec.err || fail "$(cat leakrec.err)"
	(($(grep -c 'recording .*/small.*, too' leakrec.err) >= 20)) || fail "$(cat leakrec.err)"
}
