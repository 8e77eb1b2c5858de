// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Forks until a child has had an id with the same slot in the target table as init's (1), and has
 * ended. The entry that it leaves must not stand for any process. Each child makes an allocation.
 * Then it prints "truth forked N" and waits for a line on standard input.
 */
#include "truth.h"

#include "recorder/target_table/target_search.h"

#include <fcntl.h>

#define MAX_FORKS 100000
#define MIN_ID	  300 /* RESERVED_PIDS, kernel/pid.c: where ids begin again */

static bool has_slot_of_init(pid_t pid)
{
	return target_slot((unsigned int)pid) == target_slot(TARGET_INIT);
}

/* The next id before one that has it. */
static pid_t before_slot_of_init(pid_t last)
{
	while (!has_slot_of_init(last + 1))
		last++;
	return last;
}

/*
 * Root may choose the id of the next process, unless another process takes it meanwhile. The kernel
 * refuses ids above its limit: then a small one.
 */
static void choose_next_id(pid_t last)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (dprintf(fd, "%d", before_slot_of_init(last)) < 0)
		(void)!dprintf(fd, "%d", before_slot_of_init(MIN_ID));
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
		if (has_slot_of_init(child)) {
			truth_tell("forked", i + 1);
			while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n')
				;
			truth_print();
			return 0;
		}
	}
	truth_die("orphans: no child had an id like init's\n");
}
