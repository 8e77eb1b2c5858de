/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares the points in this machine's libc with real calls. Each instruction of malloc is
 * single-stepped, and the registers at a point are compared with the call's argument, its result,
 * and the caller's registers.
 */
#include "probes/sites/single_trap_points.h"

#include "common/scope.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__x86_64__)

#define NR_GENERAL	 16
#define NR_THREADS	 4
#define CALLS_PER_THREAD 50
#define NR_ROUNDS	 2
#define MAX_HELD	 10 /* more blocks of one size than a thread's cache holds */

typedef void *allocate(size_t size);
typedef void release(void *block);

static struct {
	uintptr_t malloc;
	allocate *allocate;
	release *release;
	struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];
	int nr_points;
} libc;

/* The thread's stepped call. */
static __thread struct {
	size_t size;
	greg_t entry[NR_GENERAL]; /* numbered as instructions encode them */
	uint64_t return_address;
	int nr_entries, nr_blocks, nr_sizes, nr_wrong;
	uint64_t block;
	uint64_t offset; /* of the point with the block, or of the wrong point */
} call;

/* Calls @function with the trap flag set. */
void *call_stepped(size_t size, allocate *function);
__asm__(".text\n"
	".globl call_stepped\n"
	".type call_stepped, @function\n"
	"call_stepped:\n"
	"push %rbx\n"
	"pushfq\n"
	"orq $0x100, (%rsp)\n"
	"popfq\n"
	"call *%rsi\n"
	"pushfq\n"
	"andq $~0x100, (%rsp)\n"
	"popfq\n"
	"pop %rbx\n"
	"ret\n"
	".size call_stepped, . - call_stepped\n");

static void read_registers(const ucontext_t *context, greg_t ret[NR_GENERAL])
{
	static const int order[NR_GENERAL] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
					      REG_RSI, REG_RDI, REG_R8,	 REG_R9,  REG_R10, REG_R11,
					      REG_R12, REG_R13, REG_R14, REG_R15};

	for (int i = 0; i < NR_GENERAL; i++)
		ret[i] = context->uc_mcontext.gregs[order[i]];
}

static uint64_t stack_word(const greg_t *registers, uint32_t distance)
{
	const char *here = __builtin_frame_address(0); /* of the same stack */
	uint64_t word;

	memcpy(&word, here + (registers[4] - (greg_t)(uintptr_t)here) + distance, sizeof(word));
	return word;
}

/* True if the frame is as the point describes it. */
static bool is_callers_frame(const struct single_trap_point *point, const greg_t *registers)
{
	static const int saved[SINGLE_TRAP_NR_SAVED] = {3, 5, 12, 13, 14, 15};

	if ((uint64_t)registers[4] + point->frame_bytes != (uint64_t)call.entry[4] ||
	    stack_word(registers, point->frame_bytes) != call.return_address)
		return false;
	for (int i = 0; i < SINGLE_TRAP_NR_SAVED; i++) {
		uint64_t value = point->saved[i] == SINGLE_TRAP_UNCHANGED
					 ? (uint64_t)registers[saved[i]]
					 : stack_word(registers, (uint32_t)point->saved[i]);

		if (value != (uint64_t)call.entry[saved[i]])
			return false;
	}
	return true;
}

static void meet_point(const struct single_trap_point *point, const greg_t *registers)
{
	bool is_right = is_callers_frame(point, registers);

	if (point->size_register != SINGLE_TRAP_NOWHERE) {
		is_right &= (size_t)registers[point->size_register] == call.size;
		call.nr_sizes++;
	}
	if (point->block_register != SINGLE_TRAP_NOWHERE) {
		/* The size must be known by now. */
		is_right &= call.nr_sizes > 0;
		call.nr_blocks++;
		call.block = point->block_register == SINGLE_TRAP_IS_NULL
				     ? 0
				     : (uint64_t)registers[point->block_register];
		call.offset = point->offset;
	}
	if (!is_right) {
		call.nr_wrong++;
		call.offset = point->offset;
	}
}

static void on_step(int number, siginfo_t *info, void *context_pointer)
{
	const ucontext_t *context = context_pointer;
	uint64_t offset = (uint64_t)context->uc_mcontext.gregs[REG_RIP] - libc.malloc;
	greg_t registers[NR_GENERAL];

	read_registers(context, registers);
	if (offset == 0) {
		memcpy(call.entry, registers, sizeof(registers));
		call.return_address = stack_word(registers, 0);
		call.nr_entries++;
	}
	for (int i = 0; i < libc.nr_points; i++)
		if (libc.points[i].offset == offset)
			meet_point(&libc.points[i], registers);
}

/* Returns the block; *@ret_is_right: the points of the call are right. */
static void *step_call(size_t size, bool *ret_is_right)
{
	void *block;

	memset(&call, 0, sizeof(call));
	call.size = size;
	block = call_stepped(size, libc.allocate);
	*ret_is_right = call.nr_entries == 1 && call.nr_blocks == 1 && call.nr_wrong == 0 &&
			call.block == (uintptr_t)block;
	return block;
}

