/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The threads of the processes to record, and stopping them.
 *
 * Events are opened one by one. A thread that is created meanwhile inherits the events that its
 * creator has so far, and misses the others. So the threads are listed again after the events were
 * opened. If the second list has a new task, the events are opened anew; the second time ptrace
 * stops the processes meanwhile (attach.c).
 */
#ifndef LEAKTOOLS_RECORDER_TASKS_H
#define LEAKTOOLS_RECORDER_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct task_list {
	pid_t *tids; /* threads of the recorded processes */
	size_t nr_tids;
	pid_t *children; /* their child processes */
	size_t nr_children;
};

/*
 * Lists the threads of @pids, ascending, without processes that have ended. Returns 0, -ESRCH if
 * none is left, -ENOMEM (nothing is reported). Release with task_list_deinit() in either case.
 */
int task_list_read(struct task_list *ret, const pid_t *pids, size_t nr_pids);
void task_list_deinit(struct task_list *list);

/* How many threads the processes have: 0 also if they cannot be listed. */
size_t task_list_count(const pid_t *pids, size_t nr_pids);

/* True if @now has a thread or a child that @before has not. */
bool task_list_has_grown(const struct task_list *before, const struct task_list *now);

/*
 * Threads that a child of this process, the holder, holds stopped by ptrace. It releases them on
 * request, when this process ends, or after a second, also if this process is stopped.
 */
struct task_hold {
	pid_t pid;
	int fd;
};

/*
 * Stops every thread of @pids, also new ones, except threads that have another tracer or that sleep
 * uninterruptibly. A thread that does not stop within 0.1 seconds stops later, when its system call
 * returns. Returns within a second: 0, even if no thread could be stopped, or -EINTR if a signal
 * asks this process to end. Call it while this process has one thread. Release with
 * task_hold_release() in either case.
 */
int task_hold_all(struct task_hold *ret, const pid_t *pids, size_t nr_pids);
void task_hold_release(struct task_hold *hold);

/*
 * Returns a task for perf events that only carry programs: a kernel thread if one is visible, else
 * @other. A program runs at every hit of the uprobe event, in whatever task. The perf event itself
 * puts breakpoints into its own task's memory (__uprobe_perf_filter(), kernel/trace/trace_uprobe.c,
 * 5.15 to 6.18, compares the task's mm), and a kernel thread has no memory. kthreadd, process 2 in
 * the first PID namespace, never ends and never borrows a process's memory.
 */
pid_t task_for_programs(pid_t other);

#endif
