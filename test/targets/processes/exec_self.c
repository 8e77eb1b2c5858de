// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Allocates, execs itself, allocates again. exec clears the heap: what was held before is not a
 * leak of the new program, and an address used before and after is not a block "still held".
 *
 * Exact: every count, before and after exec together; held_* counts the last program's blocks.
 */
#include "truth.h"

static void allocate(size_t size_bytes, int nr, int nr_freed)
{
	for (int i = 0; i < nr; i++) {
		void *block = t_malloc(size_bytes);

		if (i < nr_freed)
			t_free(block);
	}
}

int main(int argc, char **argv)
{
	char fd[2] = "0", name[] = "exec_self", option[] = "--truth-fd", again[] = "--again";
	char *next_argv[] = {name, again, option, fd, NULL};

	truth_init(argc, argv);
	if (truth_flag(argc, argv, "--again")) {
		allocate(3072, 50, 20);
		truth_print();
		return 0;
	}
	if (truth.shared_fd > 9)
		truth_die("exec_self: too many open files\n");
	fd[0] = (char)('0' + truth.shared_fd);
	truth_begin();
	allocate(3072, 100, 10);
	truth_exec();
	execv("/proc/self/exe", next_argv);
	truth_die("exec_self: cannot exec\n");
}
