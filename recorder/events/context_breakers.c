/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/events/context_breakers.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/scope.h"
#include "recorder/target_table/target_table.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uthash.h>

struct breaker {
	pid_t tid;
	int fds[2]; /* the event that no task inherits, the one that threads inherit */
	uint64_t opened_ns;
	UT_hash_handle hh;
};

static int open_dummy(pid_t tid, bool by_threads)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
		.inherit = by_threads,
		.inherit_thread = by_threads,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static struct breaker *find(const struct context_breakers *breakers, pid_t tid)
{
	struct breaker *breaker;

	HASH_FIND_INT(breakers->by_tid, &tid, breaker);
	return breaker;
}

static void drop(struct context_breakers *breakers, struct breaker *breaker)
{
	HASH_DEL(breakers->by_tid, breaker);
	for (size_t i = 0; i < ARRAY_SIZE(breaker->fds); i++)
		if (breaker->fds[i] >= 0)
			close(breaker->fds[i]);
	free(breaker);
}

int context_breakers_add(struct context_breakers *breakers, pid_t tid)
{
	struct breaker *breaker = calloc(1, sizeof(*breaker)), *old = find(breakers, tid);
	int err = 0;

	breakers->are_needed = true;
	if (!breaker)
		return -ENOMEM;
	*breaker = (struct breaker){.tid = tid, .fds = {-1, -1}, .opened_ns = clock_now_ns()};
	for (size_t i = 0; i < ARRAY_SIZE(breaker->fds) && !err; i++) {
		breaker->fds[i] = open_dummy(tid, i == 1);
		err = breaker->fds[i] < 0 ? breaker->fds[i] : 0;
	}
	/* It is of an earlier thread with that id, or from before an exec. */
	if (old)
		drop(breakers, old);
	HASH_ADD_INT(breakers->by_tid, tid, breaker);
	if (err)
		drop(breakers, breaker);
	return err;
}

void context_breakers_deinit(struct context_breakers *breakers)
{
	struct breaker *breaker, *next;

	HASH_ITER (hh, breakers->by_tid, breaker, next)
		drop(breakers, breaker);
	ring_buffer__free(breakers->requests);
	*breakers = (struct context_breakers){0};
}

/* Opens a breaker while recording. The thread may have ended. */
static int open_late(struct context_breakers *breakers, pid_t tid)
{
	int err = context_breakers_add(breakers, tid);

	if (err && err != -ESRCH && !breakers->error) {
		breakers->error = err;
		diag_warn("cannot protect the children of thread %d: %s", (int)tid, strerror(-err));
	}
	return err;
}

static void let_fork(struct target_table *table, unsigned int tgid)
{
	struct target *target = target_table_find(table, tgid);

	if (target && target_begin_opening(target))
		target_table_end_opening(table, target, true);
}

static int serve_request(void *context, void *data, size_t size)
{
	struct context_breakers *breakers = context;
	struct breaker_shared *shared = breakers->watch.shared;
	const struct breaker_request *request = data;
	int err;

	if (size < sizeof(*request))
		return 0;
	/* Before opening: another thread of the process may begin to wait meanwhile. */
	let_fork(breakers->watch.targets, request->tgid);
	err = open_late(breakers, (pid_t)request->tid);
	__atomic_store_n(&shared->answers[request->number & (BREAKER_MAX_ANSWERS - 1)],
			 request->number << 1 | (err ? BREAKER_REFUSED : BREAKER_OPEN),
			 __ATOMIC_RELEASE);
	return 0;
}

int context_breakers_watch(struct context_breakers *breakers, const struct clone_watch *watch)
{
	breakers->watch = *watch;
	if (watch->requests_fd < 0)
		return 0;
	breakers->requests = ring_buffer__new(watch->requests_fd, serve_request, breakers, NULL);
	return breakers->requests ? 0 : -ENOMEM;
}

int context_breakers_fd(const struct context_breakers *breakers)
{
	return breakers->requests ? breakers->watch.requests_fd : -1;
}

void context_breakers_serve(struct context_breakers *breakers)
{
	if (breakers->requests)
		ring_buffer__consume(breakers->requests);
}

void context_breakers_handle_task(struct context_breakers *breakers,
				  const struct perf_disk_task *task)
{
	bool is_exit = task->header.type == PERF_RECORD_EXIT;
	struct breaker *breaker = find(breakers, is_exit ? (pid_t)task->tid : (pid_t)task->ptid);

	if (is_exit) {
		/* Keep the breaker of a later thread with this id. */
		if (breaker && breaker->opened_ns < task->time_ns)
			drop(breakers, breaker);
		return;
	}
	/* Without programs, it is too late for this task, but not for the thread's next one. */
	if (breakers->requests || !breakers->are_needed || breaker ||
	    (task->pid != task->ppid && task->ptid != task->ppid))
		return;
	breakers->nr_unguarded++;
	open_late(breakers, (pid_t)task->ptid);
}

uint64_t context_breakers_nr_unguarded(const struct context_breakers *breakers)
{
	return breakers->requests ? breakers->watch.shared->nr_unguarded : breakers->nr_unguarded;
}
