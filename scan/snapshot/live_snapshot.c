/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/live_snapshot.h"

#include "scan/snapshot/address_regions.h"
#include "scan/snapshot/kernel_pointers.h"
#include "scan/snapshot/memory_copy.h"
#include "scan/snapshot/pause_guard.h"
#include "scan/snapshot/sleeping_threads.h"
#include "scan/snapshot/thread_stop.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/proc/cgroup.h"
#include "common/proc/living_thread.h"
#include "common/proc/proc_file.h"
#include "common/proc/process_memory.h"
#include "common/proc/process_stat.h"
#include "common/proc/process_status.h"
#include "common/quantity.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

/* The niceness of the tracing thread while it makes another one wait. */
#define PAUSE_NICE (-20)

/* How long a process is given to fall asleep. */
#define SLEEP_POLL_NS	1000000
#define MAX_SLEEP_POLLS 10

/* A snapshot while it is taken. */
struct taking {
	struct snapshot *snapshot;
	struct address_regions prepared, regions;
	struct thread_stop stop;
	struct sleeping_threads threads;
	int pagemap_fd;
	bool is_begun; /* memory was copied, or may have been */
	uint64_t start_ns, end_ns, limit_ns;
	int err;
	pid_t late; /* the thread that did not stop, or 0 */
};

int live_snapshot_check(pid_t *pid)
{
	struct process_status status;
	struct process_stat stat;
	pid_t tracer;
	int err = process_status_read(*pid, &status);

	if (!err)
		err = process_stat_read(status.tgid, &stat);
	if (err) {
		diag_error("cannot scan process %d: %s", *pid,
			   err == -ESRCH ? "there is no such process" : strerror(-err));
		return err;
	}
	*pid = status.tgid;
	if (*pid == getpid()) {
		diag_error("cannot scan process %d: that is leakscan itself", *pid);
		return -EINVAL;
	}
	if (stat.kernel_thread) {
		diag_error("cannot scan process %d: it is a kernel thread and has no heap", *pid);
		return -EINVAL;
	}
	if (process_stat_is_dead(&stat)) {
		diag_error("cannot scan process %d: it has ended, its parent has not waited for it",
			   *pid);
		return -ESRCH;
	}
	tracer = process_status_tracer(*pid);
	if (tracer > 0) {
		diag_error(
			"cannot scan process %d: process %d is tracing it (a debugger, strace?); "
			"detach that, or write a core file with it and scan that by --core",
			*pid, tracer);
		return -EBUSY;
	}
	return 0;
}

static int open_files(struct taking *taking)
{
	struct snapshot *snapshot = taking->snapshot;
	pid_t thread = living_thread(snapshot->pid);
	char path[40];
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", thread);
	snapshot->mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (snapshot->mem_fd < 0)
		err = -errno;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", thread);
	taking->pagemap_fd = err ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (!err && taking->pagemap_fd < 0)
		err = -errno;
	if (err)
		diag_error("cannot read the memory of process %d: %s%s", snapshot->pid,
			   strerror(-err), diag_rights_hint(err));
	return err;
}

static void read_identity(struct snapshot *snapshot)
{
	char text[PROC_FILE_STATUS_SIZE];
	struct process_memory memory;
	struct process_stat stat;

	if (process_stat_read(snapshot->pid, &stat) == 0)
		snapshot->start_ticks = stat.start_time_ticks;
	if (proc_file_read(snapshot->pid, "comm", snapshot->name, sizeof(snapshot->name)) == 0)
		snapshot->name[strcspn(snapshot->name, "\n")] = '\0';
	if (proc_file_read(living_thread(snapshot->pid), "status", text, sizeof(text)) ||
	    process_memory_parse(text, &memory))
		return;
	snapshot->anon_bytes = memory.anon_bytes;
	snapshot->file_bytes = memory.file_bytes;
	snapshot->shared_bytes = memory.shared_bytes;
	snapshot->swap_bytes = memory.swap_bytes;
}

