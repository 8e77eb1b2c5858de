/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Grows without an allocator, and waits to be killed. --mib N: by N MiB, in one of these ways:
 *
 * --mapped    it maps memory and writes to it; it also keeps 2 MiB in blocks
 *   --own-heap  a heap of its own, as a runtime's: areas of 64 MiB are reserved, made accessible
 *               bit by bit, and cut into blocks. No allocator is called
 * --older     it writes to memory that it mapped before it began
 *   --file      it reads a file of that size, PATH, that is mapped
 *
 * With --wait it prints "ready PID" and reads a line from stdin before it begins. It prints "done"
 * when it has grown.
 */
#include "truth.h"

#include <fcntl.h>
#include <stdlib.h>

#define MIB  ((size_t)1 << 20)
#define AREA (64 * MIB)

static void *map(size_t bytes, int protection, int fd)
{
	void *area = mmap(NULL, bytes, protection,
			  MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS | MAP_NORESERVE : 0), fd, 0);

	if (area == MAP_FAILED)
		truth_die("grows_unseen: cannot map memory\n");
	return area;
}

static void touch(char *area, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096)
		area[i] = 1;
}

static void grow_mapped(size_t bytes)
{
	for (int i = 0; i < 2048; i++)
		touch(malloc(1024), 1024);
	for (size_t i = 0; i < bytes; i += MIB)
		touch(map(MIB, PROT_READ | PROT_WRITE, -1), MIB);
}

static void grow_own_heap(size_t bytes)
{
	char *area = NULL;

	for (size_t i = 0; i < bytes; i += MIB) {
		if (i % AREA == 0)
			area = map(AREA, PROT_NONE, -1);
		if (mprotect(area + i % AREA, MIB, PROT_READ | PROT_WRITE))
			truth_die("grows_unseen: cannot use memory\n");
		touch(area + i % AREA, MIB);
	}
}

static void read_file(const char *path, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const volatile char *file;
	long sum = 0;

	if (fd < 0)
		truth_die("grows_unseen: cannot open the file\n");
	file = map(bytes, PROT_READ, fd);
	for (size_t i = 0; i < bytes; i += 4096)
		sum += file[i];
	truth_tell("sum", sum);
}

int main(int argc, char **argv)
{
	size_t bytes;
	char *older;

	truth_init(argc, argv);
	bytes = (size_t)truth_option(argc, argv, "--mib", 100) * MIB;
	older = map(bytes, PROT_READ | PROT_WRITE, -1);
	truth_begin();
	if (truth_flag(argc, argv, "--mapped"))
		grow_mapped(bytes);
	else if (truth_flag(argc, argv, "--own-heap"))
		grow_own_heap(bytes);
	else if (truth_flag(argc, argv, "--older"))
		touch(older, bytes);
	else if (truth_flag(argc, argv, "--file"))
		read_file(argv[argc - 1], bytes);
	truth_tell("done", 1);
	for (;;)
		pause();
}
