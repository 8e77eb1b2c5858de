// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Another thread than the first execs the program again, after the line for which truth_begin()
 * waits. The new program tells that by the file "again", and works after one more line. With --wait
 * only.
 */
#include "truth.h"

#include <fcntl.h>

static char fd_text[2] = "0";

static void *thread_run(void *arg)
{
	char name[] = "exec_by_thread", option[] = "--truth-fd", again[] = "--again";
	char *argv[] = {name, again, option, fd_text, NULL};

	while (!truth.counting)
		usleep(1000);
	truth_exec();
	execv("/proc/self/exe", argv);
	truth_die("exec_by_thread: cannot exec\n");
	return NULL;
}

static void work_again(void)
{
	char go;

	close(open("again", O_CREAT | O_WRONLY, 0600));
	if (read(STDIN_FILENO, &go, 1) != 1)
		truth_die("exec_by_thread: stdin closed before the line to go on\n");
	for (int i = 0; i < 100; i++) {
		void *block = t_malloc(3072);

		if (i % 10)
			t_free(block);
	}
	truth_print();
}

int main(int argc, char **argv)
{
	struct truth_thread thread;

	truth_init(argc, argv);
	if (truth_flag(argc, argv, "--again")) {
		work_again();
		return 0;
	}
	if (truth.shared_fd > 9)
		truth_die("exec_by_thread: too many open files\n");
	fd_text[0] = (char)('0' + truth.shared_fd);
	truth_thread_start(&thread, thread_run, NULL);
	truth_begin();
	for (;;)
		pause();
}
