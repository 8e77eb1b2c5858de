// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Maps the code of files, one after the other, and uses it: `maps_code [--wait] FILE...`. Between
 * two files it allocates a block of 3001 bytes, and at the end it frees half of these.
 *
 * Exact: the calls, and held_*.
 */
#include "truth.h"

#include <fcntl.h>

#define MAX_FILES 1000

int main(int argc, char **argv)
{
	static void *blocks[MAX_FILES];
	int nr = 0;

	truth_init(argc, argv);
	truth_begin();
	for (int i = 1; i < argc && nr < MAX_FILES; i++) {
		const volatile char *code;
		int fd;

		if (argv[i][0] == '-')
			continue;
		fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);
		if (fd < 0 || code == MAP_FAILED)
			truth_die("maps_code: cannot map the file\n");
		(void)*code;
		close(fd);
		blocks[nr++] = t_malloc(3001);
	}
	for (int i = 0; i < nr; i += 2)
		t_free(blocks[i]);
	truth_print();
	return 0;
}
