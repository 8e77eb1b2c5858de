/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/tasks.h"

#include "common/clock.h"
#include "common/interrupted.h"
#include "common/scope.h"
#include "common/proc/living_thread.h"
#include "common/proc/process_stat.h"
#include "common/proc/proc_file.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#define MAX_HOLD_US 900000
#define MAX_WAIT_NS 1000000000ULL /* for the holder, which may not keep its limit */
#define MAX_STOP_NS 100000000ULL
#define POLL_NS	    200000
#define SIGNALS_MS  10 /* between two looks for signals */

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

static int append(pid_t **pids, size_t *nr, pid_t pid)
{
	/* Grow by doubling, whenever the number is a power of two. */
	if ((*nr & (*nr - 1)) == 0) {
		pid_t *grown = reallocarray(*pids, *nr ? *nr * 2 : 1, sizeof(**pids));

		if (!grown)
			return -ENOMEM;
		*pids = grown;
	}
	(*pids)[(*nr)++] = pid;
	return 0;
}

/* Adds the children of a thread. Without CONFIG_PROC_CHILDREN the kernel does not show them. */
static int append_children(struct task_list *list, pid_t pid, pid_t tid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char name[32];
	int child, err = 0;

	snprintf(name, sizeof(name), "task/%d/children", tid);
	f = proc_file_open(pid, name);
	while (f && !err && fscanf(f, "%d", &child) == 1)
		err = append(&list->children, &list->nr_children, child);
	return err;
}

static int append_process(struct task_list *list, pid_t pid)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[PROC_FILE_PATH_SIZE];
	int err = 0;

	proc_file_path(path, pid, "task");
	dir = opendir(path);
	while (dir && !err && (entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		/* The first thread stays in the list when it has ended before others. */
		if (tid != pid || living_thread(pid) == pid)
			err = append(&list->tids, &list->nr_tids, tid);
		if (!err)
			err = append_children(list, pid, tid);
	}
	return err;
}

int task_list_read(struct task_list *ret, const pid_t *pids, size_t nr_pids)
{
	*ret = (struct task_list){0};
	for (size_t i = 0; i < nr_pids; i++) {
		int err = append_process(ret, pids[i]);

		if (err)
			return err;
	}
	if (!ret->nr_tids)
		return -ESRCH;
	qsort(ret->tids, ret->nr_tids, sizeof(*ret->tids), compare_pids);
	if (ret->nr_children)
		qsort(ret->children, ret->nr_children, sizeof(*ret->children), compare_pids);
	return 0;
}

void task_list_deinit(struct task_list *list)
{
	free(list->tids);
	free(list->children);
	*list = (struct task_list){0};
}

size_t task_list_count(const pid_t *pids, size_t nr_pids)
{
	struct task_list tasks;
	size_t nr = task_list_read(&tasks, pids, nr_pids) ? 0 : tasks.nr_tids;

	task_list_deinit(&tasks);
	return nr;
}

static bool all_in(const pid_t *pids, size_t nr, const pid_t *in, size_t nr_in)
{
	for (size_t i = 0; i < nr; i++)
		if (!nr_in || !bsearch(&pids[i], in, nr_in, sizeof(*in), compare_pids))
			return false;
	return true;
}

bool task_list_has_grown(const struct task_list *before, const struct task_list *now)
{
	return !all_in(now->tids, now->nr_tids, before->tids, before->nr_tids) ||
	       !all_in(now->children, now->nr_children, before->children, before->nr_children);
}

/* Tells a thread to stop. Returns false if it has ended or cannot be stopped. */
static bool interrupt(pid_t tid)
{
	struct process_stat task;

	return !process_stat_read(tid, &task) && !strchr("DZX", task.state) &&
	       ptrace(PTRACE_SEIZE, tid, 0, 0) == 0 && ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0;
}

/* Threads that this process, a child of the recorder, holds stopped. */
struct held_tasks {
	pid_t *tids;
	size_t nr;
};

static bool is_held(const struct held_tasks *held, pid_t tid)
{
	for (size_t i = 0; i < held->nr; i++)
		if (held->tids[i] == tid)
			return true;
	return false;
}

