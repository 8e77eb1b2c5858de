#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A process that serves a page of its stack itself (userfaultfd): no probe waits for it.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program gcc
}

teardown() {
	common_teardown
}

# take() is called on a stack that is not in memory. It sets "reached" before it uses the stack.
write_hostile() {
	cat >hostile.c <<-'END'
		#include <fcntl.h>
		#include <linux/userfaultfd.h>
		#include <pthread.h>
		#include <stdio.h>
		#include <string.h>
		#include <sys/ioctl.h>
		#include <sys/mman.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		int reached;
		void *resume;
		static char *page;
		static int fd;
		__asm__(".globl take\n.type take,@function\n"
			"take: movl $1, reached(%rip)\n\tret\n.size take, .-take\n");
		__attribute__((noipa)) void *make(void) { return &reached; }
		static void *serve(void *unused)
		{
			static char stack[4096] __attribute__((aligned(4096)));
			struct uffdio_copy copy = {(unsigned long)page, (unsigned long)stack, 4096, 0, 0};
			struct uffd_msg message;
			if (read(fd, &message, sizeof(message)) <= 0)
				return NULL;
			printf("reached %d\n", __atomic_load_n(&reached, __ATOMIC_SEQ_CST));
			memcpy(stack + 4088, &resume, sizeof(resume));
			ioctl(fd, UFFDIO_COPY, &copy);
			return unused;
		}
		static void call_on(char *top, void *handle)
		{
			__asm__ volatile("leaq 1f(%%rip), %%rax\n\tmovq %%rax, resume(%%rip)\n\t"
					 "movq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\tjmp take\n"
					 "1:\tmovq %%rbx, %%rsp"
					 ::"r"(top), "D"(handle) : "rax", "rbx", "memory", "cc");
		}
		int main(void)
		{
			struct uffdio_api api = {UFFD_API, 0, 0};
			struct uffdio_register range = {{0, 4096}, UFFDIO_REGISTER_MODE_MISSING, 0};
			pthread_t thread;
			setvbuf(stdout, NULL, _IONBF, 0); /* The thread must not hit a probe. */
			fd = syscall(SYS_userfaultfd, O_CLOEXEC);
			page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			range.range.start = (unsigned long)page;
			if (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range) ||
			    pthread_create(&thread, NULL, serve, NULL))
				return 1;
			call_on(page + 4088, make());
			return pthread_join(thread, NULL);
		}
	END
	gcc -O2 -D_GNU_SOURCE -rdynamic -o hostile hostile.c -lpthread
}

@test "hostile stack: a function is reached before its page is asked for" {
	local options

	write_hostile
	for options in --call-graph=fp --perf-events "--perf-events --call-graph fp --free-stacks"; do
		# shellcheck disable=SC2086 # words
		"$BIN/leakrec" $options --pair 'thing=make:ret / take:arg1' -o perf.data -- ./hostile \
			>hostile.out 2>leakrec.err
		assert_equal "with $options" "$(cat hostile.out)" "reached 1"
		"$BIN/leakparse" --kind thing <perf.data >leaks 2>leakparse.err
		grep -q 'thing: 1 given, 1 taken, 0 still held$' leakparse.err || fail "$(cat leakparse.err)"
	done
}

# callers OPTION...: prints the return addresses of recorded calls of free, and how many have each.
callers() {
	"$BIN/leakrec" "$@" -o perf.data -- "$TARGETS/cases_static" >truth 2>leakrec.err
	perf script -i perf.data -F event,trace 2>/dev/null | sed -nE 's/.*:free: .* (caller=0x[0-9a-f]+)$/\1/p' |
		sort | uniq -c
}

@test "hostile stack: perf events record the return addresses that programs do" {
	local options

	require_programs
	require_program perf
	callers >expected
	for options in "" --free-stacks "--call-graph fp --free-stacks" "--call-graph none" "--raw-stacks --free-stacks"; do
		# shellcheck disable=SC2086 # words
		callers --perf-events $options >found
		diff expected found || fail "with $options"
	done
	(($(wc -l <expected) > 3)) || fail "$(cat expected)"
}
