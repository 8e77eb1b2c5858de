/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/tasks.h"

#include "common/scope.h"
#include "probes/process_status.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

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

/* The child processes of one thread; a kernel without CONFIG_PROC_CHILDREN does not tell. */
static int append_children(struct task_list *list, pid_t pid, pid_t tid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64];
	int child, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
	f = fopen(path, "re");
	while (f && !err && fscanf(f, "%d", &child) == 1)
		err = append(&list->children, &list->nr_children, child);
	return err;
}

static int append_process(struct task_list *list, pid_t pid)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[32];
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
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

/* The state letter of a thread (proc(5)), or 0 if it is gone. */
static char task_state(pid_t tid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[512];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		return 0;
	/* The command name before it may hold any character. */
	end = strrchr(line, ')');
	return end && end[1] == ' ' ? end[2] : 0;
}

/* Seizes and stops one thread. False if it is gone or not to be held. */
static bool hold_one(pid_t tid, struct held_task *ret)
{
	char state = task_state(tid);
	int status;

	if (!state || strchr("DZX", state) || ptrace(PTRACE_SEIZE, tid, 0, 0) < 0)
		return false;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || waitpid(tid, &status, __WALL) != tid ||
	    !WIFSTOPPED(status)) {
		ptrace(PTRACE_DETACH, tid, 0, 0);
		return false;
	}
	/* A stop that is not PTRACE_EVENT_STOP is a signal on its way: not ours to swallow. */
	*ret = (struct held_task){tid, status >> 16 ? 0 : WSTOPSIG(status)};
	return true;
}

static bool is_held(const struct task_hold *hold, pid_t tid)
{
	for (size_t i = 0; i < hold->nr_tasks; i++)
		if (hold->tasks[i].tid == tid)
			return true;
	return false;
}

static void release_one(const struct held_task *task)
{
	ptrace(PTRACE_DETACH, task->tid, 0, task->signal);
}

/* Holds the threads of @list that are not held yet. Returns how many, or -ENOMEM. */
static int hold_more(struct task_hold *hold, const struct task_list *list)
{
	int nr = 0;

	for (size_t i = 0; i < list->nr_tids; i++) {
		struct held_task task, *grown;

		if (is_held(hold, list->tids[i]) || !hold_one(list->tids[i], &task))
			continue;
		grown = reallocarray(hold->tasks, hold->nr_tasks + 1, sizeof(*grown));
		if (!grown) {
			release_one(&task);
			return -ENOMEM;
		}
		hold->tasks = grown;
		hold->tasks[hold->nr_tasks++] = task;
		nr++;
	}
	return nr;
}

int task_hold_all(struct task_hold *ret, const pid_t *pids, size_t nr_pids)
{
	int more = 1;

	*ret = (struct task_hold){0};
	/* A thread that still runs may create another: go on until a look finds none running. */
	while (more > 0) {
		struct task_list list;

		more = task_list_read(&list, pids, nr_pids);
		if (!more)
			more = hold_more(ret, &list);
		task_list_deinit(&list);
	}
	if (more == -ENOMEM)
		task_hold_release(ret);
	return more == -ENOMEM ? -ENOMEM : 0;
}

void task_hold_release(struct task_hold *hold)
{
	for (size_t i = 0; i < hold->nr_tasks; i++)
		release_one(&hold->tasks[i]);
	free(hold->tasks);
	*hold = (struct task_hold){0};
}

pid_t task_for_programs(pid_t other)
{
	const pid_t kthreadd = 2;
	struct process_status status;

	return process_status_read(kthreadd, &status) == 0 && status.kernel_thread ? kthreadd
										   : other;
}
