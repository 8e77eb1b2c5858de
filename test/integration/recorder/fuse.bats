#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Files that a process serves (FUSE). While the kernel attaches a probe it may read from the file, and all forks wait.

# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/system_wide

teardown() {
	local status=0

	[[ -z ${SERVER:-} ]] || kill_now "$SERVER"
	umount -l served 2>/dev/null || true
	common_teardown || status=1
	wait_until 60 remove_cgroup || status=1
	return $status
}

# serve [OPEN_FLAGS [silent]]: serves an allocator as served/library.
serve() {
	[[ -e /dev/fuse ]] || skip "there is no /dev/fuse"
	python3 "$SOURCE_DIR/test/integration/support/make_elf.py" library malloc,free,calloc,realloc
	mkdir served
	python3 "$SOURCE_DIR/test/integration/support/fuse_server.py" library served "$@" 3>&- &
	SERVER=$!
	STARTED_PIDS+=("$SERVER")
	wait_until 60 test -e served/library
}

has_looks() {
	perf script -i stream.data -F event 2>/dev/null | grep -q "leakrec:look"
}

@test "FUSE: with --cgroup, its files are not probed, and others are" {
	serve
	start_target_there maps_code --early "$PWD/served/library"
	attach_all --cgroup "$CGROUP"
	grep -q "served/library and other files on FUSE are not probed: " leakrec.err || fail "$(cat leakrec.err)"
	grep -q '1 process with 1 allocator so far' leakrec.err || fail "$(cat leakrec.err)"
	go_target
	finish_target
	stop_leakrec
	assert_equal "leaks" "$(grep -c '^leak 3001 ' leaks)" "$(truth held_3001)"
}

@test "FUSE: a file that a named process has mapped is probed" {
	serve
	start_target maps_code --early "$PWD/served/library"
	attach
	find "/proc/$LEAKREC_PID/fd" -lname '*/served/library' | grep -q . || fail "leakrec does not hold the file open"
	go_target
	finish_target
	finish_leakrec
}

@test "FUSE: a file of a named process is not probed if it is not in memory" {
	local mode

	serve 1
	start_target maps_code --early "$PWD/served/library"
	for mode in --call-graph=fp --perf-events; do
		run -1 "$BIN/leakrec" -p "$RECORDED_PID" "$mode" -d 0.1
		[[ $output == *": it is on FUSE and not in memory: all forks would wait for its server" ]] || fail "$output"
	done
	go_target
	finish_target
}

@test "FUSE: with --budget, a file that a named process has mapped is refused" {
	serve
	start_target maps_code --early "$PWD/served/library"
	run -1 "$BIN/leakrec" --budget 5% -p "$RECORDED_PID" -d 0.1
	[[ $output == *"/served/library: it is on FUSE: at each window, forks could wait for its server; leave --budget out" ]] ||
		fail "$output"
	go_target
	finish_target
}

@test "FUSE: a file that a process maps later is not probed" {
	serve
	start_target maps_code "$PWD/served/library"
	attach
	go_target
	finish_target
	finish_leakrec
	grep -q "served/library and other files on FUSE are not probed: " leakrec.err || fail "$(cat leakrec.err)"
}

has_copies() {
	find "/proc/$LEAKREC_PID/fd" -lname '/memfd:frames*' 2>/dev/null | grep -q .
}

# The server says that the file is root's, and an overlay hides that it is the server's.
@test "FUSE: a file below an overlay that a user has mounted is not root's" {
	local as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Urm) word

	[[ -e /dev/fuse ]] || skip "there is no /dev/fuse"
	mkdir served
	mkdir -m 777 merged layers
	# Nobody may not enter the directories above: all paths are relative, and bash would make them absolute.
	chmod 755 .
	python3 "$SOURCE_DIR/test/integration/support/fuse_server.py" "$TARGETS/leaky_daemon" served 3>&- &
	SERVER=$!
	STARTED_PIDS+=("$SERVER")
	wait_until 60 test -e served/library
	cat >mount_it <<-'END'
		mkdir -p layers/upper layers/work &&
			mount -c -t overlay -o lowerdir=served,upperdir=layers/upper,workdir=layers/work,userxattr none merged &&
			exec env "$@"
	END
	"${as_nobody[@]}" bash mount_it true 2>/dev/null || skip "a user cannot mount an overlay over FUSE"
	mkfifo target.in target.out
	"${as_nobody[@]}" bash mount_it ./merged/library --wait --interval-us 1000 <target.in >target.out 2>target.err 3>&- &
	TARGET_PID=$!
	STARTED_PIDS+=("$TARGET_PID")
	exec {TARGET_IN}>target.in {TARGET_OUT}<target.out
	read -r -t $((60 * ${WAIT_FACTOR:-1})) -u "$TARGET_OUT" word RECORDED_PID
	assert_equal "the target" "$word" ready
	attach --call-graph dwarf
	go_target
	# It would read a file of root's itself.
	wait_until 60 has_copies
	kill -TERM "$RECORDED_PID"
	finish_target
	finish_leakrec
}

@test "FUSE: leakscan asks no server for a page" {
	local target

	[[ -e /dev/fuse ]] || skip "there is no /dev/fuse"
	truncate -s 16M file
	mkdir served
	python3 "$SOURCE_DIR/test/integration/support/fuse_server.py" file served 3>&- &
	SERVER=$!
	STARTED_PIDS+=("$SERVER")
	wait_until 60 test -e served/library
	# What a block begins with may be the address of its type's table.
	python3 -c 'import ctypes, mmap, time
libc = ctypes.CDLL(None)
libc.mmap.restype = libc.malloc.restype = ctypes.c_void_p
file = open("served/library", "rb")
table = libc.mmap(None, ctypes.c_size_t(16 << 20), mmap.PROT_READ, mmap.MAP_PRIVATE, file.fileno(), ctypes.c_long(0))
ctypes.c_uint64.from_address(libc.malloc(ctypes.c_size_t(64))).value = table + (8 << 20)
print("ready", flush=True)
time.sleep(1000)' >ready 3>&- &
	target=$!
	STARTED_PIDS+=("$target")
	wait_until 60 grep -q ready ready
	kill -STOP "$SERVER"
	timeout -k 1 30 "$BIN/leakscan" -p "$target" --pause-limit 20 --once >screen
	grep -q '^In use' screen
	# The target's end waits for it.
	kill -CONT "$SERVER"
	kill_now "$target"
}

@test "FUSE: with --budget, a block in a file whose server does not answer is not looked at" {
	local line

	require_program perf
	serve 0 silent
	start_target overlaid_blocks "$PWD/served/library"
	: >leakrec.err
	"$BIN/leakrec" --budget 5% -p "$RECORDED_PID" -o - --call-graph none >stream.data 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
	go_target
	wait_until 60 has_looks
	kill -USR1 "$RECORDED_PID"
	read -r -t 60 -u "$TARGET_OUT" line
	[[ $line == "done" ]]
	# Its end looks at all blocks.
	kill -INT "$LEAKREC_PID"
	wait_until 10 has_ended "$LEAKREC_PID"
	wait "$LEAKREC_PID" || fail "$(cat leakrec.err)"
	# The target's end may wait for the server.
	kill_now "$RECORDED_PID" "$SERVER"
	SERVER=
}
