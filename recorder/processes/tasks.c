/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/tasks.h"

#include "common/clock.h"
#include "common/scope.h"
#include "common/proc/process_stat.h"
#include "common/proc/proc_file.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define MAX_HOLD_NS 900000000ULL

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

struct held_task {
	pid_t tid;
	int signal; /* the signal that it was about to receive; delivered when it is released */
};

/* Seizes and stops one thread. Returns false if it has ended or cannot be stopped. */
static bool hold_one(pid_t tid, struct held_task *ret)
{
	struct process_stat task;
	int status;

	if (process_stat_read(tid, &task) || strchr("DZX", task.state) ||
	    ptrace(PTRACE_SEIZE, tid, 0, 0) < 0)
		return false;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || waitpid(tid, &status, __WALL) != tid ||
	    !WIFSTOPPED(status)) {
		ptrace(PTRACE_DETACH, tid, 0, 0);
		return false;
	}
	/* A stop other than PTRACE_EVENT_STOP is a signal, which must not get lost. */
	*ret = (struct held_task){tid, status >> 16 ? 0 : WSTOPSIG(status)};
	return true;
}

/* Threads that this process, a child of the recorder, holds stopped. */
struct held_tasks {
	struct held_task *tasks;
	size_t nr;
};

static bool is_held(const struct held_tasks *held, pid_t tid)
{
	for (size_t i = 0; i < held->nr; i++)
		if (held->tasks[i].tid == tid)
			return true;
	return false;
}

static void release_one(const struct held_task *task)
{
	ptrace(PTRACE_DETACH, task->tid, 0, task->signal);
}

/* Stops the threads of @list that are not stopped yet. Returns how many, or -ENOMEM. */
static int hold_more(struct held_tasks *held, const struct task_list *list, uint64_t end_ns)
{
	int nr = 0;

	for (size_t i = 0; i < list->nr_tids && clock_now_ns() < end_ns; i++) {
		struct held_task task, *grown;

		if (is_held(held, list->tids[i]) || !hold_one(list->tids[i], &task))
			continue;
		grown = reallocarray(held->tasks, held->nr + 1, sizeof(*grown));
		if (!grown) {
			release_one(&task);
			return -ENOMEM;
		}
		held->tasks = grown;
		held->tasks[held->nr++] = task;
		nr++;
	}
	return nr;
}

/* Holds the threads until the recorder closes its end of @fd, at most for MAX_HOLD_NS. */
static void __attribute__((noreturn)) hold_and_wait(int fd, const pid_t *pids, size_t nr_pids)
{
	uint64_t end_ns = clock_now_ns() + MAX_HOLD_NS, now_ns;
	struct pollfd recorder = {.fd = fd, .events = POLLIN};
	struct held_tasks held = {0};
	sigset_t all;
	int more = 1;

	/* Signals from the recorder's terminal must not end or stop this process. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	/* A running thread may create another: repeat until a list shows none running. */
	while (more > 0) {
		struct task_list list;

		more = task_list_read(&list, pids, nr_pids);
		if (!more)
			more = hold_more(&held, &list, end_ns);
		task_list_deinit(&list);
	}
	now_ns = clock_now_ns();
	if (more != -ENOMEM && write(fd, "", 1) == 1 && now_ns < end_ns)
		poll(&recorder, 1, (int)((end_ns - now_ns) / 1000000));
	for (size_t i = 0; i < held.nr; i++)
		release_one(&held.tasks[i]);
	_exit(0);
}

int task_hold_all(struct task_hold *ret, const pid_t *pids, size_t nr_pids)
{
	int fds[2];
	char byte;

	*ret = (struct task_hold){.pid = -1, .fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	ret->fd = fds[0];
	ret->pid = fork();
	if (ret->pid == 0) {
		close(fds[0]);
		hold_and_wait(fds[1], pids, nr_pids);
	}
	close(fds[1]);
	if (ret->pid > 0 && read(ret->fd, &byte, 1) == 1)
		return 0;
	task_hold_release(ret);
	return -ENOMEM;
}

void task_hold_release(struct task_hold *hold)
{
	if (hold->fd >= 0)
		close(hold->fd);
	while (hold->pid > 0 && waitpid(hold->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*hold = (struct task_hold){.pid = -1, .fd = -1};
}

pid_t task_for_programs(pid_t other)
{
	const pid_t kthreadd = 2;
	struct process_stat status;

	return process_stat_read(kthreadd, &status) == 0 && status.kernel_thread ? kthreadd : other;
}
