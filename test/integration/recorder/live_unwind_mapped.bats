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
