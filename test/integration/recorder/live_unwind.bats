#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec --call-graph dwarf unwinds while it records: the stacks are those that leakparse finds in the
# dumps of --raw-stacks, whatever the processes map meanwhile, and the file is as small as fp's.

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

# Each leak's size, function and stack, by name, offset and line; addresses move.
stacks() {
	awk '/^leak/ { print $1, $2, $9 } /^\t/ { print "\t" $1, $2 }' leaks
}

# same_as_raw OPTION... -- COMMAND...: into a file and into a pipe, by both engines.
same_as_raw() {
	local options

	record --call-graph dwarf --raw-stacks "$@"
	check_chain
	stacks >stacks.raw
	for options in '' --perf-events; do
		# shellcheck disable=SC2086
		record --call-graph dwarf $options "$@"
		check_chain
		stacks | diff stacks.raw - || fail "the stacks differ from those of --raw-stacks"
		assert_plain_chains
	done
	"$BIN/leakrec" -o - --call-graph dwarf "$@" 2>leakrec.err | "$BIN/leakparse" --order time --size "$SIZE" >leaks
	check_chain
	stacks | diff stacks.raw - || fail "through the pipe, the stacks differ"
}

# Nothing in the file tells of dumps.
assert_plain_chains() {
	! command -v perf >/dev/null || ! perf evlist -v -i perf.data 2>/dev/null |
		grep -E 'REGS_USER|STACK_USER' || fail "the attributes promise dumps"
}

build_chain() {
	write_chain c
	write_main
	"$@" -g -o chain chain.c main.c -pthread -ldl
}

@test "live: cc -O2 -fomit-frame-pointer" {
	build_chain cc -O2 -fomit-frame-pointer
	same_as_raw -- ./chain
}

@test "live: a static program" {
	build_chain cc -O2 -fomit-frame-pointer -static
	same_as_raw -- ./chain
}

@test "live: clang, no PIE" {
	require_program clang
	build_chain clang -O2 -fno-pie -no-pie
	same_as_raw -- ./chain
}

@test "live: a library opened with dlopen" {
	write_chain c
	write_main
	cc -g -O2 -fomit-frame-pointer -fPIC -shared -o libchain.so chain.c
	cc -g -O2 -o chain main.c -pthread -ldl
	same_as_raw -- ./chain ./libchain.so
}

@test "live: perf script reads the chains" {
	require_program perf
	build_chain cc -O2 -fomit-frame-pointer
	record --call-graph dwarf -- ./chain
	perf script -i perf.data >script 2>script.err
	assert_equal "perf's whole stacks" "$(awk '
		/ link_1\+/ { n = 1 } / link_[0-9]+\+/ && n { links++ }
		/ _start\+/ { whole += links == '"$DEPTH"'; n = links = 0 } END { print whole }' script)" "$NR_BLOCKS"
	perf report --stats -i perf.data >stats 2>stats.err
	assert_equal "perf's complaints" \
		"$(grep -v 'not valid for .* events. Ignoring' script.err stats.err)" ""
}

# --- What is mapped meanwhile ---

# Two libraries take turns at one address, faster than leakrec looks; their frames are laid out
# differently.
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

# A child that goes on in the parent's program, and one that becomes another.
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

# A main that runs the chain when it reads a byte, and stays until it reads another.
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

# The chain of the target that start_waiting has started.
record_waiting() {
	local size

	attach
	size=$(stat -c %s perf.data)
	echo >&"$TARGET_IN"
	# Files are found while somebody has them mapped.
	wait_until 60 has_grown $((size + NR_BLOCKS * 8 * DEPTH))
	echo >&"$TARGET_IN"
	wait "$TARGET_PID"
	finish_leakrec
	"$BIN/leakparse" --order time --size "$SIZE" -i perf.data >leaks 2>leakparse.err
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	# The files are gone, and with them the names: all frames must be there.
	assert_equal "frames" "$(grep -c '^	' leaks)" $((NR_BLOCKS * (DEPTH + 7)))
	assert_equal "unwind failures" "$(summary unwind_failures)" 0
	! grep -E 'stacks (truncated|incomplete)' leakrec.err || fail "stacks are not whole"
}

# The unwinder reads a file that its path no longer leads to, of a user whose directories are closed.
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

# Its files are where only its own mount namespace leads, and its root is another.
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

# --- Code that was interrupted ---

# A handler allocates while vdso code runs below it, and some frames, whatever instruction was next.
@test "live: a signal's handler, above the vdso" {
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

# --- Probed functions that call each other ---

# A return probe has put the kernel's trampoline in the place of the outer functions' return addresses.
# The interrupted instruction is its function's first: taken for a return address, it would be the one before.
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
	assert_equal "interrupted" "$(sed -n 4p frames)" faulty+0x0
	diff frames frames--raw-stacks
	perf script -i perf.data >/dev/null
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

# --- What it costs ---

@test "live: the file is a twentieth of that of --raw-stacks" {
	local raw

	record_command "big_churn --threads 2 --pairs 5000 --leak-every 1000" --call-graph dwarf --raw-stacks
	raw=$(stat -c %s perf.data)
	record_command "big_churn --threads 2 --pairs 5000 --leak-every 1000" --call-graph dwarf
	assert_truth
	assert_summary unwind_failures 0
	(($(stat -c %s perf.data) * 20 <= raw)) ||
		fail "$(stat -c %s perf.data) bytes, of raw stacks $raw"
}

@test "live: --raw-stacks goes with dwarf" {
	run -2 "$BIN/leakrec" --call-graph none --raw-stacks -p $$
	run -2 "$BIN/leakrec" --call-graph fp --raw-stacks -p $$
}

@test "live: a rule that libdwfl cannot read costs a stack's end, not the recording" {
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
		assert_equal "$option: frames" "$(grep -A2 '^leak 77 ' leaks | grep -c '	stored+0x')" 10
	done
	"$BIN/leakparse" --summary -i perf.data | grep -q '^   stored < (incomplete)  at stored$'
}
