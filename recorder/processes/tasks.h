/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The threads of the processes to record, and holding them still.
 *
 * Events are opened one by one. A thread that is created meanwhile inherits those that its creator
 * has so far, and misses the others. So the list is taken again after the events were opened: if it
 * names a task that it did not name before, the events are opened anew, the second time with the
 * processes held still by ptrace (attach.c).
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
 * Lists the threads of @pids, ascending. Processes that are gone are left out. Returns 0, -ESRCH if
 * none is left, -ENOMEM (nothing is reported). Release with task_list_deinit() in either case.
 */
int task_list_read(struct task_list *ret, const pid_t *pids, size_t nr_pids);
void task_list_deinit(struct task_list *list);

/* True if @now has a thread or a child that @before has not. */
bool task_list_has_grown(const struct task_list *before, const struct task_list *now);

/*
 * Threads held by ptrace, by a child of this process: it lets them go on when it is told to, when
 * this process ends, or after a second, also if this process is stopped.
 */
struct task_hold {
	pid_t pid;
	int fd;
};

/*
 * Stops every thread of @pids, new ones included. Threads that another tracer holds, or that sleep
 * uninterruptibly and so could not be waited for, are left alone. Returns 0 or -ENOMEM. Call it
 * while this process has one thread.
 */
int task_hold_all(struct task_hold *ret, const pid_t *pids, size_t nr_pids);
void task_hold_release(struct task_hold *hold);

/*
 * A task for perf events that only carry programs: a program runs at every hit of a uprobe event
 * that some perf event carries, whosever that is. It is a kernel thread where one can be seen, or
 * else @other. An event of a task puts breakpoints into the memory of that task
 * (__uprobe_perf_filter(), kernel/trace/trace_uprobe.c, 5.15 to 6.18, compares the task's mm), and
 * a kernel thread has none. kthreadd, which is 2 in the first pid namespace, never ends and never
 * borrows a process's memory either.
 */
pid_t task_for_programs(pid_t other);

#endif
