#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Whole stacks: programs are generated whose every allocation comes through a chain of calls that is
# known, function by function and line by line, and are built in all the ways that make unwinding
# hard. Each stack of --call-graph dwarf must be that chain, and lead on to the program's start.

bats_require_minimum_version 1.5.0
load helpers

SIZE=12345  # of the blocks that come through the chain
NR_BLOCKS=50
DEPTH=20

setup() {
	common_setup
	require_program cc
}

teardown() {
	common_teardown
}

# link LANGUAGE K: the K-th function of the chain, its call on the last line but two.
link() {
	local call="link_$(($2 - 1))(n + 1)"

	(($2 > 1)) || call="allocate()"
	if [[ $1 == c++ && $2 -eq 10 ]]; then
		# An exception has been thrown and caught here, and is thrown again below.
		cat <<-END
			NOT_INLINED long link_$2(long n)
			{
				char pad[PAD + 1];
				try { fail(n); } catch (long &e) { n += e - n; }
				n += $call;
				KEEP(pad);
				return n; }
		END
		return
	fi
	cat <<-END
		NOT_INLINED long link_$2(long n)
		{
			char pad[PAD + n % 7 + 1];
			n += $call;
			KEEP(pad);
			return n; }
	END
}

# write_chain LANGUAGE: chain.c, with run_chain() on top of link_$DEPTH to link_1; expected: each
# frame's function and line, innermost first.
write_chain() {
	local source=chain.${1/c++/cc} k

	cat >"$source" <<-END
		#include <stdlib.h>
		#ifndef PAD
		#define PAD 40
		#endif
		#ifdef __clang__
		#define NOT_INLINED __attribute__((noinline))
		#else
		#define NOT_INLINED __attribute__((noipa))
		#endif
		#define KEEP(x) __asm__ volatile("" : : "r"(x) : "memory", "rbx", "r12", "r13", "r14", "r15")
		static void *volatile held;
		static inline __attribute__((always_inline)) long inlined(void)
		{
			held = malloc($SIZE);
			return 0; }
		NOT_INLINED static long allocate(void)
		{
			long n = inlined();
			KEEP(&n);
			return n; }
	END
	[[ $1 != c++ ]] || echo 'NOT_INLINED static void fail(long n) { if (n >= 0) throw n; }' >>"$source"
	# The line of an inlined call is the innermost: malloc's own.
	echo "allocate $(grep -n 'malloc(' "$source" | cut -d: -f1)" >expected
	for ((k = 1; k <= DEPTH; k++)); do
		link "$1" "$k" >>"$source"
		echo "link_$k $(($(wc -l <"$source") - 2))" >>expected
	done
	cat >>"$source" <<-END
		${EXTERN-} NOT_INLINED void run_chain(void)
		{
			for (volatile int i = 0; i < $NR_BLOCKS; i++)
				(void)link_$DEPTH(i); }
	END
	echo "run_chain $(wc -l <"$source")" >>expected
}

# A main that calls run_chain(), here or in the library that is its argument.
write_main() {
	cat >main.c <<-'END'
		#include <dlfcn.h>
		#include <pthread.h>
		#include <string.h>
		void run_chain(void) __attribute__((weak));
		static void *run(void *chain)
		{
			((void (*)(void))chain)();
			return NULL;
		}
		int main(int argc, char **argv)
		{
			void *chain = (void *)run_chain;
			pthread_t thread;

			if (argc > 1 && strcmp(argv[1], "thread") == 0) {
				pthread_create(&thread, NULL, run, chain);
				pthread_join(thread, NULL);
				return 0;
			}
			if (argc > 1)
				chain = dlsym(dlopen(argv[1], RTLD_NOW), "run_chain");
			run(chain);
			return 0;
		}
	END
}

# record OPTION... -- COMMAND...: leaks has the stacks of the chain's blocks.
record() {
	"$BIN/leakrec" "$@" 2>leakrec.err || fail "leakrec: $(cat leakrec.err)"
	"$BIN/leakparse" --size $SIZE -i perf.data >leaks 2>leakparse.err
}

summary() {
	sed -nE "s/^# summary .*\b$1=([0-9]+).*/\1/p" leaks
}

# Every stack: malloc, the chain with its lines, and the way out to _start (MUST_START='': or elsewhere).
check_chain() {
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	assert_equal "unwind failures" "$(summary unwind_failures)" 0
	awk '
		NR == FNR { expected[NR] = $0; nr = NR; next }
		function check() {
			if (in_leak && (seen <= nr || (must_start && last != "_start"))) {
				print "stack " at " ends after " seen " frames in " last
				bad = 1
			}
		}
		/^leak / { check(); in_leak = 1; seen = -1; at = FNR; next }
		!/^\t/ { check(); in_leak = 0; next }
		in_leak {
			seen++
			split($1, name, "+")
			last = name[1]
			line = $2
			sub(/.*:/, "", line)
			wrong = seen <= nr && last " " line != expected[seen]
			if (seen == 0)
				wrong = last != "malloc"
			if (wrong) {
				print "frame " seen " of stack " at ": " $0 ", not " expected[seen]
				bad = 1
				exit
			}
		}
		END { check(); exit bad }
		' must_start="${MUST_START-1}" expected leaks ||
		fail "$(head -60 leaks)"
}

# compile_and_check COMPILER OPTION...: one program of it all, in C.
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

@test "chains: a thread's" {
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

# write_recursion: the chain's outermost function, calling itself.
write_recursion() {
	cat >deep.c <<-END
		#include <stdlib.h>
		static void *volatile held;
		__attribute__((noinline)) static long dive(long n)
		{
			long result;
			if (!n) {
				held = malloc($SIZE);
				return 0;
			}
			result = dive(n - 1);
			__asm__ volatile("");
			return result + 1;
		}
		int main(int argc, char **argv)
		{
			for (volatile int i = 0; i < $NR_BLOCKS; i++)
				dive(atol(argv[1]));
			return 0;
		}
	END
	cc -g -O1 -fomit-frame-pointer -fno-optimize-sibling-calls -o deep deep.c
}

@test "chains: recursion 1,000 frames deep" {
	write_recursion
	record --call-graph dwarf,65000 -- ./deep 999
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	assert_equal "unwind failures" "$(summary unwind_failures)" 0
	assert_equal "frames" "$(grep -c '	dive+' leaks)" $((NR_BLOCKS * 1000))
	assert_equal "starts" "$(grep -c '	_start+' leaks)" "$NR_BLOCKS"
}

@test "chains: deeper than a dump can be" {
	write_recursion
	record --call-graph dwarf,65000 -- ./deep 100000
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	assert_equal "unwind failures" "$(summary unwind_failures)" "$NR_BLOCKS"
}
