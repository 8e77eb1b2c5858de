/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Steps a child through code of many kinds, instruction by instruction, and unwinds at each. The
 * rules must find what libdwfl finds, and always lead back to the function that was stepped into.
 * So each prologue, epilogue, PLT entry and signal frame on the way is tested at each instruction.
 */
#include "unwind/frames/dump_unwinder.h"

#include "common/scope.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#if !defined(__x86_64__)
int main(void)
{
	return 77; /* libdwfl unwinds other machines' stacks */
}
#else

#define MAX_DUMP_BYTES (32u << 10)
#define X86_MASK       0xff01ffull
#if __has_attribute(noipa)
#define NOT_INLINED __attribute__((noipa))
#else
#define NOT_INLINED __attribute__((noinline))
#endif

static volatile long sink;

static NOT_INLINED int compare_longs(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

/* A library function that calls the program back. */
static NOT_INLINED void sort(void)
{
	long numbers[8] = {5, 2, 9, 1, 7, 3, 8, 0};

	qsort(numbers, ARRAY_SIZE(numbers), sizeof(*numbers), compare_longs);
	sink += numbers[0];
}

/* The first call of a function goes through the PLT's resolver, where it is bound lazily. */
static NOT_INLINED void call_through_plt(void)
{
	char text[64];

	snprintf(text, sizeof(text), "%g %s", 2.5 * (double)sink, "text");
	sink += strtol(text, NULL, 10);
	free(malloc(100));
}

/* A frame of variable size, and a realigned one. */
static NOT_INLINED void use_odd_frames(long size)
{
	char *block = __builtin_alloca((size_t)size);
	long aligned[8] __attribute__((aligned(64)));

	memset(block, 1, (size_t)size);
	for (size_t i = 0; i < ARRAY_SIZE(aligned); i++)
		aligned[i] = block[i % (size_t)size] + (long)i;
	sort();
	sink += aligned[sink & 7];
}

static NOT_INLINED long recurse(long depth)
{
	return depth ? recurse(depth - 1) + depth : sink;
}

static void on_signal(int signal)
{
	sink += recurse(3) + signal;
}

static NOT_INLINED void be_interrupted(void)
{
	raise(SIGUSR1);
}

/* Calls into the vdso. */
static NOT_INLINED void ask_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	sink += now.tv_nsec;
}

static NOT_INLINED void do_everything(void)
{
	call_through_plt();
	sort();
	use_odd_frames(20 + (sink & 7));
	sink += recurse(10);
	be_interrupted();
	ask_time();
}

/* The parent steps from the first stop to the second. */
static NOT_INLINED _Noreturn void be_stepped(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	do_everything();
	raise(SIGSTOP);
	_exit(0);
}

struct stepper {
	pid_t child;
	struct debuginfo debuginfo;
	struct module_table modules;
	struct address_spaces spaces;
	struct dump_unwinder unwinder;
	struct dwfl_unwinder reference;
	struct unwound_stack stack, expected;
	uint64_t regs[20];
	uint8_t bytes[MAX_DUMP_BYTES];
	struct stack_dump dump;
	uint64_t vdso_start, vdso_end;
	size_t nr_steps, nr_in_vdso, nr_equal;
};

/* Feeds the child's executable mappings, as perf does. */
static void map_child(struct stepper *stepper)
{
	char name[64], line[4096], path[4096], protection[8];

	snprintf(name, sizeof(name), "/proc/%d/maps", stepper->child);
	_cleanup_fclose_ FILE *maps = fopen(name, "re");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		struct stack_mapping mapping = {.pid = stepper->child, .path = path};
		struct module *module;
		uint64_t end;

		path[0] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095[^\n]",
			   &mapping.start, &end, protection, &mapping.file_offset, path) < 4 ||
		    protection[2] != 'x')
			continue;
		mapping.len = end - mapping.start;
		if (strcmp(path, "[vdso]") == 0) {
			stepper->vdso_start = mapping.start;
			stepper->vdso_end = end;
		}
		assert_int_equal(module_table_get(&stepper->modules, &mapping, &module), 0);
		assert_int_equal(address_spaces_map(&stepper->spaces, &mapping, module), 0);
	}
}

static void take_dump(struct stepper *stepper)
{
	struct user_regs_struct regs;

	assert_int_equal(ptrace(PTRACE_GETREGS, stepper->child, NULL, &regs), 0);
	const uint64_t in_order[] = {regs.rax, regs.rbx, regs.rcx, regs.rdx, regs.rsi, regs.rdi,
				     regs.rbp, regs.rsp, regs.rip, regs.r8,  regs.r9,  regs.r10,
				     regs.r11, regs.r12, regs.r13, regs.r14, regs.r15};
	memcpy(stepper->regs, in_order, sizeof(in_order));

	/* Reads as much as there is: the stack may end before. */
	size_t size = 0;
	while (size < MAX_DUMP_BYTES) {
		uint64_t address = regs.rsp + size, rest = 4096 - address % 4096;
		/* NOLINTBEGIN(performance-no-int-to-ptr): an address in the child */
		struct iovec from = {.iov_base = (void *)address, .iov_len = rest};
		/* NOLINTEND(performance-no-int-to-ptr) */
		struct iovec to = {.iov_base = stepper->bytes + size, .iov_len = rest};

		if (rest > MAX_DUMP_BYTES - size ||
		    process_vm_readv(stepper->child, &to, 1, &from, 1, 0) != (ssize_t)rest)
			break;
		size += rest;
	}
	stepper->dump = (struct stack_dump){.regs_abi = PERF_SAMPLE_REGS_ABI_64,
					    .regs_mask = X86_MASK,
					    .regs = stepper->regs,
					    .bytes = stepper->bytes,
					    .nr_bytes = size};
}

