/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/memory_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* --- The thread --- */

struct read_thread {
	pthread_t thread;
	sem_t has_begun, is_done;
	bool is_busy;			  /* until somebody has waited for it */
	void (*function)(void *argument); /* NULL: end */
	void *argument;
};

static void *run(void *argument)
{
	struct read_thread *thread = argument;

	close_range(0, UINT_MAX, CLOSE_RANGE_UNSHARE);
	for (;;) {
		while (sem_wait(&thread->has_begun))
			;
		if (!thread->function)
			return NULL;
		thread->function(thread->argument);
		sem_post(&thread->is_done);
	}
}

struct read_thread *read_thread_create(void)
{
	struct read_thread *thread = calloc(1, sizeof(*thread));
	sigset_t all, before;
	int err;

	if (!thread)
		return NULL;
	sem_init(&thread->has_begun, 0, 0);
	sem_init(&thread->is_done, 0, 0);
	/* Signals are for the main thread: a handler must not run while that does its work. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread->thread, NULL, run, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		free(thread);
		return NULL;
	}
	return thread;
}

bool read_thread_destroy(struct read_thread *thread)
{
	if (!thread)
		return true;
	if (!read_thread_wait(thread, 0)) {
		/* It uses its memory, which is lost. */
		pthread_detach(thread->thread);
		return false;
	}
	read_thread_begin(thread, NULL, NULL);
	pthread_join(thread->thread, NULL);
	free(thread);
	return true;
}

void read_thread_begin(struct read_thread *thread, void (*function)(void *argument), void *argument)
{
	thread->function = function;
	thread->argument = argument;
	thread->is_busy = true;
	sem_post(&thread->has_begun);
}

bool read_thread_wait(struct read_thread *thread, uint64_t limit_ns)
{
	struct timespec deadline;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	limit_ns += (uint64_t)deadline.tv_nsec;
	deadline.tv_sec += (time_t)(limit_ns / 1000000000);
	deadline.tv_nsec = (long)(limit_ns % 1000000000);
	while (thread->is_busy && sem_clockwait(&thread->is_done, CLOCK_MONOTONIC, &deadline))
		if (errno != EINTR)
			return false;
	thread->is_busy = false;
	return true;
}

/* --- What it does --- */

/* Bits of an entry (Documentation/admin-guide/mm/pagemap.rst). */
#define PAGE_IS_PRESENT (1ULL << 63)
#define PAGE_IS_SWAPPED (1ULL << 62)
#define PAGE_IS_FILES	(1ULL << 61) /* or shared memory's */
#define PAGE_IS_OWN	(1ULL << 56) /* no other process has it */

/* struct procmap_query, uapi/linux/fs.h (Linux 6.11) */
struct mapping_query {
	uint64_t size, flags, address; /* 0: the mapping with the address */
	uint64_t start, end, permissions, page_size, offset, inode;
	uint32_t device[2];
	uint32_t name_size, build_id_size;
	uint64_t name, build_id;
};

#define QUERY_MAPPING _IOWR('f', 17, struct mapping_query)

static int open_file_of(pid_t pid, const char *name)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int memory_reader_open(struct memory_reader *reader, pid_t pid)
{
	if (reader->pid == pid)
		return 0;
	memory_reader_close(reader);
	reader->pagemap = open_file_of(pid, "pagemap");
	if (reader->pagemap < 0)
		return reader->pagemap;
	reader->maps = open_file_of(pid, "maps");
	reader->mem = open_file_of(pid, "mem");
	reader->pid = pid;
	return 0;
}

void memory_reader_close(struct memory_reader *reader)
{
	if (reader->pid) {
		close(reader->pagemap);
		close(reader->maps);
		close(reader->mem);
	}
	reader->pid = 0;
}

/* The entry of the page at @address; 0: there is nothing, or it cannot be read. */
static uint64_t read_page(const struct memory_reader *reader, uint64_t address)
{
	uint64_t entry;
	off_t at = (off_t)(address / (uint64_t)getpagesize() * sizeof(entry));

	return pread(reader->pagemap, &entry, sizeof(entry), at) == sizeof(entry) ? entry : 0;
}

ssize_t memory_reader_read(const struct memory_reader *reader, uint64_t address, void *to,
			   size_t bytes)
{
	const uint64_t page_bytes = (uint64_t)getpagesize();
	size_t nr = 0;
	struct iovec local = {to, 0}, remote;
	uint64_t entry;
	bool is_shared = false;
	ssize_t err;

	while (nr < bytes && (entry = read_page(reader, address + nr)) & PAGE_IS_PRESENT) {
		is_shared |= !(entry & (PAGE_IS_OWN | PAGE_IS_FILES));
		nr += page_bytes - (address + nr) % page_bytes;
	}
	if (!nr)
		return 0;
	local.iov_len = nr < bytes ? nr : bytes;
	/*
	 * process_vm_readv() would give the process a copy of what it shares since a fork(), and
	 * split huge pages. mem holds a lock while it waits for a page, which may be a file's.
	 */
	if (is_shared && reader->mem >= 0) {
		err = pread(reader->mem, to, local.iov_len, (off_t)address);
		return err >= 0 ? err : errno == EIO ? -EFAULT : -errno;
	}
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the process */
	remote = (struct iovec){(void *)(uintptr_t)address, local.iov_len};
	err = process_vm_readv(reader->pid, &local, 1, &remote, 1, 0);
	return err < 0 ? -errno : err;
}

enum memory_absence memory_reader_absence(const struct memory_reader *reader, uint64_t address)
{
	struct mapping_query query = {.size = sizeof(query), .address = address};

	if (ioctl(reader->maps, QUERY_MAPPING, &query) < 0)
		return errno == ENOENT ? MEMORY_UNMAPPED : MEMORY_ELSEWHERE;
	/* Shared memory without a name has an inode, too. */
	return query.inode || read_page(reader, address) & (PAGE_IS_PRESENT | PAGE_IS_SWAPPED)
		       ? MEMORY_ELSEWHERE
		       : MEMORY_ZERO;
}
