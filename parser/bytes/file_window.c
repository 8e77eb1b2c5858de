/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/bytes/file_window.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* For the signal handler, which gets only an address. */
static struct file_window *windows;
static struct sigaction previous_action;

bool file_window_may_map(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (st.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
	       (st.st_uid == 0 || st.st_uid == geteuid());
}

static uint64_t page_start(uint64_t place)
{
	return place & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

/* Maps zeros where the file has nothing. mmap() is only a system call, so it is safe here. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	uintptr_t page = page_start((uintptr_t)info->si_addr);
	int saved_errno = errno;

	(void)context;
	for (struct file_window *window = windows; window; window = window->next) {
		size_t at = page - (uintptr_t)window->bytes;

		if (at >= window->size_bytes) /* or before it */
			continue;
		*window->is_cut = true;
		if (mmap(window->bytes + at, window->size_bytes - at, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
			errno = saved_errno;
			return;
		}
		break;
	}
	/* The access repeats at once, with the previous action. */
	sigaction(number, &previous_action, NULL);
}

/* Installed for each window, because others may have installed theirs since. */
static void catch_bus_errors(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO}, previous;

	sigemptyset(&action.sa_mask);
	if (sigaction(SIGBUS, &action, &previous) == 0 && previous.sa_sigaction != on_bus_error)
		previous_action = previous;
}

int file_window_map(struct file_window *window, int fd, uint64_t offset, uint64_t end,
		    size_t size_bytes, volatile sig_atomic_t *is_cut)
{
	uint64_t start = page_start(offset);
	void *bytes;

	if (size_bytes < end - offset)
		end = offset + size_bytes;
	bytes = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, (off_t)start);
	if (bytes == MAP_FAILED)
		return -errno;
	catch_bus_errors();
	*window = (struct file_window){
		.bytes = bytes,
		.size_bytes = end - start,
		.offset = start,
		.is_cut = is_cut,
		.next = windows,
	};
	windows = window;
	return 0;
}

void file_window_unmap(struct file_window *window)
{
	struct file_window **link = &windows;

	if (!window->bytes)
		return;
	while (*link != window)
		link = &(*link)->next;
	*link = window->next;
	munmap(window->bytes, window->size_bytes);
	window->bytes = NULL;
}