/*
 * Waits until the thread has stopped or ended, at most until @end_ns. A call that signals do not
 * interrupt may take longer. The thread then stops when the call returns, before it can create
 * another thread. Its status is left in place: if that is a signal, the kernel delivers it when
 * this process ends.
 */
static void wait_for_stop(pid_t tid, uint64_t end_ns)
{
	const int what = WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL;
	const struct timespec pause = {.tv_nsec = POLL_NS};
	siginfo_t info = {0};

	while (waitid(P_PID, (id_t)tid, &info, what) == 0 && !info.si_pid &&
	       clock_now_ns() < end_ns)
		nanosleep(&pause, NULL);
}

/* Stops the threads of @list that are not stopped yet. Returns how many, or -ENOMEM. */
static int hold_more(struct held_tasks *held, const struct task_list *list)
{
	size_t first = held->nr;
	uint64_t end_ns;

	for (size_t i = 0; i < list->nr_tids; i++)
		if (!is_held(held, list->tids[i]) && interrupt(list->tids[i]) &&
		    append(&held->tids, &held->nr, list->tids[i]))
			return -ENOMEM;
	end_ns = clock_now_ns() + MAX_STOP_NS;
	for (size_t i = first; i < held->nr; i++)
		wait_for_stop(held->tids[i], end_ns);
	return (int)(held->nr - first);
}

/*
 * Holds the threads until the recorder ends this process or itself, at most for MAX_HOLD_US. The
 * end of this process releases them.
 */
static void __attribute__((noreturn)) hold_and_wait(int fd, const pid_t *pids, size_t nr_pids)
{
	const struct itimerval limit = {.it_value.tv_usec = MAX_HOLD_US};
	struct pollfd recorder = {.fd = fd, .events = POLLIN};
	struct held_tasks held = {0};
	sigset_t all;
	int more = 1;

	/*
	 * Signals from the recorder's terminal must not end or stop this process. SIGALRM ends it
	 * even in ptrace(), which waits while the target executes a program.
	 */
	sigfillset(&all);
	sigdelset(&all, SIGALRM);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setitimer(ITIMER_REAL, &limit, NULL);
	setsid();
	/* A running thread may create another: repeat until a list shows none running. */
	while (more > 0) {
		struct task_list list;

		more = task_list_read(&list, pids, nr_pids);
		if (!more)
			more = hold_more(&held, &list);
		task_list_deinit(&list);
	}
	if (more != -ENOMEM && write(fd, "", 1) == 1)
		poll(&recorder, 1, -1);
	_exit(0);
}

/* Waits for the holder's byte, or its end. Returns false if a signal or the limit comes first. */
static bool wait_for_holder(int fd)
{
	uint64_t end_ns = clock_now_ns() + MAX_WAIT_NS;
	struct pollfd holder = {.fd = fd, .events = POLLIN};

	while (poll(&holder, 1, SIGNALS_MS) == 0)
		if (is_interrupted() || clock_now_ns() >= end_ns)
			return false;
	return true;
}

int task_hold_all(struct task_hold *ret, const pid_t *pids, size_t nr_pids)
{
	int fds[2];

	*ret = (struct task_hold){.pid = -1, .fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return 0;
	ret->fd = fds[0];
	ret->pid = fork();
	if (ret->pid == 0) {
		close(fds[0]);
		hold_and_wait(fds[1], pids, nr_pids);
	}
	close(fds[1]);
	if (ret->pid < 0 || !wait_for_holder(ret->fd))
		task_hold_release(ret);
	return is_interrupted() ? -EINTR : 0;
}

void task_hold_release(struct task_hold *hold)
{
	if (hold->fd >= 0)
		close(hold->fd);
	if (hold->pid > 0) {
		/* It may be stopped, or wait in ptrace(). */
		kill(hold->pid, SIGKILL);
		while (waitpid(hold->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*hold = (struct task_hold){.pid = -1, .fd = -1};
}

pid_t task_for_programs(pid_t other)
{
	const pid_t kthreadd = 2;
	struct process_stat status;

	return process_stat_read(kthreadd, &status) == 0 && status.kernel_thread ? kthreadd : other;
}
