// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * posix_memalign, whose block is stored through a pointer: to a variable on the stack, near the
 * stack pointer and far above it, to a global, to the heap, and with errors, which store nothing.
 *
 * Exact: every count.
 */
#include "truth.h"

static void *global;

struct holder {
	int dummy;
	void *block;
};

static void to_stack(void)
{
	void *block;

	for (int i = 0; i < 20; i++) {
		if (t_posix_memalign(&block, 64, 2000))
			truth_die("posix_memalign_cases: out of memory\n");
		if (i % 5)
			t_free(block);
	}
}

/* The pointer lies 40 KiB above the stack pointer: no stack dump of common size shows it. */
static void __attribute__((noinline)) to_far_stack(void **block)
{
	char between[40 << 10];

	__asm__ volatile(""
			 :
			 : "r"(between)
			 : "memory"); /* Uses the array, so that the compiler keeps it. */
	if (t_posix_memalign(block, 256, 2100))
		truth_die("posix_memalign_cases: out of memory\n");
	__asm__ volatile("" : : "r"(between) : "memory");
}

static void to_global_and_heap(void)
{
	struct holder *holder = t_malloc(sizeof(*holder));

	for (int i = 0; i < 10; i++) {
		if (t_posix_memalign(&global, 4096, 2200) ||
		    t_posix_memalign(&holder->block, 16, 2300))
			truth_die("posix_memalign_cases: out of memory\n");
		t_free(i % 2 ? global : holder->block);
	}
	t_free(holder);
}

static void errors(void)
{
	void *untouched = &global;

	if (t_posix_memalign(&untouched, 3, 2400) != EINVAL ||
	    t_posix_memalign(&untouched, 4, 2400) != EINVAL ||
	    t_posix_memalign(&untouched, 64, PTRDIFF_MAX) != ENOMEM || untouched != &global)
		truth_die("posix_memalign_cases: an error was expected\n");
}

int main(int argc, char **argv)
{
	void *far, *again;

	truth_init(argc, argv);
	truth_begin();
	to_stack();
	to_far_stack(&far);
	to_far_stack(&again);
	t_free(far);
	to_global_and_heap();
	errors();
	truth_print();
	return 0;
}
