#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --call-graph dwarf unwinds while it records: signals' frames, probed functions that call each other, and
# stacks that do not end where they should.

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

# --- Code that was interrupted ---

# A signal handler allocates. It interrupts vdso code and other frames at any instruction.
@test "live: a signal handler that has interrupted the vdso" {
	cat >interrupted.c <<-END
		#define _GNU_SOURCE
		#include <signal.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/auxv.h>
		#include <sys/time.h>
		#include <time.h>
		#include <ucontext.h>
		static void *volatile held;
		static volatile int nr_held, nr_elsewhere;
		static unsigned long vdso;
		static void handle(int sig, siginfo_t *info, void *arg)
		{
			const ucontext_t *context = arg;
			unsigned long at = (unsigned long)context->uc_mcontext.gregs[REG_RIP];
			if (at - vdso < 16384 && nr_held < $NR_BLOCKS) {
				nr_held++;
				held = malloc($SIZE);
			} else if (nr_elsewhere < 5) {
				nr_elsewhere++;
				held = malloc($SIZE + 1);
			}
		}
		__attribute__((noipa)) static long ask(long n)
		{
			struct timespec now;
			char pad[100];
			clock_gettime(CLOCK_MONOTONIC, &now);
			__asm__ volatile("" : : "r"(pad) : "memory", "rbx", "r12");
			return now.tv_nsec + n;
		}
		int main(void)
		{
			struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
			struct itimerval often = {{0, 500}, {0, 500}};
			vdso = getauxval(AT_SYSINFO_EHDR);
			sigaction(SIGALRM, &action, NULL);
			setitimer(ITIMER_REAL, &often, NULL);
			for (long sum = 0; nr_held < $NR_BLOCKS;)
				sum = ask(sum);
			memset(&often, 0, sizeof(often));
			setitimer(ITIMER_REAL, &often, NULL);
			return 0;
		}
	END
	cc -g -O2 -fomit-frame-pointer -o interrupted interrupted.c
	for options in '' --perf-events; do
		# shellcheck disable=SC2086
		timeout 300 "$BIN/leakrec" --call-graph dwarf $options -- ./interrupted 2>leakrec.err ||
			fail "leakrec: $(cat leakrec.err)"
		"$BIN/leakparse" --order time --size "$SIZE..$((SIZE + 1))" -i perf.data >leaks 2>leakparse.err
		assert_equal "unwind failures" "$(summary unwind_failures)" 0
		assert_equal "handlers above the vdso" "$(leak_stacks "$SIZE" |
			grep -cE '^ malloc handle (handle )?(__restore_rt|libc.so.6) (\[vdso\] |clock_gettime )+ask main .* _start$')" "$NR_BLOCKS"
	done
}

# The handler has a stack of its own, of which a dump cannot show what it interrupted.
@test "live: a signal handler on its own stack" {
	cat >handler.c <<-END
		#define _GNU_SOURCE
		#include <signal.h>
		#include <stdlib.h>
		static void *volatile held;
		static char stack[1 << 16];
		static void handle(int sig) { held = malloc($SIZE); }
		__attribute__((noipa)) static void work(void) { raise(SIGUSR1); }
		int main(void)
		{
			const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
			struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
			sigaltstack(&own, NULL);
			sigaction(SIGUSR1, &action, NULL);
			for (int i = 0; i < 100; i++)
				work();
			return 0;
		}
	END
	cc -g -O1 -o handler handler.c
	for options in '' --raw-stacks --perf-events; do
		# shellcheck disable=SC2086
		"$BIN/leakrec" --call-graph dwarf $options -o perf.data -- ./handler 2>leakrec.err ||
			fail "leakrec: $(cat leakrec.err)"
		! grep -E 'truncated|incomplete' leakrec.err || fail "$(cat leakrec.err)"
		"$BIN/leakparse" --order time --size "$SIZE" -i perf.data >leaks 2>leakparse.err
		assert_equal "unwind failures" "$(summary unwind_failures)" 0
		assert_equal "stacks" "$(leak_stacks "$SIZE" | sort | uniq -c | sed 's/^ *//')" \
			"$(leak_stacks "$SIZE" | sed 's/^/100 /' | head -1)"
		leak_stacks "$SIZE" | grep -q '^ malloc handle .* (elsewhere:$' || fail "$(leak_stacks "$SIZE" | head -1)"
	done
}

