# SPDX-License-Identifier: GPL-2.0-or-later
# For tests of stacks: generates programs in which every allocation of SIZE bytes comes through a known chain of calls,
# with known functions and lines.
# shellcheck shell=bash disable=SC2034 # used by the file that loads this

SIZE=12345  # of the blocks that come through the chain
NR_BLOCKS=50
DEPTH=20

# link LANGUAGE K: prints the Kth function of the chain, with its call on the last line but two.
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

# write_chain LANGUAGE: writes chain.c, in which run_chain() calls link_$DEPTH, which calls the next link, down to
# link_1; and the file "expected" with each frame's function and line, and whether it is inlined, innermost first.
write_chain() {
	local source=chain.${1/c++/cc} k middle=middle

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
		#ifdef __aarch64__
		#define SAVED "x19", "x20", "x21", "x22", "x23"
		#else
		#define SAVED "rbx", "r12", "r13", "r14", "r15"
		#endif
		#define KEEP(x) __asm__ volatile("" : : "r"(x) : "memory", SAVED)
		static void *volatile held;
		#define INLINED inline __attribute__((always_inline))
		static INLINED long inner(void)
		{
			held = malloc($SIZE);
			return 0; }
	END
	if [[ $1 == c++ ]]; then
		middle='app::pool::get<7>'
		cat >>"$source" <<-END
			namespace app {
			static INLINED long plain(long n)
			{
				n += inner();
				return n; }
			struct pool {
				template <int N> INLINED long get(long n)
				{
					n += plain(n);
					return n; }
			};
			static pool middle_pool;
			}
			#define middle app::middle_pool.get<7>
		END
	else
		cat >>"$source" <<-END
			static INLINED long middle(long n)
			{
				n += inner();
				return n; }
		END
	fi
	cat >>"$source" <<-END
		static INLINED long outer(volatile long *n)
		{
			for (int i = 0; i < 1; i++) {
				long add = *n;
				if (*n >= 0) {
					*n += middle(add); }
			}
			return *n; }
		NOT_INLINED static long allocate(void)
		{
			volatile long n = 0;
			outer(&n);
			KEEP(&n);
			return n; }
	END
	[[ $1 != c++ ]] || echo 'NOT_INLINED static void fail(long n) { if (n >= 0) throw n; }' >>"$source"
	{
		echo "inner $(line_of 'malloc(') inlined"
		[[ $1 != c++ ]] || echo "app::plain $(line_of '+= inner(') inlined"
		echo "$middle $(line_of "+= $([[ $1 == c++ ]] && echo plain || echo inner)(") inlined"
		echo "outer $(line_of '+= middle(') inlined"
		echo "allocate $(line_of 'outer(&n);')"
	} >expected
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

# line_of TEXT: prints the number of the line of $source that contains TEXT.
line_of() {
	grep -nF "$1" "$source" | cut -d: -f1
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

# record OPTION... -- COMMAND...: records into the file "leaks" the chain's blocks, each with its stack.
record() {
	"$BIN/leakrec" "$@" 2>leakrec.err || fail "leakrec: $(cat leakrec.err)"
	"$BIN/leakparse" --order time --size $SIZE -i perf.data >leaks 2>leakparse.err
	expand_stacks
}

# Checks that every stack is malloc, then the chain with its lines, then callers up to _start (MUST_START='': up to
# anywhere).
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
			if (NF > 3)
				line = line " " $4
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
		' must_start="${MUST_START-1}" expected <(with_stacks) ||
		fail "$(head -60 leaks)"
}

# write_recursion: writes a program in which the chain's outermost function calls itself.
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

# build_chain COMPILER...: builds the program "chain".
build_chain() {
	write_chain c
	write_main
	"$@" -g -o chain chain.c main.c -pthread -ldl
}
