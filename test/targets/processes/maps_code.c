// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Maps the code of files, one after the other, and uses it: `maps_code [--wait] [--early] FILE...`.
 * Between two files it allocates a block of 3001 bytes, and at the end it frees half of these. With
 * --early it has mapped them all when it is ready, and allocates as many blocks then.
 *
 * Exact: the calls, and held_*. Also printed: longest_ms, the time that the slowest file took.
 */
#include "truth.h"

#include <fcntl.h>
#include <time.h>

#define MAX_FILES 1000

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns how long it took, in milliseconds. */
static long use(const char *path)
{
	const volatile char *code;
	long begin_ms = now_ms();
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);
	if (fd < 0 || code == MAP_FAILED)
		truth_die("maps_code: cannot map the file\n");
	(void)*code;
	close(fd);
	return now_ms() - begin_ms;
}

int main(int argc, char **argv)
{
	static void *blocks[MAX_FILES];
	const char *files[MAX_FILES];
	bool is_early;
	long longest_ms = 0;
	int nr = 0;

	truth_init(argc, argv);
	is_early = truth_flag(argc, argv, "--early");
	for (int i = 1; i < argc && nr < MAX_FILES; i++)
		if (argv[i][0] != '-')
			files[nr++] = argv[i];
	for (int i = 0; is_early && i < nr; i++)
		use(files[i]);
	truth_begin();
	for (int i = 0; i < nr; i++) {
		long took_ms = is_early ? 0 : use(files[i]);

		if (took_ms > longest_ms)
			longest_ms = took_ms;
		blocks[i] = t_malloc(3001);
	}
	for (int i = 0; i < nr; i += 2)
		t_free(blocks[i]);
	truth_tell("longest_ms", longest_ms);
	truth_print();
	return 0;
}
