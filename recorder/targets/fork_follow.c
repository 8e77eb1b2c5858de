/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/targets/fork_follow.h"

#include "common/diag.h"
#include "common/interrupted.h"
#include "common/scope.h"
#include "common/proc/living_thread.h"
#include "probes/plan/probe_file.h"
#include "recorder/events/event_attr.h"
#include "recorder/target_table/target_table.h"
#include "recorder/programs/bpf_sites.h"
#include "recorder/processes/apart.h"
#include "recorder/processes/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/syscall.h>

/* A stopped process creates no threads. Until it has stopped, there may be new ones. */
#define MAX_ATTEMPTS 100
/* Processes with more threads get no events for their children to inherit. */
#define MAX_THREADS 64

static bpf_recorder_opener open_events;

void fork_follow_init(struct fork_follow *ret, struct bpf_recorder *recorder,
		      struct backpressure *backpressure)
{
	*ret = (struct fork_follow){.recorder = recorder, .backpressure = backpressure};
	/* Without links, no event is inherited. */
	if (recorder->by != RECORD_BY_SINGLE)
		follow_fds_prepare(&ret->fds);
	recorder->open_events = open_events;
	recorder->open_context = ret;
}

int fork_follow_close(struct fork_follow *fork_follow)
{
	follow_fds_close(&fork_follow->fds);
	return fork_follow->error;
}