static const size_t sizes[] = {0,
			       1,
			       24,
			       100,
			       1000,
			       1032,
			       1033,
			       5000,
			       70000,
			       200000,
			       (size_t)1 << 60,
			       (size_t)1 << 63,
			       SIZE_MAX,
			       SIZE_MAX / 2,
			       SIZE_MAX / 2 - 4096};

/* Each size is allocated from new memory, and from released memory. */
static void check_sizes(void)
{
	if (libc.nr_points == 0)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(sizes) * NR_ROUNDS; i++) {
		size_t size = sizes[i / NR_ROUNDS];
		void *blocks[MAX_HELD];

		for (size_t j = 0; j < ARRAY_SIZE(blocks); j++) {
			bool is_right;

			blocks[j] = step_call(size, &is_right);
			if (!is_right)
				fail_msg("malloc(%zu) = %p: %d entries, %d blocks, %d wrong "
					 "points, block 0x%" PRIx64 " at +0x%" PRIx64,
					 size, blocks[j], call.nr_entries, call.nr_blocks,
					 call.nr_wrong, call.block, call.offset);
		}
		for (size_t j = 0; j < ARRAY_SIZE(blocks); j++)
			libc.release(blocks[j]);
	}
}

static void points_tell_of_each_call(void **state)
{
	check_sizes();
}

/* The work of a thread, and how many of its calls had wrong points. */
struct work {
	pthread_t thread;
	uint32_t seed;
	int nr_wrong;
};

static void *run_thread(void *work_pointer)
{
	struct work *work = work_pointer;
	void *held[MAX_HELD] = {0};

	for (int i = 0; i < CALLS_PER_THREAD; i++) {
		bool is_right;
		size_t at;

		work->seed = work->seed * 1103515245u + 12345u;
		at = (work->seed >> 16) % MAX_HELD;
		libc.release(held[at]);
		held[at] = step_call((work->seed >> 8) % 3000, &is_right);
		work->nr_wrong += !is_right;
	}
	for (size_t i = 0; i < MAX_HELD; i++)
		libc.release(held[i]);
	return NULL;
}

/* With threads, libc locks its arenas, makes new ones, and tries other ones. */
static void threads_change_nothing(void **state)
{
	struct work work[NR_THREADS] = {0};

	if (libc.nr_points == 0)
		skip();
	for (uint32_t i = 0; i < NR_THREADS; i++) {
		work[i].seed = i * 77777 + 1;
		assert_int_equal(pthread_create(&work[i].thread, NULL, run_thread, &work[i]), 0);
	}
	for (int i = 0; i < NR_THREADS; i++) {
		assert_int_equal(pthread_join(work[i].thread, NULL), 0);
		assert_int_equal(work[i].nr_wrong, 0);
	}
	check_sizes();
}

/* The libcs of Debian 12 and 13, compared with objdump's text. */
static void debians_libc_has_points(void **state)
{
	const char *version = gnu_get_libc_version();
	int nr_null = 0;

	if ((strcmp(version, "2.36") != 0 && strcmp(version, "2.41") != 0) ||
	    access("/etc/debian_version", F_OK))
		skip();
	assert_true(libc.nr_points > 0);
	for (int i = 0; i < libc.nr_points; i++)
		nr_null += libc.points[i].block_register == SINGLE_TRAP_IS_NULL;
	/* Only the path of a size that is too large has its point where it certainly fails. */
	assert_int_equal(nr_null, 1);
}

static int find_libc(void **state)
{
	static const char *const names[] = {"malloc"};
	struct placement_kernel kernel = {.emulates_long_nops = false};
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	void *handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	struct elf_function function;
	struct elf_image image;
	Dl_info info;

	if (!handle || !dladdr(dlsym(handle, "malloc"), &info))
		return -1;
	libc.allocate = (allocate *)dlsym(handle, "malloc");
	libc.malloc = (uintptr_t)libc.allocate;
	libc.release = (release *)dlsym(handle, "free");
	dlclose(handle);
	if (elf_image_open(&image, info.dli_fname))
		return -1;
	elf_image_find_functions(&image, names, 1, &function);
	libc.nr_points = single_trap_points_find(&image, &function, 0, &kernel, libc.points);
	elf_image_deinit(&image);
	return libc.nr_points < 0 ? -1 : sigaction(SIGTRAP, &action, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debians_libc_has_points),
		cmocka_unit_test(points_tell_of_each_call),
		cmocka_unit_test(threads_change_nothing),
	};

	return cmocka_run_group_tests(tests, find_libc, NULL);
}

#else

int main(void)
{
	return 77; /* skipped: only x86-64 code is decoded */
}

#endif