# C runs on the thread's stack, and Go on the goroutine's, which moves.
@test "live: C that Go calls" {
	require_program go
	mkdir cgo
	cat >cgo/main.go <<-'END'
		package main

		// #include <stdlib.h>
		// static void *volatile held;
		// static void keep(void) { held = malloc(96); }
		import "C"
		import "sync"

		func deep(n int) {
			var pad [64]byte
			if n > 0 {
				deep(n - 1 + int(pad[n%64]))
				return
			}
			C.keep()
		}

		func main() {
			var all sync.WaitGroup
			for i := 0; i < 50; i++ {
				all.Add(1)
				go func(n int) { deep(n); all.Done() }(i)
			}
			all.Wait()
		}
	END
	(cd cgo && HOME=$PWD GOCACHE=$BUILD_DIR/test/go-cache GO111MODULE=off CGO_ENABLED=1 go build -o ../calls_c .)
	chmod a+w calls_c # so leakrec unwinds with a copy
	"$BIN/leakrec" --call-graph dwarf -o perf.data -- ./calls_c 2>leakrec.err || fail "leakrec: $(cat leakrec.err)"
	"$BIN/leakparse" --order time --size 96 -i perf.data >leaks 2>leakparse.err
	leak_stacks 96 | sort | uniq -c >stacks
	assert_equal "stacks" "$(wc -l <stacks)" 1
	grep -qE '^ *50  malloc keep _cgo_.*_Cfunc_keep runtime.asmcgocall.abi0 \(elsewhere:$' stacks || fail "$(cat stacks)"
}

# --- Probed functions that call each other ---

