// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `overlaid_blocks FILE`: each ms leaks a block of 16 KiB, and allocates and frees many small ones,
 * until SIGUSR1. Then it maps FILE over the pages where its blocks begin, says "done", and waits:
 * its heap cannot be used any more.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_BLOCKS  16384
#define BLOCK_BYTES 16384
#define NR_FREED    300

static char *blocks[MAX_BLOCKS];
static volatile sig_atomic_t is_over;

static void end(int signal)
{
	is_over = 1;
}

static size_t leak(void)
{
	size_t nr = 0;

	while (!is_over) {
		if (nr < MAX_BLOCKS) {
			blocks[nr] = malloc(BLOCK_BYTES);
			memset(blocks[nr++], 1, 16);
		}
		for (int i = 0; i < NR_FREED; i++)
			free(malloc(100));
		usleep(1000);
	}
	return nr;
}

int main(int argc, char **argv)
{
	int fd = open(argv[argc - 1], O_RDONLY | O_CLOEXEC);
	char line;
	size_t nr;

	signal(SIGUSR1, end);
	dprintf(STDOUT_FILENO, "ready %d\n", (int)getpid());
	if (fd < 0 || read(STDIN_FILENO, &line, 1) < 0)
		return 1;
	nr = leak();
	for (size_t i = 0; i < nr; i++)
		if (mmap((void *)((uintptr_t)blocks[i] & ~(uintptr_t)4095), 4096, PROT_READ,
			 MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
			_exit(1);
	if (write(STDOUT_FILENO, "done\n", 5) != 5)
		_exit(1);
	pause();
	_exit(0);
}
