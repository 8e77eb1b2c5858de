#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Whole stacks. The tests generate programs in which every allocation comes through a known chain of calls, with known
# functions and lines, and build them in all the ways that make unwinding hard. Each stack of --call-graph dwarf must be
# that chain, and go on to the program's start.

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

# compile_and_check COMPILER OPTION...: builds and checks one program, in C.
compile_and_check() {
	write_chain c
	write_main
	"$@" -g -o chain chain.c main.c -pthread -ldl 2>cc.err || fail "$(cat cc.err)"
	record --call-graph dwarf -- ./chain
	check_chain
}

@test "chains: cc -O0" {
	compile_and_check cc -O0
}

@test "chains: cc -O2" {
	compile_and_check cc -O2
}

@test "chains: cc -O2 -fomit-frame-pointer" {
	compile_and_check cc -O2 -fomit-frame-pointer
}

@test "chains: cc -O3 -fno-pie -no-pie" {
	compile_and_check cc -O3 -fno-pie -no-pie
}

@test "chains: cc -static" {
	compile_and_check cc -O2 -fomit-frame-pointer -static
}

@test "chains: only .debug_frame" {
	compile_and_check cc -O2 -fomit-frame-pointer -fno-asynchronous-unwind-tables
}

@test "chains: clang -O2" {
	require_program clang
	compile_and_check clang -O2
}

@test "chains: C++ with exceptions and inlined functions" {
	require_program g++
	EXTERN='extern "C"' write_chain c++
	write_main
	cc -g -O2 -c main.c
	g++ -g -O2 -c chain.cc
	g++ -o chain chain.o main.o -pthread -ldl
	record --call-graph dwarf -- ./chain
	check_chain
}

@test "chains: a thread" {
	write_chain c
	write_main
	cc -g -O2 -fomit-frame-pointer -o chain chain.c main.c -pthread -ldl
	record --call-graph dwarf -- ./chain thread
	MUST_START='' check_chain
}

@test "chains: a library opened with dlopen" {
	write_chain c
	write_main
	cc -g -O2 -fomit-frame-pointer -fPIC -shared -o libchain.so chain.c
	cc -g -O2 -o chain main.c -pthread -ldl
	record --call-graph dwarf -- ./chain ./libchain.so
	check_chain
}

@test "chains: stripped, with a separate debug file" {
	require_program objcopy
	write_chain c
	write_main
	cc -g -O2 -fomit-frame-pointer -o chain chain.c main.c -pthread -ldl
	objcopy --only-keep-debug chain chain.debug
	strip chain
	objcopy --add-gnu-debuglink=chain.debug chain
	record --call-graph dwarf -- ./chain
	check_chain
}

@test "chains: recursion 1,000 frames deep" {
	write_recursion
	record --call-graph dwarf -- ./deep 999
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	assert_equal "unwind failures" "$(summary unwind_failures)" 0
	assert_equal "frames" "$(grep -c '	dive+' leaks)" $((NR_BLOCKS * 1000))
	assert_equal "starts" "$(grep -c '	_start+' leaks)" "$NR_BLOCKS"
}

@test "chains: deeper than a dump can be" {
	write_recursion
	record -- ./deep 100000
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	assert_equal "unwind failures" "$(summary unwind_failures)" "$NR_BLOCKS"
	grep -q ", $NR_BLOCKS of [0-9]* stacks truncated" leakrec.err || fail "$(cat leakrec.err)"
	assert_equal "marks" "$(grep -c '^	(truncated: .*)$' leaks)" "$NR_BLOCKS"
	# Each takes more than half of the dump's 65,000 bytes, in frames of 16 to 48 bytes.
	assert_equal "stacks of few frames" "$(awk '
		/^leak / { few += in_leak && n < 700; n = 0; in_leak = 1; next }
		/\tdive\+/ { n++ } END { print few + (n < 700) }' leaks)" 0
}