# Return probes have replaced the outer functions' return addresses by the kernel's trampoline. The interrupted
# instruction is the first of its function: taken for a return address, it would be looked up in the function before.
@test "live: the function that a signal has interrupted" {
	require_program cc
	cat >interrupted.c <<-'END'
		#include <signal.h>
		#include <stdlib.h>
		#include <ucontext.h>

		__asm__(".text\n.globl before_it\n.type before_it,@function\nbefore_it:\n.cfi_startproc\n"
			"nop\n.cfi_endproc\n.size before_it,.-before_it\n"
			".globl faulty\n.type faulty,@function\nfaulty:\n.cfi_startproc\n"
			"ud2\nret\n.cfi_endproc\n.size faulty,.-faulty\n");
		void faulty(void);
		void *volatile kept;

		static void on_fault(int signal, siginfo_t *info, void *context)
		{
			kept = malloc(96);
			((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
		}
		int main(void)
		{
			struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

			sigaction(SIGILL, &action, NULL);
			faulty();
			return 0;
		}
	END
	cc -D_GNU_SOURCE -O1 -o interrupted interrupted.c
	for raw in '' --raw-stacks; do
		# shellcheck disable=SC2086 # an option, or none
		"$BIN/leakrec" $raw -o perf.data -- ./interrupted 2>leakrec.err
		"$BIN/leakparse" --size 96 -i perf.data 2>/dev/null | sed -n 's/^\t\([a-z_]*+0x[0-9a-f]*\) .*/\1/p' |
			head -n 5 >"frames$raw"
	done
	assert_equal "interrupted" "$(grep faulty frames)" faulty+0x0
	diff frames frames--raw-stacks
	perf script -i perf.data >/dev/null
}

# When longjmp() leaves a function, its return probe stays pending. Another frame's return address may then be in that
# place.
@test "live: after a jump out of an allocator" {
	cat >jumped.c <<-'END'
		#include <setjmp.h>
		#include <signal.h>
		#include <stdlib.h>

		#define SEPARATE __attribute__((noipa))
		static sigjmp_buf before_fault;
		static void *volatile held, *frame_of_leave;
		static void on_fault(int signal) { siglongjmp(before_fault, 1); }
		static SEPARATE void keep(void) { held = malloc(4242); }
		static SEPARATE void leave(void **nowhere)
		{
			frame_of_leave = __builtin_frame_address(0);
			posix_memalign(nowhere, 64, 1000);
			__asm__ volatile("");
		}
		static SEPARATE void call_keep(void **place)
		{
			if (frame_of_leave != __builtin_frame_address(0))
				exit(9);
			keep();
			__asm__ volatile("");
		}
		int main(void)
		{
			signal(SIGSEGV, on_fault);
			if (sigsetjmp(before_fault, 1) == 0)
				leave((void **)16);
			call_keep(NULL);
			return 0;
		}
	END
	cc -w -O1 -o jumped jumped.c
	for raw in '' --raw-stacks; do
		# shellcheck disable=SC2086 # an option, or none
		"$BIN/leakrec" $raw -o perf.data -- ./jumped 2>leakrec.err
		"$BIN/leakparse" --size 4242 --format folded -i perf.data 2>leakparse.err >folded
		grep -q 'main;call_keep;keep' folded || fail "$(cat folded leakparse.err)"
	done
}

@test "live: allocators that call each other, at the inner one's return" {
	require_program perf
	cat >nested.c <<-END
		#include <stddef.h>
		#include <string.h>
		#define N __attribute__((noipa))
		static char heap[1 << 24] __attribute__((aligned(16)));
		static size_t used;
		static void *volatile held;
		N void *malloc(size_t bytes)
		{
			char *block = heap + used + 16;
			((size_t *)block)[-1] = bytes;
			used += (bytes + 31) / 16 * 16;
			return block;
		}
		N void free(void *mem) { __asm__ volatile("" : : "r"(mem)); }
		N void *calloc(size_t n, size_t size)
		{
			char pad[40];
			void *block = malloc(n * size);
			__asm__ volatile("" : : "r"(pad) : "memory", "rbx");
			return memset(block, 0, n * size);
		}
		N void *realloc(void *mem, size_t bytes)
		{
			char pad[88];
			void *block = calloc(1, bytes);
			__asm__ volatile("" : : "r"(pad) : "memory", "r12");
			if (mem) { memcpy(block, mem, bytes); free(mem); }
			return block;
		}
		N void outer(int i) { held = i % 2 ? calloc(1, $SIZE) : realloc(NULL, $SIZE); }
		int main(void)
		{
			for (volatile int i = 0; i < 50; i++)
				outer(i);
			return 0;
		}
	END
	cc -g -O1 -fomit-frame-pointer -fno-builtin -static -o nested nested.c
	for options in '' --free-stacks --raw-stacks; do
		# shellcheck disable=SC2086
		record --call-graph dwarf $options -- ./nested
		assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
		assert_equal "unwind failures" "$(summary unwind_failures)" 0
	done
	record --call-graph dwarf -- ./nested
	perf script -F ip,sym -i perf.data >script 2>script.err
	assert_equal "stacks by way of three" "$(awk '
		!NF { n += chain ~ /^ calloc realloc outer main .*_start$/; chain = "" }
		NF { chain = chain " " $2 }
		END { print n }' script)" $((NR_BLOCKS / 2))
}

# --- Stacks that end too early ---

@test "live: a stack deeper than the dump is marked, and counted" {
	write_recursion
	record --call-graph dwarf,1024 -- ./deep 1000
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	assert_equal "unwind failures" "$(summary unwind_failures)" "$NR_BLOCKS"
	tail -n 1 leakrec.err | grep -qE ", $NR_BLOCKS of [0-9]+ stacks truncated: perf.data\$" ||
		fail "$(cat leakrec.err)"
	assert_equal "marks" "$(grep -c '^	(truncated: .*)$' leaks)" "$NR_BLOCKS"
	require_program perf
	perf script -i perf.data >script 2>script.err
	assert_equal "marks that perf shows" "$(grep -cE '^\s+0 \[unknown\]' script)" "$NR_BLOCKS"
}

@test "live: a rule that libdwfl cannot read truncates a stack, not the recording" {
	# The frame's address is stored on the stack, and the rule loads it by DW_OP_deref_size.
	cat >stored.c <<-'END'
		#include <stdlib.h>
		void *stored(size_t size);
		__asm__(".text\n.globl stored\n.type stored,@function\nstored:\n"
			".cfi_startproc\n"
			"	lea 8(%rsp), %rax\n"
			"	push %rax\n"
			"	.cfi_escape 0x0f, 4, 0x77, 0, 0x94, 8\n"
			"	call malloc@plt\n"
			"	pop %rcx\n"
			"	.cfi_def_cfa 7, 8\n"
			"	ret\n"
			".cfi_endproc\n.size stored,.-stored\n");
		int main(void)
		{
			for (int i = 0; i < 10; i++)
				if (!stored(77))
					return 1;
			return 0;
		}
	END
	gcc -O1 -o stored stored.c
	for option in --free-stacks --raw-stacks; do
		"$BIN/leakrec" "$option" -o perf.data -- ./stored 2>leakrec.err
		"$BIN/leakparse" --size 77 -i perf.data >leaks
		assert_equal "$option: blocks" "$(grep -c '^leak 77 ' leaks)" 10
		assert_equal "$option: frames" "$(with_stacks | grep -A2 '^leak 77 ' | grep -c '	stored+0x')" 10
	done
	"$BIN/leakparse" --summary -i perf.data | grep -q '^   stored (stored) < (incomplete)$'
}
