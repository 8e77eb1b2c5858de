/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/cut_file.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static _Thread_local volatile sig_atomic_t depth; /* of calls of cut_file_begin() */
static struct sigaction previous_action;
static size_t page_size;

/* Maps zeros over the page. mmap() is only a system call, so it is safe in a signal handler. */
static bool map_zeros(void *address)
{
	void *page = (char *)address - (uintptr_t)address % page_size;

	return mmap(page, page_size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/*
 * Leaves the signal to the previous action. That may leave it to this one again
 * (parser/bytes/file_window.c): an address that comes twice ends the process.
 */
static void pass_on(int number, siginfo_t *info, void *context)
{
	static _Thread_local void *volatile last;

	if ((previous_action.sa_flags & SA_SIGINFO) && info->si_addr != last) {
		last = info->si_addr;
		previous_action.sa_sigaction(number, info, context);
	} else {
		/* The access repeats at once. */
		sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	}
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	if (!depth || !map_zeros(info->si_addr))
		pass_on(number, info, context);
	errno = saved_errno;
}

void cut_file_catch(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO}, previous;

	page_size = (size_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGBUS, &action, &previous) == 0 && previous.sa_sigaction != on_bus_error)
		previous_action = previous;
}

void cut_file_begin(void)
{
	depth++;
}

void cut_file_end(void)
{
	depth--;
}