/* All but the registers, while the process stands still. */
static int take_memory(struct taking *taking)
{
	struct snapshot *snapshot = taking->snapshot;
	int err = address_regions_read(&taking->regions, snapshot->pid, taking->pagemap_fd);

	if (err)
		return err;
	address_regions_take(&taking->regions, &taking->prepared);
	err = address_regions_reserve(&taking->regions);
	if (!err)
		err = kernel_pointers_read(snapshot, taking->end_ns);
	snapshot->regions = taking->regions.regions;
	snapshot->nr_regions = taking->regions.nr;
	snapshot->unread = taking->regions.unread;
	taking->regions.regions = NULL;
	taking->regions.nr = 0;
	if (!err)
		err = memory_copy(snapshot, taking->pagemap_fd, taking->end_ns);
	if (!err)
		shared_memory_copy(&taking->regions.shared, snapshot, taking->end_ns);
	return err;
}

/* What happens while the process is stopped. */
static int take_stopped(struct taking *taking)
{
	struct snapshot *snapshot = taking->snapshot;
	int err = thread_stop_all(&taking->stop, snapshot->pid, taking->end_ns);

	if (!err)
		err = thread_stop_read_registers(&taking->stop, snapshot, taking->end_ns);
	if (err)
		return err;
	snapshot->has_other_users = sleeping_threads_have_others(&taking->threads);
	return take_memory(taking);
}

static void report_limit(const struct taking *taking)
{
	const struct snapshot *snapshot = taking->snapshot;
	struct quantity_text limit = quantity_duration((double)taking->limit_ns / 1e9);
	uint64_t total = taking->regions.populated_bytes, done = snapshot->copied_bytes;

	if (taking->late)
		diag_error("process %d was let go after %s: its thread %d had not stopped; it "
			   "may be in an uninterruptible system call, or the machine is busy: "
			   "try again, or with a larger --pause-limit",
			   snapshot->pid, limit.text, taking->late);
	else if (!done)
		diag_error("process %d was let go after %s, before its memory was copied: use a "
			   "larger --pause-limit",
			   snapshot->pid, limit.text);
	else
		diag_error("process %d was let go after %s, with %s of %s copied: "
			   "--pause-limit %.0fms would probably do",
			   snapshot->pid, limit.text, quantity_bytes((double)done).text,
			   quantity_bytes((double)total).text,
			   (double)taking->limit_ns / 1e6 * 1.5 * (double)total / (double)done +
				   0.5);
}

static void report(const struct taking *taking, int err)
{
	if (err == -ETIMEDOUT)
		report_limit(taking);
	else if (err == -ESRCH)
		diag_error("cannot scan process %d: it has ended", taking->snapshot->pid);
	else if (err == -ENOMEM)
		diag_error("cannot scan process %d: out of memory: a copy of its memory takes %s",
			   taking->snapshot->pid,
			   quantity_bytes((double)taking->prepared.populated_bytes).text);
	else
		diag_error("cannot scan process %d: %s%s", taking->snapshot->pid, strerror(-err),
			   diag_rights_hint(err));
}

/*
 * In a thread of its own, which traces: what has not stopped yet cannot be detached. When the
 * tracing thread ends, the kernel lets it go.
 */
static void *take_in_thread(void *argument)
{
	struct taking *taking = argument;

	/* On busy CPUs, the process would wait longer than the work takes. */
	setpriority(PRIO_PROCESS, 0, PAUSE_NICE);
	taking->start_ns = clock_now_ns();
	taking->end_ns = taking->start_ns + taking->limit_ns;
	taking->err = take_stopped(taking);
	taking->late = taking->stop.late;
	thread_stop_release(&taking->stop);
	taking->snapshot->taken_ns = clock_now_ns();
	taking->snapshot->taken_s = (uint64_t)time(NULL);
	taking->snapshot->pause_ns = taking->snapshot->taken_ns - taking->start_ns;
	return NULL;
}

