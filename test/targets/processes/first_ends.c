// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first thread ends after the line for which truth_begin() waits. Another thread works on: two
 * rounds of calls, each after one more line. With --wait only.
 */
#include "truth.h"

#include <sys/syscall.h>

static void *others_run(void *arg)
{
	char go;

	while (!truth.counting)
		usleep(1000);
	for (int round = 0; round < 2; round++) {
		if (read(STDIN_FILENO, &go, 1) != 1)
			truth_die("first_ends: stdin closed before the line to go on\n");
		for (int i = 0; i < 100; i++) {
			void *block = t_malloc(3072);

			if (i % 10)
				t_free(block);
		}
	}
	truth_print();
	_exit(0);
}

int main(int argc, char **argv)
{
	struct truth_thread thread;

	truth_init(argc, argv);
	truth_thread_start(&thread, others_run, NULL);
	truth_begin();
	/* pthread_exit() would load a library, which allocates. */
	syscall(SYS_exit, 0);
}
