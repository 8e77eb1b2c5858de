#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --call-graph dwarf unwinds each stack against the mappings that the process had at that moment.

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

# Two libraries are mapped at one address in turn, faster than leakrec drains; their frames have different layouts.
@test "live: dlopen and dlclose, another library at the same address" {
	local lib pad

	for lib in a b; do
		[[ $lib == a ]] && pad=24 || pad=600
		cat >$lib.c <<-END
			#include <stdlib.h>
			static void *volatile held_$lib;
			__attribute__((noipa)) static int inner_$lib(int n)
			{
				char pad[$pad];
				held_$lib = malloc(n);
				__asm__ volatile("" : : "r"(pad) : "memory", "rbx", "r12");
				return n + 1;
			}
			__attribute__((noipa)) int outer(int n)
			{
				char pad[$pad * 2];
				n = inner_$lib(n) + 1;
				__asm__ volatile("" : : "r"(pad) : "memory", "r13");
				return n;
			}
		END
		cc -g -O2 -fomit-frame-pointer -fPIC -shared -o lib$lib.so $lib.c
	done
	cat >turns.c <<-'END'
		#include <dlfcn.h>
		#include <stdio.h>
		#include <stdlib.h>
		int main(int argc, char **argv)
		{
			void *last = NULL;
			int same = 0;
			for (int i = 0; i < 400; i++) {
				void *lib = dlopen(i % 2 ? "./libb.so" : "./liba.so", RTLD_NOW);
				int (*outer)(int) = (int (*)(int))dlsym(lib, "outer");
				outer(i % 2 ? 22222 : 11111);
				same += (void *)outer == last;
				last = (void *)outer;
				dlclose(lib);
			}
			printf("%d\n", same);
			return 0;
		}
	END
	cc -g -O2 -o turns turns.c -ldl
	for options in '' --perf-events; do
		# shellcheck disable=SC2086
		"$BIN/leakrec" --call-graph dwarf $options -- ./turns >same 2>leakrec.err ||
			fail "leakrec: $(cat leakrec.err)"
		(($(cat same) > 300)) || skip "the libraries are at different addresses"
		"$BIN/leakparse" --order time -i perf.data >leaks 2>leakparse.err
		assert_equal "stacks by way of a" \
			"$(leak_stacks 11111 | grep -c '^ malloc inner_a outer main .* _start$')" 200
		assert_equal "stacks by way of b" \
			"$(leak_stacks 22222 | grep -c '^ malloc inner_b outer main .* _start$')" 200
	done
}

# A child that stays in its parent's program, and a child that executes another one.
@test "live: fork and exec" {
	local options

	write_chain c
	write_main
	cc -g -O2 -fomit-frame-pointer -fno-pie -no-pie -o other chain.c main.c -pthread -ldl
	cat >forks.c <<-'END'
		#include <sys/wait.h>
		#include <unistd.h>
		void run_chain(void);
		int main(void)
		{
			for (int i = 0; i < 2; i++) {
				if (fork() == 0) {
					if (i == 0)
						execl("./other", "other", NULL);
					run_chain();
					return 0;
				}
			}
			while (wait(NULL) > 0)
				;
			run_chain();
			return 0;
		}
	END
	cc -g -O2 -fomit-frame-pointer -o forks chain.c forks.c
	for options in '' --perf-events; do
		# shellcheck disable=SC2086
		record --call-graph dwarf $options -- ./forks
		NR_BLOCKS=150 check_chain
		assert_equal "processes" "$(awk '/^leak/ { print $6 }' leaks | sort -u | wc -l)" 3
	done
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

# The process's files exist only in its own mount namespace, below another root.
@test "live: a program in a container" {
	write_chain c
	write_waits
	cc -g -O2 -fomit-frame-pointer -o waits chain.c waits.c
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