/* Ctrl-C and Ctrl-Z must not come between stopping the process and letting it go. */
static int take_guarded(struct taking *taking)
{
	struct pause_guard guard;
	pthread_t thread;
	sigset_t all, before;
	int err;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	err = pause_guard_start(&guard, taking->limit_ns);
	if (!err) {
		err = -pthread_create(&thread, NULL, take_in_thread, taking);
		if (!err) {
			pthread_join(thread, NULL);
			err = taking->err;
		}
		pause_guard_end(&guard);
		/* Not before: standard error may be a terminal that does not go on. */
		if (err)
			report(taking, err);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* Waits until no thread runs. Most processes that sleep most of the time do so at once. */
static int wait_for_sleep(struct sleeping_threads *threads)
{
	const struct timespec pause = {.tv_nsec = SLEEP_POLL_NS};
	int err = sleeping_threads_begin(threads);

	for (int i = 1; i < MAX_SLEEP_POLLS && err == -EAGAIN; i++) {
		nanosleep(&pause, NULL);
		err = sleeping_threads_begin(threads);
	}
	return err;
}

/* Returns 0; or an error if the process did not sleep long enough, or that cannot be told. */
static int take_asleep(struct taking *taking)
{
	struct snapshot *snapshot = taking->snapshot;
	int err = wait_for_sleep(&taking->threads);

	snapshot->taken_ns = clock_now_ns();
	snapshot->taken_s = (uint64_t)time(NULL);
	/* Nobody waits, so there is no limit. */
	taking->end_ns = UINT64_MAX;
	taking->is_begun = !err;
	if (!err)
		err = take_memory(taking);
	if (!err)
		err = sleeping_threads_end(&taking->threads, snapshot);
	/* A tracer may read more (proc_mem.force_override of Linux 6.12, fs/proc/base.c). */
	if (!err && snapshot->unread.bytes)
		err = -EIO;
	return err;
}

/* Forgets a snapshot that is not one moment. */
static void forget(struct taking *taking)
{
	struct snapshot *snapshot = taking->snapshot, empty;

	snapshot_init(&empty);
	empty.pid = snapshot->pid;
	empty.mem_fd = snapshot->mem_fd;
	snapshot->mem_fd = -1;
	snapshot_deinit(snapshot);
	*snapshot = empty;
	read_identity(snapshot);
	address_regions_deinit(&taking->prepared);
	address_regions_deinit(&taking->regions);
}

/* What the machine can give without swapping; UINT64_MAX: not known. */
static uint64_t available_bytes(void)
{
	_cleanup_fclose_ FILE *meminfo = fopen("/proc/meminfo", "re");
	uint64_t kib = UINT64_MAX / 1024;
	char line[128];

	while (meminfo && fgets(line, sizeof(line), meminfo))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			break;
	return kib * 1024;
}

/*
 * A copy that leaves nothing would have the kernel end another process, such as this one, or one of
 * the cgroup. What the process has in swap, reading brings back into RAM, but not at the expense of
 * leakscan's cgroup.
 */
static bool fits(const struct taking *taking)
{
	uint64_t needed = taking->prepared.populated_bytes;
	uint64_t available = available_bytes(), left = cgroup_memory_left();
	uint64_t swapped = taking->snapshot->swap_bytes;
	bool is_limited;

	available -= swapped < available ? swapped : available;
	is_limited = left < available;
	if (is_limited)
		available = left;
	if (needed <= available - available / 8)
		return true;
	diag_error("cannot scan process %d: a copy of its memory takes %s, and %s is available%s "
		   "write a core file with gcore(1), and use leakscan --core on another machine",
		   taking->snapshot->pid, quantity_bytes((double)needed).text,
		   quantity_bytes((double)available).text,
		   is_limited ? " in leakscan's cgroup; start it in another one, or" : ";");
	return false;
}

static int prepare(struct taking *taking)
{
	int err =
		address_regions_read(&taking->prepared, taking->snapshot->pid, taking->pagemap_fd);

	if (!err && !fits(taking))
		return -ENOMEM;
	if (!err)
		err = address_regions_prepare(&taking->prepared);
	if (err)
		report(taking, err);
	return err;
}

int live_snapshot_take(struct snapshot *ret, pid_t pid, uint64_t limit_ns, bool stop)
{
	struct taking taking = {.snapshot = ret, .pagemap_fd = -1, .limit_ns = limit_ns};
	bool is_taken = false, sees_threads;
	int err;

	snapshot_init(ret);
	ret->pid = pid;
	err = open_files(&taking);
	if (err)
		return err;
	read_identity(ret);
	sees_threads = sleeping_threads_init(&taking.threads, pid) == 0;
	err = prepare(&taking);
	if (!err && !stop && sees_threads) {
		is_taken = take_asleep(&taking) == 0;
		/* What was copied by then must not be taken for what is copied later. */
		if (!is_taken && taking.is_begun) {
			forget(&taking);
			err = prepare(&taking);
		}
	}
	if (!err && !is_taken)
		err = take_guarded(&taking);
	sleeping_threads_deinit(&taking.threads);
	address_regions_deinit(&taking.prepared);
	address_regions_deinit(&taking.regions);
	close(taking.pagemap_fd);
	return err;
}
