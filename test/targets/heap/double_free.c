// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Double frees that glibc does not detect, until 2.42: free(a), free(b), free(a). A fastbin
 * compares a freed block only with the newest one (_int_free() in malloc/malloc.c). Then calloc
 * returns a, b, and a again: a block that is still held. The program runs without threads' caches,
 * which detect this.
 *
 * Exact: every count. 3 double frees, 3 blocks still held.
 */
#include "truth.h"

#define MAX_VARIABLES 1000

/* Begins again without caches. Allocates nothing, because tests count all calls. */
static void leave_out_caches(char **argv)
{
	static char tunables[] = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0";
	char *environment[MAX_VARIABLES + 2] = {tunables};

	if (getenv("GLIBC_TUNABLES"))
		return;
	for (size_t i = 0; i < MAX_VARIABLES && environ[i]; i++)
		environment[i + 1] = environ[i];
	execve(argv[0], argv, environment);
	truth_die("double_free: cannot begin again\n");
}

static void first_free(void *block)
{
	t_free(block);
}

static void second_free(void *block)
{
	t_free(block);
}

static void free_twice(size_t size_bytes)
{
	void *a = t_calloc(1, size_bytes), *b = t_calloc(1, size_bytes), *again;

	first_free(a);
	t_free(b);
	second_free(a);

	if (t_calloc(1, size_bytes) != a || t_calloc(1, size_bytes) != b)
		truth_die("double_free: this libc's fastbins are not glibc's\n");
	again = t_calloc(1, size_bytes);
	if (again != a)
		truth_die("double_free: the second free was noticed\n");
}

int main(int argc, char **argv)
{
	leave_out_caches(argv);
	truth_init(argc, argv);
	truth_begin();
	free_twice(24);
	free_twice(56);
	free_twice(104);
	truth_print();
	return 0;
}