# Coroutines: their stacks are not where threads' stacks are, take turns, and are sometimes deep and sometimes shallow.
# leakrec finds out while recording how much to dump.
@test "chains: coroutines, deep and shallow, in threads" {
	cat >coroutines.c <<-END
		#include <pthread.h>
		#include <stdlib.h>
		#include <ucontext.h>
		#define NR 4
		#define BYTES (256 << 10)
		static void *volatile held;
		struct runner { ucontext_t self, others[NR]; int turn; };
		static _Thread_local struct runner *runner;
		__attribute__((noinline)) static long dive(long n)
		{
			char pad[64];
			long result = 0;
			__asm__ volatile("" : : "r"(pad) : "memory");
			if (n)
				result = dive(n - 1);
			else
				held = malloc($SIZE);
			__asm__ volatile("");
			return result + 1;
		}
		static void coroutine(void)
		{
			for (int i = 0; i < 100; i++) {
				int turn = runner->turn;
				dive(i % 2 ? 10 : 100 * (turn + 1));
				runner->turn = (turn + 1) % NR;
				swapcontext(&runner->others[turn], &runner->others[runner->turn]);
			}
			setcontext(&runner->self);
		}
		static void *run(void *arg)
		{
			runner = calloc(1, sizeof(*runner));
			for (int i = 0; i < NR; i++) {
				getcontext(&runner->others[i]);
				runner->others[i].uc_stack.ss_sp = malloc(BYTES);
				runner->others[i].uc_stack.ss_size = BYTES;
				makecontext(&runner->others[i], coroutine, 0);
			}
			swapcontext(&runner->self, &runner->others[0]);
			for (int i = 0; i < 100; i++)
				dive(i % 2 ? 5 : 500);
			return arg;
		}
		int main(void)
		{
			pthread_t threads[3];
			for (int i = 0; i < 3; i++)
				pthread_create(&threads[i], NULL, run, NULL);
			run(NULL);
			for (int i = 0; i < 3; i++)
				pthread_join(threads[i], NULL);
			return 0;
		}
	END
	cc -g -O1 -fomit-frame-pointer -fno-optimize-sibling-calls -o coroutines coroutines.c -pthread
	local blocks

	record -- ./coroutines
	# The size for a new stack is a guess, so two or three dumps of each of the sixteen stacks may be too short.
	blocks=$(grep -c '^leak ' leaks)
	((blocks >= 4 * (397 + 100))) || fail "$blocks blocks"
	(($(summary unwind_failures) <= 48)) || fail "$(cat leakrec.err)"
}

# A dump of a stack has up to 65,000 bytes. Reports say so if a frame is larger.
@test "chains: a frame larger than a dump, or not used in full" {
	cat >large.c <<-'END'
		#include <stdlib.h>
		__attribute__((noinline)) static void *fill(void)
		{
			volatile char large[KIB << 10];
			void *volatile p;
			large[0] = large[sizeof(large) - 1] = 1;
			p = malloc(4321);
			return large[0] ? p : NULL;
		}
		__attribute__((noinline)) static void *above(void)
		{
			void *volatile p = fill();
			return p;
		}
		int main(void)
		{
			for (int i = 0; i < 20; i++)
				above();
		}
	END
	cc -g -O1 -fomit-frame-pointer -fno-optimize-sibling-calls -DKIB=128 -o large large.c
	"$BIN/leakrec" ./large 2>leakrec.err
	"$BIN/leakparse" --summary perf.data >screen
	grep -q '^! 20 stacks end early: ' screen || fail "$(cat screen)"
	grep -q '^   fill (large.c:' screen || fail "$(cat screen)"
	# This one would fit, but the program never touches most of its pages.
	cc -g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -DKIB=48 -o unused large.c
	"$BIN/leakrec" ./unused 2>leakrec.err
	"$BIN/leakparse" --summary perf.data >screen
	grep -q '^! 20 stacks end early: .* not used in full: then --call-graph fp helps' screen || fail "$(cat screen)"
	"$BIN/leakrec" --call-graph fp ./unused 2>leakrec.err
	"$BIN/leakparse" --summary perf.data >screen
	grep -q '^   fill (large.c:[0-9]*) < above < main' screen || fail "$(cat screen)"
}
