/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/thread_stop.h"

#include "common/clock.h"
#include "common/proc/process_stat.h"
#include "common/scope.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define POLL_NS 200000

static int compare(const void *a, const void *b)
{
	const struct stopped_thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* True if an earlier list had this thread. */
static bool is_stopped(const struct thread_stop *stop, pid_t tid)
{
	const struct stopped_thread key = {.tid = tid};

	return stop->nr_sorted &&
	       bsearch(&key, stop->threads, stop->nr_sorted, sizeof(key), compare);
}

/* A list that changes while it is read may name a thread twice. */
static bool is_repeated(const struct thread_stop *stop, pid_t tid)
{
	for (size_t i = stop->nr_sorted; i < stop->nr; i++)
		if (stop->threads[i].tid == tid)
			return true;
	return false;
}

/*
 * Waits until the thread stops. Returns 1; 0 if it has ended; -ETIMEDOUT. It is not waited for in
 * the kernel, because a thread in an uninterruptible call would never answer. The stop is not taken
 * from the kernel, which would forget the signal: it delivers that if this process is killed.
 */
static int wait_for(pid_t tid, uint64_t end_ns, int *ret_signal)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};

	for (;;) {
		siginfo_t info = {.si_pid = 0};

		if (waitid(P_PID, (id_t)tid, &info,
			   __WALL | WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0)
			return 0;
		if (info.si_pid == tid && info.si_code != CLD_TRAPPED) {
			waitpid(tid, NULL, __WALL | WNOHANG);
			return 0;
		}
		if (info.si_pid == tid) {
			/* A stop other than PTRACE_EVENT_STOP is a signal: it must not get lost. */
			*ret_signal = info.si_status >> 8 ? 0 : info.si_status;
			return 1;
		}
		if (clock_now_ns() >= end_ns)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
}

static int append(struct thread_stop *stop, pid_t tid)
{
	if ((stop->nr & (stop->nr - 1)) == 0) {
		struct stopped_thread *grown =
			reallocarray(stop->threads, stop->nr ? stop->nr * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		stop->threads = grown;
	}
	stop->threads[stop->nr++] = (struct stopped_thread){.tid = tid};
	return 0;
}

/* Asks the thread to stop. Returns 1 if the list may not be complete, 0, or a negative errno. */
static int interrupt(struct thread_stop *stop, pid_t tid)
{
	struct process_stat stat;
	int err;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0) {
		err = -errno;
		/*
		 * An ended thread cannot be seized. It may have created another that the list does
		 * not have; but the leader is listed until all end.
		 */
		if (err == -ESRCH || process_stat_read(tid, &stat) || strchr("ZX", stat.state))
			return tid != stop->pid;
		return err == -EPERM && is_repeated(stop, tid) ? 0 : err;
	}
	err = append(stop, tid);
	if (err || ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0) {
		ptrace(PTRACE_DETACH, tid, 0, 0);
		return err ? err : 1; /* it has just ended */
	}
	return 1;
}

/* Interrupts the threads that no earlier list had. Returns 0 if there was none, or an error. */
static int interrupt_new(struct thread_stop *stop, uint64_t end_ns)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[32];
	int nr = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", stop->pid);
	dir = opendir(path);
	if (!dir)
		return -ESRCH;
	while ((entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		int err = tid > 0 && !is_stopped(stop, tid) ? interrupt(stop, tid) : 0;

		if (err < 0)
			return err;
		nr += err;
		if (clock_now_ns() >= end_ns)
			return -ETIMEDOUT;
	}
	return nr;
}

/*
 * Waits for the threads from @first on; forgets those that ended. Also after the end of the time,
 * each is asked once: one that has stopped may have a signal.
 */
static int wait_for_new(struct thread_stop *stop, size_t first, uint64_t end_ns)
{
	size_t kept = first;
	int err = 0;

	for (size_t i = first; i < stop->nr; i++) {
		struct stopped_thread *thread = &stop->threads[i];
		int state = wait_for(thread->tid, end_ns, &thread->signal);

		if (state < 0 && !err) {
			err = state;
			stop->late = thread->tid;
		}
		thread->has_stopped = state > 0;
		if (state)
			stop->threads[kept++] = *thread;
	}
	stop->nr = kept;
	return err;
}

int thread_stop_all(struct thread_stop *ret, pid_t pid, uint64_t end_ns)
{
	int more;

	*ret = (struct thread_stop){.pid = pid};
	/* A running thread may create another: repeat until a list shows no new one. */
	do {
		size_t first = ret->nr;
		int err;

		more = interrupt_new(ret, end_ns);
		err = wait_for_new(ret, first, end_ns);
		if (ret->nr)
			qsort(ret->threads, ret->nr, sizeof(*ret->threads), compare);
		ret->nr_sorted = ret->nr;
		if (more < 0 || err)
			return more < 0 ? more : err;
	} while (more > 0);
	return ret->nr ? 0 : -ESRCH;
}

int thread_stop_read_registers(const struct thread_stop *stop, struct snapshot *snapshot,
			       uint64_t end_ns)
{
	snapshot->threads = calloc(stop->nr, sizeof(*snapshot->threads));
	if (!snapshot->threads)
		return -ENOMEM;
	for (size_t i = 0; i < stop->nr; i++) {
		struct scan_thread *thread = &snapshot->threads[snapshot->nr_threads];
		int err = clock_now_ns() >= end_ns
				  ? -ETIMEDOUT
				  : thread_registers_read(stop->threads[i].tid, &thread->registers);

		/* SIGKILL ends threads also while they are stopped. */
		if (err)
			return err;
		thread->tid = stop->threads[i].tid;
		snapshot->nr_threads++;
	}
	return 0;
}

void thread_stop_release(struct thread_stop *stop)
{
	/* What signal another one may just be given is not known; the kernel keeps that. */
	for (size_t i = 0; i < stop->nr; i++)
		if (stop->threads[i].has_stopped)
			ptrace(PTRACE_DETACH, stop->threads[i].tid, 0, stop->threads[i].signal);
	free(stop->threads);
	*stop = (struct thread_stop){0};
}