static bool passes_vdso(const struct stepper *stepper)
{
	for (size_t i = 0; i < stepper->stack.nr; i++)
		if (stepper->stack.addresses[i] >= stepper->vdso_start &&
		    stepper->stack.addresses[i] < stepper->vdso_end)
			return true;
	return false;
}

static void unwind(struct stepper *stepper)
{
	const struct address_space *space = address_spaces_find(&stepper->spaces, stepper->child);
	const struct unwound_stack *stack = &stepper->stack, *expected = &stepper->expected;

	take_dump(stepper);
	assert_int_equal(
		dump_unwinder_unwind(&stepper->unwinder, space, &stepper->dump, &stepper->stack),
		0);
	assert_true(stack->complete);
	stepper->nr_steps++;
	if (passes_vdso(stepper)) {
		/* libdwfl has no file for it. */
		stepper->nr_in_vdso++;
		return;
	}
	assert_int_equal(dwfl_unwinder_ops.unwind(&stepper->reference, space, &stepper->dump,
						  &stepper->expected),
			 0);
	/*
	 * In an epilogue libdwfl takes popped registers for lost, and may then call a stack
	 * complete that goes on.
	 */
	assert_true(expected->nr <= stack->nr);
	assert_memory_equal(stack->addresses, expected->addresses,
			    expected->nr * sizeof(*stack->addresses));
	if (expected->nr == stack->nr) {
		assert_true(expected->complete);
		assert_memory_equal(stack->is_call, expected->is_call,
				    stack->nr * sizeof(*stack->is_call));
		stepper->nr_equal++;
	}
}

/* The stack must end in the @nr addresses of @outer. */
static void assert_ends_in(const struct unwound_stack *stack, const uint64_t *outer, size_t nr)
{
	assert_true(stack->nr > nr);
	assert_memory_equal(stack->addresses + stack->nr - nr, outer, nr * sizeof(*outer));
}

/* Runs to the next stop; returns the signal. A single-step's is SIGTRAP. */
static int run(struct stepper *stepper, int request, int signal)
{
	int status;

	assert_int_equal(ptrace(request, stepper->child, NULL, (long)signal), 0);
	assert_int_equal(waitpid(stepper->child, &status, 0), stepper->child);
	assert_true(WIFSTOPPED(status));
	return WSTOPSIG(status);
}

static void all_instructions_unwind(void **state)
{
	struct stepper *stepper = *state;
	uint64_t outer[64];
	size_t nr_outer = 0;
	int stop, pending = 0;

	map_child(stepper);
	unwind(stepper);
	/*
	 * Compares from be_stepped()'s caller on: raise() may have called a different number of
	 * functions before.
	 */
	for (size_t i = 0; i < stepper->stack.nr; i++)
		if (stepper->stack.addresses[i] > (uint64_t)be_stepped &&
		    stepper->stack.addresses[i] < (uint64_t)be_stepped + 200)
			nr_outer = stepper->stack.nr - i - 1;
	assert_in_range(nr_outer, 1, ARRAY_SIZE(outer));
	memcpy(outer, stepper->stack.addresses + stepper->stack.nr - nr_outer,
	       nr_outer * sizeof(*outer));

	while ((stop = run(stepper, PTRACE_SINGLESTEP, pending)) != SIGSTOP) {
		assert_true(stop == SIGTRAP || stop == SIGUSR1);
		pending = stop == SIGTRAP ? 0 : stop;
		unwind(stepper);
		assert_ends_in(&stepper->stack, outer, nr_outer);
	}
	print_message("%zu steps, %zu in the vdso, %zu as libdwfl, %" PRIu64 " left to libdwfl\n",
		      stepper->nr_steps, stepper->nr_in_vdso, stepper->nr_equal,
		      stepper->unwinder.stats.by_dwfl);
	assert_int_equal(stepper->unwinder.stats.by_dwfl, 0);
	assert_true(stepper->nr_steps > 3000);
	assert_true(stepper->nr_equal + stepper->nr_in_vdso > stepper->nr_steps * 9 / 10);
	if (stepper->vdso_start)
		assert_true(stepper->nr_in_vdso > 5);
}

static int setup(void **state)
{
	struct stepper *stepper = calloc(1, sizeof(*stepper));
	int status;

	if (!stepper || debuginfo_init(&stepper->debuginfo, NULL))
		return -1;
	module_table_init(&stepper->modules, NULL);
	address_spaces_init(&stepper->spaces);
	if (dump_unwinder_init(&stepper->unwinder, &stepper->modules, &stepper->debuginfo, true))
		return -1;
	dwfl_unwinder_init(&stepper->reference, &stepper->modules, &stepper->debuginfo,
			   &stepper->unwinder.rules.rules.time);
	*state = stepper;
	signal(SIGUSR1, on_signal);
	stepper->child = fork();
	if (!stepper->child)
		be_stepped();
	return waitpid(stepper->child, &status, 0) == stepper->child && WIFSTOPPED(status) ? 0 : -1;
}

static int teardown(void **state)
{
	struct stepper *stepper = *state;

	kill(stepper->child, SIGKILL);
	waitpid(stepper->child, NULL, 0);
	dwfl_unwinder_ops.deinit(&stepper->reference);
	dump_unwinder_deinit(&stepper->unwinder);
	address_spaces_deinit(&stepper->spaces);
	module_table_deinit(&stepper->modules);
	debuginfo_deinit(&stepper->debuginfo);
	free(stepper);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_instructions_unwind, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
