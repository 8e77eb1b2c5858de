// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Forks until a child has had an id with the same slot in the target table as init's (1), and has
 * ended. The entry that it leaves must not stand for any process. Each child makes an allocation.
 * Then it prints "truth forked N" and waits for a line on standard input.
 */
#include "truth.h"

#include <fcntl.h>

#define MAX_FORKS 100000

/* recorder/target_table/target_table.h */
static unsigned int slot(unsigned int tgid)
{
	return (tgid * 2654435761U >> 16) & 1023;
}

/* Root may choose the id of the next process, unless another process takes it meanwhile. */
static void choose_next_id(pid_t last)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	while (slot((unsigned int)last + 1) != slot(1))
		last++;
	if (fd < 0)
		return;
	(void)!dprintf(fd, "%d", last);
	close(fd);
}

int main(int argc, char **argv)
{
	pid_t last = getpid();
	char byte;

	truth_init(argc, argv);
	truth_begin();
	for (int i = 0; i < MAX_FORKS; i++) {
		pid_t child;

		choose_next_id(last);
		child = fork();
		if (child == 0) {
			/* Lives long enough to get into the table. */
			free(malloc(100));
			_exit(0);
		}
		if (child < 0 || waitpid(child, NULL, 0) != child)
			truth_die("orphans: cannot fork\n");
		last = child;
		if (slot((unsigned int)child) == slot(1)) {
			truth_tell("forked", i + 1);
			while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n')
				;
			truth_print();
			return 0;
		}
	}
	truth_die("orphans: no child had an id like init's\n");
}