static bool is_same_file(const struct probe_file *a, const struct probe_file *b)
{
	struct stat x, y;

	return fstat(a->fd, &x) == 0 && fstat(b->fd, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static void give_up_copy(struct fork_follow *fork_follow, size_t nth)
{
	struct probe_file *copy = &fork_follow->own_probes.files[nth];
	struct probe_set set = {.files = copy, .nr_files = 1};

	copy->is_given_up = true;
	follow_fds_close_file(&fork_follow->fds, copy);
	/* The kernel has removed the breakpoints when it lets go of the events. */
	probe_set_unregister(&set);
}

void fork_follow_give_up(struct fork_follow *fork_follow, const struct probe_file *file)
{
	for (size_t i = 0; i < fork_follow->own_probes.nr_files; i++)
		if (!fork_follow->own_probes.files[i].is_given_up &&
		    is_same_file(&fork_follow->own_probes.files[i], file))
			give_up_copy(fork_follow, i);
}

void fork_follow_handle_task(struct fork_follow *fork_follow, const struct perf_disk_task *task)
{
	if (task->header.type == PERF_RECORD_EXIT)
		follow_fds_close_carrier(&fork_follow->fds, (pid_t)task->tid, task->time_ns);
}

void fork_follow_deinit(struct fork_follow *fork_follow)
{
	probe_set_deinit(&fork_follow->own_probes);
	*fork_follow = (struct fork_follow){0};
}

/* Adds a copy of @probe, not registered yet, to the copied file. */
static int copy_probe(struct probe_file *to, const struct probe *probe)
{
	struct probe *copy = &to->probes[to->nr_probes];

	*copy = *probe;
	copy->tracefs_id = -1;
	copy->registered_here = false;
	copy->definition = NULL;
	copy->points = NULL;
	copy->nr_points = 0;
	/* The program writes the sample. Linux 6.1 fetches arguments even so. */
	copy->fetch_args = strdup("");
	to->nr_probes++;
	return copy->fetch_args ? 0 : -ENOMEM;
}

/* Adds a copy of @file to the set, with room for @nr_probes. */
static struct probe_file *copy_file(struct probe_set *to, const struct probe_file *file,
				    size_t nr_probes)
{
	struct probe_file *copy = &to->files[to->nr_files++];

	*copy = (struct probe_file){.fd = -1};
	memcpy(copy->group, file->group, sizeof(copy->group));
	copy->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	if (copy->fd < 0)
		return NULL;
	copy->path = strdup(file->path);
	copy->display = strdup(file->display);
	copy->probes = calloc(nr_probes, sizeof(*copy->probes));
	return copy->path && copy->display && copy->probes ? copy : NULL;
}

/* Copies a probe at a point. It has no fetch arguments: its program writes the sample. */
static int copy_point(struct probe_file *to, const struct watched_point *point)
{
	const struct probe *function = point->site->ret;
	struct probe *probe = &to->probes[to->nr_probes++];

	*probe = (struct probe){
		.schema = function->schema,
		.point = PROBE_ENTRY,
		.function_offset = function->function_offset,
		.offset = watched_point_offset(point),
		.fetch_args = strdup(""),
		.tracefs_id = -1,
	};
	snprintf(probe->event, sizeof(probe->event), "%s_%" PRIx64, function->schema->function,
		 point->point->offset);
	return probe->fetch_args ? 0 : -ENOMEM;
}

/* How many probes the site's return needs: one return probe, or one for each exit. */
static size_t nr_returns(const struct watched_site *watched)
{
	return watched->ret && watched->ret->point != PROBE_EXIT ? 1
								 : watched_site_nr_exits(watched);
}

static int copy_site(struct probe_file *to, const struct bpf_recorder *recorder,
		     const struct watched_site *watched)
{
	int err = 0;

	for (size_t i = 0; i < watched->nr_points && !err; i++)
		err = copy_point(to, &recorder->sites.points[watched->first_point + i]);
	if (watched->nr_points || err)
		return err;
	if (watched->entry)
		err = copy_probe(to, watched->entry);
	for (size_t i = 0; i < nr_returns(watched) && !err; i++)
		err = copy_probe(to, watched->ret + i);
	return err;
}

/* Finds the sites of @file, which follow each other: from the result up to *@ret_end. */
static size_t find_sites(const struct bpf_recorder *recorder, const struct probe_file *file,
			 size_t *ret_end)
{
	const struct watched_sites *sites = &recorder->sites;
	size_t first = 0;

	while (first < sites->nr_watched && sites->watched[first].file != file)
		first++;
	*ret_end = first;
	while (*ret_end < sites->nr_watched && sites->watched[*ret_end].file == file)
		++*ret_end;
	return first;
}

/* Copies the recorded probes of @file, in the order of the sites. */
static int copy_probes(struct probe_set *to, const struct bpf_recorder *recorder,
		       const struct probe_file *file)
{
	struct probe_file *copy;
	size_t end, i = find_sites(recorder, file, &end);
	int err = 0;

	if (!to->files)
		to->files = calloc(BPF_MAX_SITES, sizeof(*to->files));
	if (!to->files)
		return -ENOMEM;
	copy = copy_file(to, file, file->nr_probes + recorder->sites.nr_points);
	if (!copy)
		return -ENOMEM;
	for (; i < end && !err; i++)
		err = copy_site(copy, recorder, &recorder->sites.watched[i]);
	return err;
}

/* Takes over @fd, which is neither inherited nor a carrier's. */
static int add_fd(struct fork_follow *fork_follow, int fd, const struct probe_file *file)
{
	return follow_fds_add(&fork_follow->fds,
			      &(struct follow_fd){.fd = fd, .witness = -1, .file = file});
}

/*
 * Opens an event for thread @tid, or, if that is -1, for all processes. Side events that belong to
 * CPUs (attach.h) do not keep the kernel from swapping the contexts of a process and its child:
 * an inherited event has to do that by itself, from Linux 6.12 on (event_attr.h).
 */
static int open_event(const struct probe *probe, pid_t tid, bool inherit)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = (uint64_t)probe->tracefs_id,
		.sample_period = 1,
		/* The breakpoints are there as long as the event is open. */
		.disabled = 1,
		.inherit = inherit,
	};
	int fd;

	if (inherit && !event_attr_contexts_swap())
		event_attr_want_own_context(&attr);
	fd = (int)syscall(SYS_perf_event_open, &attr, tid, tid < 0 ? 0 : -1, -1,
			  PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/*
 * The event must not be inherited: it would detach the program when its task ends
 * (perf_event_free_bpf_prog(), Linux 6.18).
 */
static int attach_program(struct fork_follow *fork_follow, const struct probe_file *file,
			  const struct probe *probe, size_t site)
{
	int fd = open_event(probe,
			    task_for_programs(backpressure_watchdog_pid(fork_follow->backpressure)),
			    false);
	int err = fd < 0 ? fd : add_fd(fork_follow, fd, file);

	if (err)
		return err;
	fd = bpf_recorder_attach(fork_follow->recorder, fd, probe->point, site);
	return fd < 0 ? fd : add_fd(fork_follow, fd, file);
}

/* How many probes copy_site() adds. */
static size_t count_copies(const struct watched_site *watched)
{
	return watched->nr_points ? watched->nr_points
				  : (size_t) !!watched->entry + nr_returns(watched);
}

/* Attaches programs to the probes that copy_probes() has added, in the same order. */
static int attach_programs(struct fork_follow *fork_follow, const struct probe_file *file,
			   const struct probe_file *copy)
{
	const struct bpf_recorder *recorder = fork_follow->recorder;
	const struct probe *probe = copy->probes;
	size_t end, i = find_sites(recorder, file, &end);
	int err = 0;

	for (; i < end && !err; i++) {
		const struct watched_site *watched = &recorder->sites.watched[i];
		size_t nr_probes = count_copies(watched);

		for (size_t j = 0; j < nr_probes && !err; j++) {
			if (is_interrupted())
				return -EINTR;
			err = attach_program(
				fork_follow, copy, probe++,
				watched->nr_points ? bpf_point_index(watched->first_point + j) : i);
		}
	}
	return err;
}

/*
 * Registers uprobe events for the recorded probes of @file, and attaches the programs to them. They
 * record no process until events are opened for it.
 */
static int add_file(struct fork_follow *fork_follow, const struct probe_file *file)
{
	struct probe_set *own_probes = &fork_follow->own_probes, set = {.nr_files = 1};
	size_t nth = own_probes->nr_files;
	int err;

	fork_follow->files[nth] = (struct follow_file){.original = file};
	err = copy_probes(own_probes, fork_follow->recorder, file);
	set.files = &own_probes->files[nth];
	if (!err)
		err = probe_set_make_own(&set);
	if (!err)
		err = probe_set_register(&set);
	return err ? err : attach_programs(fork_follow, file, set.files);
}

/* At the first fork of all: prepares the files that were there when the recording began. */
static int set_up(struct fork_follow *fork_follow)
{
	const struct watched_sites *sites = &fork_follow->recorder->sites;
	const struct probe_file *file = NULL;
	int err = 0;

	for (size_t i = 0; i < sites->nr_initial && !err; i++) {
		if (sites->watched[i].file == file || sites->watched[i].file->is_given_up)
			continue;
		file = sites->watched[i].file;
		err = add_file(fork_follow, file);
	}
	return err;
}

/* Opens all events for one thread. Returns 0 also if it has ended. */
static int follow_thread(struct fork_follow *fork_follow, pid_t tid)
{
	int witness, err = follow_fds_add_witness(&fork_follow->fds, tid, &witness);

	for (size_t i = 0; i < fork_follow->own_probes.nr_files; i++) {
		const struct probe_file *file = &fork_follow->own_probes.files[i];

		for (size_t j = 0; j < file->nr_probes && !file->is_given_up && !err; j++) {
			int fd = open_event(&file->probes[j], tid, true);
			struct follow_fd event = {.fd = fd, .witness = witness, .file = file};

			err = fd < 0 ? fd : follow_fds_add(&fork_follow->fds, &event);
		}
	}
	return err == -ESRCH ? 0 : err;
}

static bool has_tid(const struct task_list *list, pid_t tid)
{
	for (size_t i = 0; i < list->nr_tids; i++)
		if (list->tids[i] == tid)
			return true;
	return false;
}

/* Opens all events for all threads of a stopped process. */
static int follow_process(struct fork_follow *fork_follow, pid_t pid)
{
	size_t nr_before = fork_follow->fds.nr, nr_new = 1;
	struct task_list known = {0};
	int err = 0;

	for (int i = 0; i < MAX_ATTEMPTS && nr_new && !err; i++) {
		struct task_list now = {0};

		nr_new = 0;

		err = task_list_read(&now, &pid, 1);
		for (size_t j = 0; j < now.nr_tids && !err; j++) {
			if (has_tid(&known, now.tids[j]))
				continue;
			err = is_interrupted() ? -EINTR : follow_thread(fork_follow, now.tids[j]);
			nr_new++;
		}
		task_list_deinit(&known);
		known = now;
	}
	task_list_deinit(&known);
	/* leak-end needs a few descriptors. */
	if (err == -EMFILE)
		follow_fds_close_after(&fork_follow->fds, nr_before);
	if (nr_new && !err)
		target_table_note_missed(backpressure_table(fork_follow->backpressure));
	return err == -ESRCH ? 0 : err;
}

void fork_follow_know_process(struct fork_follow *fork_follow, pid_t pid)
{
	struct target_table *table = backpressure_table(fork_follow->backpressure);
	struct target *target = target_table_find(table, (unsigned int)pid);

	if (!target || !target->linked || target->forks != TARGET_FORKS_UNSEEN ||
	    (fork_follow->recorder->by != RECORD_BY_SINGLE && living_thread(pid) == pid))
		return;
	target->forks = TARGET_FORKS_WANTED;
	table->any_stopped = 1;
}

struct file_to_open {
	struct fork_follow *fork_follow;
	const struct probe_file *file;
	pid_t tid;
};

static int open_apart(void *argument)
{
	const struct file_to_open *to_open = argument;
	const struct probe_file *file = to_open->file;
	int err = 0;

	/* Returns first: a call whose entry is seen has its return seen, too. */
	for (int is_entry = 0; is_entry <= 1; is_entry++) {
		for (size_t i = 0; i < file->nr_probes && !err; i++) {
			int fd;

			if (probe_point_is_return(file->probes[i].point) == is_entry)
				continue;
			fd = open_event(&file->probes[i], to_open->tid, false);
			err = fd < 0 ? fd
				     : follow_fds_add(&to_open->fork_follow->fds,
						      &(struct follow_fd){.fd = fd,
									  .witness = -1,
									  .file = file,
									  .tid = to_open->tid});
		}
	}
	return err;
}

/* Opens the events of one file for the carrier @tid, or, if that is -1, for all processes. */
static int open_file(struct fork_follow *fork_follow, const struct probe_file *file, pid_t tid)
{
	if (is_interrupted())
		return -EINTR;
	return apart_run(open_apart, &(struct file_to_open){fork_follow, file, tid});
}

/* Opens the events of all files for @tid, a new carrier, unless it ends. */
static int open_carrier(struct fork_follow *fork_follow, struct target *target, pid_t tid)
{
	const struct probe_set *own_probes = &fork_follow->own_probes;
	size_t nr_before = fork_follow->fds.nr;
	int err = 0;

	for (size_t i = 0; i < own_probes->nr_files && !err; i++)
		if (!fork_follow->files[i].is_everywhere && !own_probes->files[i].is_given_up)
			err = open_file(fork_follow, &own_probes->files[i], tid);
	/* If its end began before it was noted as a carrier, nobody else has noticed. */
	if (!err && !living_thread_is_ending(tid) && target_confirm_carrier(target, tid))
		return 0;
	target_remove_carrier(target, tid);
	/* The record of its end may have been read already. */
	follow_fds_close_after(&fork_follow->fds, nr_before);
	return err == -ESRCH ? 0 : err;
}

/* Finds threads of the process that become carriers, until there are no more, or enough. */
static int carry_process(struct fork_follow *fork_follow, struct target *target, pid_t pid)
{
	bool is_new = true;
	int err = 0;

	for (int i = 0; i < MAX_ATTEMPTS && is_new && !err; i++) {
		pid_t tids[TARGET_MAX_CARRIERS];
		size_t nr = living_threads_lasting(pid, tids, ARRAY_SIZE(tids));

		is_new = false;
		for (size_t j = 0; j < nr && !err; j++) {
			if (!target_add_carrier(target, tids[j]))
				continue;
			is_new = true;
			err = open_carrier(fork_follow, target, tids[j]);
		}
	}
	return err;
}

/* Opens the events of a new file, the @nth, for the carriers that the process has by now. */
static int open_for_carriers(struct fork_follow *fork_follow, const struct target *target,
			     size_t nth)
{
	int err = 0;

	for (size_t i = 0; i < TARGET_MAX_CARRIERS && !err; i++) {
		pid_t tid = target_carrier(target, i);

		if (tid)
			err = open_file(fork_follow, &fork_follow->own_probes.files[nth], tid);
		if (err == -ESRCH)
			err = 0;
	}
	return err;
}

/* A bpf_recorder_opener. */
static int open_events(void *context, const struct probe_file *file, pid_t pid)
{
	struct fork_follow *fork_follow = context;
	struct target_table *table = backpressure_table(fork_follow->backpressure);
	struct target *target = target_table_find(table, (unsigned int)pid);
	size_t nth = 0, nr = fork_follow->own_probes.nr_files;
	int err = 0;

	while (nth < nr && fork_follow->files[nth].original != file)
		nth++;
	if (nth == nr)
		err = add_file(fork_follow, file);
	fork_follow->files[nth].is_everywhere = !pid;
	if (!err && !pid)
		err = open_file(fork_follow, &fork_follow->own_probes.files[nth], -1);
	/* Nothing else would remove the events of a file that is left out. */
	if (err && !pid)
		give_up_copy(fork_follow, nth);
	if (err || !pid)
		return err;
	if (!target)
		return -ESRCH;
	if (nth == nr)
		err = open_for_carriers(fork_follow, target, nth);
	if (!err)
		err = carry_process(fork_follow, target, pid);
	return err || target_has_carrier(target) ? err : -ESRCH;
}

/* *@ret_inherits: later children inherit events. */
static int follow(struct fork_follow *fork_follow, struct target *target, pid_t pid,
		  bool *ret_inherits)
{
	int err = 0;

	*ret_inherits = true;
	if (fork_follow->recorder->by == RECORD_BY_SINGLE)
		return carry_process(fork_follow, target, pid);
	if (!fork_follow->own_probes.nr_files)
		err = set_up(fork_follow);
	if (err || !target->linked || task_list_count(&pid, 1) <= MAX_THREADS)
		return err ? err : follow_process(fork_follow, pid);
	*ret_inherits = false;
	/* The link needs the first thread. */
	return living_thread(pid) == pid ? 0 : carry_process(fork_follow, target, pid);
}

void fork_follow_serve(struct fork_follow *fork_follow)
{
	struct target_table *table = backpressure_table(fork_follow->backpressure);

	/* After a signal, the end of the recording continues the waiting processes. */
	fork_follow->interrupted |= is_interrupted();
	if (!table->any_stopped || fork_follow->interrupted)
		return;
	for (struct target *target = NULL; (target = target_table_next(table, target));) {
		pid_t pid = (pid_t)target->tgid;
		bool inherits = true;
		int err = fork_follow->error;

		if (!target_begin_opening(target))
			continue;
		if (!err)
			err = follow(fork_follow, target, pid, &inherits);
		if (err == -EINTR) {
			target_table_put_off_opening(table, target);
			fork_follow->interrupted = true;
			return;
		}
		if (err && !fork_follow->error)
			diag_error("cannot open events for processes that fork, or whose first "
				   "thread ends: %s; children are not recorded, and events may be "
				   "missing",
				   strerror(-err));
		fork_follow->error = err;
		target_table_end_opening(table, target, inherits);
	}
	/* After the work, in less time: the processes wait until the round ends. */
	if (follow_fds_want_sweep(&fork_follow->fds))
		follow_fds_sweep(&fork_follow->fds);
}
