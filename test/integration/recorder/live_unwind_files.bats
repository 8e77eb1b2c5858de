#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --call-graph dwarf unwinds by files that it cannot open by their paths.

# shellcheck disable=SC2030,SC2031,SC2034,SC2094,SC2153 # as in bad_input.bats; SIZE is chain_targets'
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/chain_targets

setup() {
	common_setup
	require_program cc
}

teardown() {
	common_teardown
}

has_grown() {
	(($(stat -c %s perf.data) > $1))
}

# A main that runs the chain when it reads a byte, and waits until it reads another.
write_waits() {
	cat >waits.c <<-'END'
		#include <stdio.h>
		#include <unistd.h>
		void run_chain(void);
		int main(void)
		{
			char c;
			printf("ready %d\n", getpid());
			fflush(stdout);
			(void)!read(0, &c, 1);
			run_chain();
			(void)!read(0, &c, 1);
			return 0;
		}
	END
}

# Records the chain of the target that start_waiting has started.
record_waiting() {
	local size

	# Its growth tells how many events were written.
	attach -z0
	size=$(stat -c %s perf.data)
	echo >&"$TARGET_IN"
	# Files are found while a process maps them.
	wait_until 60 has_grown $((size + NR_BLOCKS * 8 * DEPTH))
	echo >&"$TARGET_IN"
	wait "$TARGET_PID"
	finish_leakrec
	"$BIN/leakparse" --order time --size "$SIZE" -i perf.data >leaks 2>leakparse.err
	expand_stacks
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	# The files are gone, and so are the names. All frames must still be there.
	assert_equal "frames" "$(grep -c '^	' leaks)" $((NR_BLOCKS * (DEPTH + 7)))
	assert_equal "unwind failures" "$(summary unwind_failures)" 0
	! grep -E 'stacks (truncated|incomplete)' leakrec.err || fail "stacks are not whole"
}

# The unwinder reads a file to which its path no longer leads, of a user whose directories others cannot enter.
@test "live: a program of another user's, replaced while it runs" {
	build_chain cc -O2 -fomit-frame-pointer
	write_waits
	mkdir closed
	cc -g -O2 -fomit-frame-pointer -o closed/waits chain.c waits.c
	chmod 700 closed
	chown -R nobody closed
	chmod a+x . .. 2>/dev/null || true
	mkfifo target.in target.out
	(cd closed && exec setpriv --reuid nobody --clear-groups --regid nogroup ./waits) \
		<target.in >target.out 2>target.err 3>&- &
	STARTED_PIDS+=("$!")
	TARGET_PID=$!
	exec {TARGET_IN}>target.in {TARGET_OUT}<target.out
	read -r -t 60 -u "$TARGET_OUT" _ RECORDED_PID || skip "$(cat target.err)"
	rm closed/waits
	cp chain closed/waits
	record_waiting
}

# record_in_container [FLAG...]: the process's files exist only in its own mount namespace, below another root.
record_in_container() {
	write_chain c
	write_waits
	cc -g -O2 -fomit-frame-pointer "$@" -o waits chain.c waits.c
	mkdir rootfs
	cat >enter <<-'END'
		mount -t tmpfs none rootfs
		mkdir -p rootfs/lib64 rootfs/lib/x86_64-linux-gnu
		cp waits rootfs/target
		cp "$1" rootfs/lib/x86_64-linux-gnu/libc.so.6
		cp "$2" rootfs/lib64/
		exec chroot rootfs /target
	END
	mkfifo target.in target.out
	unshare -m --propagation private bash -e enter "$(awk '$6 ~ /libc\.so/ { print $6; exit }' /proc/self/maps)" \
		/lib64/ld-linux-x86-64.so.2 <target.in >target.out 3>&- &
	TARGET_PID=$!
	exec {TARGET_IN}>target.in {TARGET_OUT}<target.out
	read -r -t 60 -u "$TARGET_OUT" _ RECORDED_PID
	record_waiting
}

@test "live: a program in a container" {
	record_in_container
}

# Its inode proves which file it is.
@test "live: a program in a container, without a build-id" {
	record_in_container -Wl,--build-id=none
}
