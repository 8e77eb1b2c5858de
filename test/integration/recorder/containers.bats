#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Processes in containers, recorded from the host. They have mount, PID and user namespaces of their own, a root to
# which the host has no path, and their own libc there.

# shellcheck disable=SC2030,SC2031,SC2034,SC2094,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

# add_file FILE: adds the file, and the libraries that it needs, to the container's root.
add_file() {
	local file

	install -D "$1" "image/bin/${1##*/}"
	for file in $(ldd "$1" | grep -o '/[^ ]*'); do
		install -D "$file" "image$file"
	done
}

# start_container NAME [ARG...]: start_target, in a container. Its root is a tmpfs of its own mount
# namespace. RECORDED_PID is the host's number of the process, OWN_PID its own.
start_container() {
	local word

	add_file "$TARGETS/$1"
	mkdir root
	mkfifo target.in target.out
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare --mount --pid --fork --user --map-root-user --kill-child sh -c '
		mount -t tmpfs none root && cp -a image/. root && cd root && exec chroot . "$@"' \
		container "/bin/$1" --wait "${@:2}" <target.in >target.out 2>target.err 3>&- &
	TARGET_PID=$!
	STARTED_PIDS+=("$TARGET_PID")
	exec {TARGET_IN}>target.in {TARGET_OUT}<target.out
	read -r -t 60 -u "$TARGET_OUT" word OWN_PID
	[[ $word == ready ]]
	RECORDED_PID=$(tr -d " " <"/proc/$TARGET_PID/task/$TARGET_PID/children")
}

record_container() {
	local target

	read -ra target <<<"$1"
	shift
	start_container "${target[@]}"
	# Afterwards the host has neither the process nor the files.
	((OWN_PID != RECORDED_PID))
	[[ ! -e root/bin ]]
	attach "$@"
	go_target
}

finish_container() {
	finish_target
	finish_leakrec
	# The names are the paths in the image, wherever the host keeps it.
	"$BIN/leakparse" --order time --symfs image <perf.data >leaks
}

@test "containers: exact counts" {
	record_container "sizes"
	finish_container
	assert_truth
	assert_events
	assert_no_unexpected
	grep -q "^leakrec: recording process $RECORDED_PID ($OWN_PID in its container);" leakrec.err
}

@test "containers: exact counts of processes forked there" {
	record_container "fork_tree"
	finish_container
	assert_truth
	assert_events
	assert_no_unexpected
}

@test "containers: exact counts with perf events" {
	record_container "fork_tree" --perf-events
	finish_container
	assert_truth
	assert_events
}

# While the container exists, its files are found through its processes.
@test "containers: names come from the files of the container" {
	record_container "leaky_daemon --interval-us 1000"
	wait_until 60 has_grown_to perf.data 300000
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	mv image image.hidden
	"$BIN/leakparse" <perf.data >leaks
	kill "$RECORDED_PID"
	wait "$TARGET_PID" || true
	grep -qE '^	query_font\+0x[0-9a-f]+ .*\(/bin/leaky_daemon\)$' leaks
	grep -qE '^	malloc\+0x0 .*\(/lib/x86_64-linux-gnu/libc\.so\.6\)$' leaks
}

@test "containers: leakprobe shows both views" {
	start_container sizes
	add_probes --pid "$RECORDED_PID"
	grep -qE ": added [0-9]+ probes to /lib.*/libc\.so\.6 of process $RECORDED_PID \\($OWN_PID in its container\\), here /proc/$RECORDED_PID/root/lib.*/libc\.so\.6: glibc\$" leakprobe.out
	"$BIN/leakprobe" list >list.out
	grep -q ":malloc  .* /proc/$RECORDED_PID/root/lib" list.out
	# Other tests may have stale probes.
	"$BIN/leakprobe" check --pid "$RECORDED_PID" >check.out || true
	grep -qE "^process $RECORDED_PID: /lib.*/libc\.so\.6: has all [0-9]+ probes\$" check.out
	"$BIN/leakprobe" del --pid "$RECORDED_PID"
	go_target
	finish_target
}

# --- Containers of one image ---

# start_of_image N: starts a target in the Nth container, whose root is an overlayfs over the shared image. ITS_PID is
# the host's number of the process.
start_of_image() {
	local word

	mkdir "upper$1" "work$1" "root$1"
	mount -t overlay overlay -o "lowerdir=image,upperdir=upper$1,workdir=work$1" "root$1"
	mkfifo "in$1" "out$1"
	chroot "root$1" /bin/sizes --wait <"in$1" >"out$1" 2>"err$1" 3>&- &
	ITS_PID=$!
	STARTED_PIDS+=("$ITS_PID")
	exec {ITS_IN}>"in$1" {ITS_OUT}<"out$1"
	read -r -t 60 -u "$ITS_OUT" word _
	[[ $word == ready ]]
}

# record_image OPTION...: records two of them. Each mount shows the shared libc as a separate file.
record_image() {
	local pids=() ins=() outs=() n

	grep -qw overlay /proc/filesystems || skip "this kernel has no overlayfs"
	add_file "$TARGETS/sizes"
	for n in 1 2; do
		start_of_image "$n"
		pids+=("$ITS_PID") ins+=("$ITS_IN") outs+=("$ITS_OUT")
	done
	[[ $(stat -c %d root1/lib/x86_64-linux-gnu/libc.so.6) != "$(stat -c %d root2/lib/x86_64-linux-gnu/libc.so.6)" ]]
	attach -p "${pids[0]},${pids[1]}" "$@"
	for n in 0 1; do
		echo >&"${ins[n]}"
		cat <&"${outs[n]}" >>truth
		wait "${pids[n]}"
	done
	finish_leakrec
	parse
	umount root1 root2
	assert_summary allocations "$(awk '$2 == "allocations" { n += $3 } END { print n }' truth)"
	assert_summary frees "$(awk '$2 == "frees" { n += $3 } END { print n }' truth)"
	assert_summary held_blocks "$(awk '$2 == "held_blocks" { n += $3 } END { print n }' truth)"
	assert_no_unexpected
}

@test "containers: two of one image, exact counts" {
	record_image
	# One event for each malloc, and one for each free: no event is there twice.
	assert_equal "malloc events" "$(events malloc malloc_call)" "$(awk '$2 == "malloc" { n += $3 } END { print n }' truth)"
}

@test "containers: two of one image, with perf events" {
	record_image --perf-events
}
