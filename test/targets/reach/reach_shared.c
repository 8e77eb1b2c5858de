/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks whose addresses are in memory that other mappings and processes share: reach_shared FILE.
 * What says "ready" is a child process, which has touched none of that memory since the fork. FILE
 * is made, and should be on a disk. With --many instead, the program maps 32 MiB sixty times, and a
 * sparse file of 64 GiB.
 */
#include "reach.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>

#ifndef MADV_PAGEOUT /* Linux 5.4 */
#define MADV_PAGEOUT 21
#endif

#define RW   (PROT_READ | PROT_WRITE)
#define SIZE 65536
#define FAR  4000 /* a word that is not in the first page */

static void *mapped[32];
static size_t nr_mapped;

static REACH_CASE void **map(int fd, int protection, int flags)
{
	void *p = mmap(NULL, SIZE, protection, flags, fd, 0);

	if (p == MAP_FAILED)
		abort();
	mapped[nr_mapped++] = p;
	return p;
}

static REACH_CASE int memory_file(const char *name, off_t size)
{
	int fd = memfd_create(name, 0);

	if (fd < 0 || ftruncate(fd, size))
		abort();
	return fd;
}

/* Links of a list that begins in the memory: all of it must be held. */
static REACH_CASE void *list_of(const char *name)
{
	void **last = block_of(104), **first = block_of(104);

	first[0] = last;
	expect(name, "held", last);
	return first;
}

static REACH_CASE void without_files(void)
{
	void **segment;

	map(-1, RW, MAP_SHARED | MAP_ANONYMOUS)[FAR] = list_of("anonymous");
	map(memory_file("reach", SIZE), RW, MAP_SHARED)[FAR] = list_of("memfd");
	/* The first segment's id, and so its inode, is 0. */
	unshare(CLONE_NEWIPC);
	for (int i = 0; i < 2; i++) {
		segment = shmat(shmget(IPC_PRIVATE, SIZE, 0600), NULL, 0);
		if (segment == (void *)-1)
			abort();
		segment[FAR] = list_of(i ? "segment" : "first-segment");
		mapped[nr_mapped++] = segment;
	}
}

/* The program writes through one mapping, and keeps another one. */
static REACH_CASE void written_before(void)
{
	int fd = memory_file("sealed", SIZE);
	void **p = map(fd, RW, MAP_SHARED), **block;

	p[FAR] = list_of("sealed");
	mprotect(p, SIZE, PROT_READ);
	p = map(memory_file("no access", SIZE), RW, MAP_SHARED);
	p[FAR] = list_of("no-access");
	mprotect(p, SIZE, PROT_NONE);
	/* As a runtime that generates code has it, which maps it twice: at any byte. */
	fd = memory_file("doublemapper", SIZE);
	p = map(fd, RW, MAP_SHARED);
	block = list_of("code");
	memcpy((char *)p + 5001, &block, sizeof(void *));
	map(fd, PROT_READ | PROT_EXEC, MAP_SHARED);
	munmap(p, SIZE);
	fd = memory_file("read privately", SIZE);
	p = map(fd, RW, MAP_SHARED);
	p[FAR] = list_of("private-mapping");
	map(fd, PROT_READ, MAP_PRIVATE);
	munmap(p, SIZE);
	/* The file ends within a page, and the program uses the rest of it. */
	map(memory_file("short", 100), RW, MAP_SHARED)[20] = list_of("behind-the-end");
}

static REACH_CASE void on_disk(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	void **p, **block = list_of("deleted-file");

	if (fd < 0 || ftruncate(fd, SIZE))
		abort();
	p = map(fd, RW, MAP_SHARED);
	p[FAR] = list_of("file");
	/* As the kernel does when it needs memory. */
	if (msync(p, SIZE, MS_SYNC) || madvise(p, SIZE, MADV_PAGEOUT))
		abort();
	fd = open(path, O_RDWR | O_CREAT, 0600);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || pwrite(fd, &block, sizeof(void *), FAR) != sizeof(void *))
		abort();
	map(fd, PROT_READ, MAP_SHARED);
	unlink(path);
}

static REACH_CASE void lost(void)
{
	void **p = map(memory_file("discarded", SIZE), RW, MAP_SHARED);
	int fd = memory_file("truncated", SIZE);

	expect("discarded", "lost", p[FAR] = block_of(104));
	if (madvise(p, SIZE, MADV_REMOVE))
		abort();
	p = map(fd, RW, MAP_SHARED);
	expect("truncated", "lost", p[FAR] = block_of(104));
	if (ftruncate(fd, 4096))
		abort();
	p = map(memory_file("overwritten", SIZE), RW, MAP_SHARED);
	expect("overwritten", "lost", p[FAR] = block_of(104));
	p[FAR] = NULL;
	for (int i = 0; i < 20; i++)
		expect("lost", "lost", block_of(120));
}

static REACH_CASE void many(void)
{
	int fd = memory_file("many", 32 << 20), sparse = memory_file("sparse", 64ll << 30);
	void **p;

	for (int i = 0; i < 60; i++) {
		p = mmap(NULL, 32 << 20, RW, MAP_SHARED | MAP_POPULATE, fd, 0);
		if (p == MAP_FAILED)
			abort();
	}
	memset(p, 1, 32 << 20);
	p[FAR] = list_of("sixtieth");
	p = mmap(NULL, 64ll << 30, RW, MAP_SHARED | MAP_NORESERVE, sparse, 0);
	if (p == MAP_FAILED)
		abort();
	p[7ll << 30] = list_of("sparse");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pid_t child;

	without_files();
	if (strcmp(mode, "--many") == 0) {
		many();
	} else {
		written_before();
		on_disk(mode);
	}
	lost();
	child = fork();
	if (child < 0)
		abort();
	if (child) {
		waitpid(child, NULL, 0);
		return 0;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	wait_for_line();
	return 0;
}
