// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads that come and go all the time, and one that does not stop: it reads into a page of which
 * userfaultfd(2) never lets it have the contents. It sleeps interruptibly, but the fault happens
 * in the kernel, which tries it again after each interruption. Ends at SIGTERM.
 *
 * Prints for how long the main thread did not run: longest_stop_ms.
 */
#include "truth.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#define NR_CREATORS 8
#define LIFETIME_US 5000

static atomic_bool ended;

static void end(int signal)
{
	atomic_store(&ended, true);
}

static void *live_briefly(void *arg)
{
	usleep(LIFETIME_US);
	return NULL;
}

static void *create_threads(void *arg)
{
	pthread_t thread;

	while (pthread_create(&thread, NULL, live_briefly, NULL) == 0)
		pthread_join(thread, NULL);
	truth_die("restless_threads: cannot create a thread\n");
	return NULL;
}

static void *read_into(void *page)
{
	int fds[2];

	if (pipe(fds) || write(fds[1], "", 1) != 1 || read(fds[0], page, 1) != 1)
		truth_die("restless_threads: cannot read\n");
	return NULL;
}

/* A page whose faults wait for an answer, which never comes. */
static void *missing_page(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register missing = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	size_t size = (size_t)getpagesize();
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	missing.range = (struct uffdio_range){(uintptr_t)page, size};
	if (page == MAP_FAILED || fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &missing))
		truth_die("restless_threads: no userfaultfd\n");
	return page;
}

static void start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, arg))
		truth_die("restless_threads: cannot create a thread\n");
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static long longest_stop_ms(void)
{
	long last_ms = now_ms(), longest_ms = 0;

	while (!atomic_load(&ended)) {
		long ms;

		usleep(5000);
		ms = now_ms();
		if (ms - last_ms > longest_ms)
			longest_ms = ms - last_ms;
		last_ms = ms;
	}
	return longest_ms;
}

int main(int argc, char **argv)
{
	const struct sched_param priority = {.sched_priority = 1};
	sigset_t term;

	truth_init(argc, argv);
	/* Only for this thread. */
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	signal(SIGTERM, end);
	start(read_into, missing_page());
	/* So that threads come and go on busy CPUs, too; they do little. */
	if (sched_setscheduler(0, SCHED_RR, &priority))
		truth_die("restless_threads: no real-time priority\n");
	for (int i = 0; i < NR_CREATORS; i++)
		start(create_threads, NULL);
	sigprocmask(SIG_UNBLOCK, &term, NULL);
	truth_begin();
	truth_tell("longest_stop_ms", longest_stop_ms());
	_exit(0);
}
