// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vfork: the child shares its parent's heap until it execs. It frees a block of the parent's and
 * allocates one that the parent frees, then execs this program again, which allocates on its own
 * heap. The parent's heap must survive that.
 *
 * Exact: every count, of all processes together.
 */
#include "truth.h"

#define NR_CHILDREN 10

static void *shared_block;

static void child_after_exec(void)
{
	for (size_t i = 0; i < 20; i++) {
		void *block = t_malloc(4000);

		if (i % 5 != 0)
			t_free(block);
	}
}

static void spawn(char **child_argv)
{
	void *given = t_malloc(700);
	pid_t child;

	child = vfork();
	if (child == 0) {
		t_free(given);
		shared_block = t_malloc(800);
		execv("/proc/self/exe", child_argv);
		_exit(99);
	}
	if (child < 0)
		truth_die("vfork_exec: cannot vfork\n");
	t_free(shared_block);
	t_malloc(900);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

int main(int argc, char **argv)
{
	char fd[2] = "0", name[] = "vfork_exec", option[] = "--truth-fd", child[] = "--child";
	char *child_argv[] = {name, child, option, fd, NULL};

	truth_init(argc, argv);
	if (truth_flag(argc, argv, "--child")) {
		child_after_exec();
		return 0;
	}
	if (truth.shared_fd > 9)
		truth_die("vfork_exec: too many open files\n");
	fd[0] = (char)('0' + truth.shared_fd);
	truth_begin();
	for (int i = 0; i < NR_CHILDREN; i++)
		spawn(child_argv);
	truth_print();
	return 0;
}
