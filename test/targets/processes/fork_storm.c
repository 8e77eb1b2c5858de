// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes that are forked in every way at once: --threads N (4) threads fork --forks N (10) times
 * each, at the same moment; the children fork, vfork and exec, posix_spawn, exec by system() and
 * simply work, in turn. --orphan: the first process only forks once and ends; its child does the
 * rest, and prints. --from-thread: a thread other than the first execs this program again, without
 * that option. --idle N: that many threads exist from the beginning, and do nothing.
 *
 * Exact, of all processes together: held blocks of 4000 bytes (each worker holds 4), of 4100 bytes
 * (1 each) and of 4200 bytes (2 in each program after an exec). No other blocks have these sizes.
 */
#include "truth.h"

#include <spawn.h>
#include <stdio.h>

#define MAX_THREADS 16

extern char **environ;

struct storm {
	_Atomic long nr_workers, nr_execed;
};

static struct storm *storm;
static long nr_forks;
static pthread_barrier_t go;
static char name[] = "fork_storm", fd_option[] = "--storm-fd", tell_option[] = "--tell";
static char shared_fd[24];
static char *execed_argv[] = {name, fd_option, shared_fd, NULL};

/* Only the process that made these blocks frees them. */
static void work(void)
{
	atomic_fetch_add(&storm->nr_workers, 1);
	for (int i = 0; i < 20; i++) {
		void *block = malloc(4000);

		if (i % 5)
			free(block);
	}
	if (!malloc(4100))
		truth_die("fork_storm: out of memory\n");
}

static void work_execed(void)
{
	atomic_fetch_add(&storm->nr_execed, 1);
	for (int i = 0; i < 6; i++) {
		void *block = malloc(4200);

		if (i % 3)
			free(block);
	}
}

static void wait_for(pid_t child)
{
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static void child(int way)
{
	char command[64];
	pid_t pid;

	switch (way % 5) {
	case 0:
		break;
	case 1: /* a child of the child */
		pid = fork();
		if (pid > 0)
			wait_for(pid);
		break;
	case 2:
		execv("/proc/self/exe", execed_argv);
		_exit(99);
	case 3:
		pid = vfork();
		if (pid == 0) {
			execv("/proc/self/exe", execed_argv);
			_exit(99);
		}
		wait_for(pid);
		break;
	case 4:
		snprintf(command, sizeof(command), "exec /proc/%d/exe --storm-fd %s", getpid(),
			 shared_fd);
		if (system(command) != 0)
			_exit(99);
		break;
	}
	work();
	_exit(0);
}

static void *fork_often(void *arg)
{
	pid_t pids[1024];
	int first = *(int *)arg;

	pthread_barrier_wait(&go);
	for (int i = 0; i < nr_forks && i < 1024; i++) {
		int way = first + i;

		if (way % 6 == 5) {
			if (posix_spawn(&pids[i], "/proc/self/exe", NULL, NULL, execed_argv,
					environ))
				truth_die("fork_storm: cannot spawn\n");
			continue;
		}
		pids[i] = fork();
		if (pids[i] < 0)
			truth_die("fork_storm: cannot fork\n");
		if (pids[i] == 0)
			child(way);
	}
	for (int i = 0; i < nr_forks && i < 1024; i++)
		wait_for(pids[i]);
	return NULL;
}

static void run_storm(long nr_threads)
{
	static struct truth_thread threads[MAX_THREADS];
	static int firsts[MAX_THREADS];

	pthread_barrier_init(&go, NULL, (unsigned int)nr_threads);
	for (long i = 0; i < nr_threads; i++) {
		firsts[i] = (int)i;
		truth_thread_start(&threads[i], fork_often, &firsts[i]);
	}
	for (long i = 0; i < nr_threads; i++)
		truth_thread_join(&threads[i]);
	work();
}

static void tell(void)
{
	long workers = atomic_load(&storm->nr_workers), execed = atomic_load(&storm->nr_execed);

	truth_tell("workers", workers);
	truth_tell("execed", execed);
	truth_tell("held_4000", 4 * workers);
	truth_tell("held_4100", workers);
	truth_tell("held_4200", 2 * execed);
}

static void *exec_anew(void *unused)
{
	char *argv[] = {name, fd_option, shared_fd, tell_option, NULL};

	(void)unused;
	execv("/proc/self/exe", argv);
	return NULL;
}

static void share(long fd)
{
	if (fd < 0)
		fd = memfd_create("storm", 0);
	if (fd < 0 || ftruncate((int)fd, sizeof(*storm)))
		truth_die("fork_storm: no shared memory\n");
	storm = mmap(NULL, sizeof(*storm), PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
	if (storm == MAP_FAILED)
		truth_die("fork_storm: no shared memory\n");
	snprintf(shared_fd, sizeof(shared_fd), "%ld", fd);
}

int main(int argc, char **argv)
{
	long fd = truth_option(argc, argv, "--storm-fd", -1);
	struct truth_thread thread;

	share(fd);
	if (fd >= 0) {
		work_execed();
		if (truth_flag(argc, argv, "--tell"))
			tell();
		return 0;
	}
	nr_forks = truth_option(argc, argv, "--forks", 10);
	truth_init(argc, argv);
	truth_start_idle(truth_option(argc, argv, "--idle", 0));
	truth_begin();
	if (truth_flag(argc, argv, "--from-thread")) {
		truth_thread_start(&thread, exec_anew, NULL);
		for (;;)
			pause();
	}
	/* As daemons do. */
	if (truth_flag(argc, argv, "--orphan") && fork() > 0)
		_exit(0);
	run_storm(truth_option(argc, argv, "--threads", 4));
	tell();
	return 0;
}
