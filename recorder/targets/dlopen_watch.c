/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/targets/dlopen_watch.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/interrupted.h"
#include "common/scope.h"
#include "probes/tracefs/group_name.h"
#include "probes/plan/probe_set.h"
#include "common/proc/living_thread.h"
#include "common/proc/process_namespace.h"
#include "common/proc/process_status.h"
#include "recorder/target_table/target_table.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/sysmacros.h>

/*
 * Limits of CPU time: for one file, between two rounds, and for one user's files per window. The
 * largest programs, of 50 MB of code, take 300 ms; a library takes about one. Meanwhile the rings
 * are not drained, and processes whose rings are full wait.
 */
#define FILE_NS	  500000000ULL
#define SLICE_NS  10000000ULL
#define USER_NS	  1500000000ULL
#define WINDOW_NS 10000000000ULL

/* Looking at the files of a process takes up to a millisecond: less than this of a CPU's time. */
#define LOOK_SHARE    0.1
#define LOOK_EVERY_NS 1000000000ULL
/* At the end, when nothing is recorded any more. */
#define LAST_LOOK_NS 100000000ULL

/* The kernel's dev_t: include/linux/kdev_t.h. */
static struct bpf_file kernel_file(dev_t device, ino_t inode)
{
	return (struct bpf_file){(uint64_t)major(device) << 20 | minor(device), inode};
}

/*
 * Avoids stopping processes for files that are already inspected. On btrfs and overlayfs, stat()
 * shows another device than the kernel's inode, so the first process to map such a file is stopped
 * needlessly.
 */
static void tell_programs(struct dlopen_watch *watch)
{
	struct stat stat;

	while (allocator_search_next(watch->search, &stat)) {
		const struct bpf_file file = kernel_file(stat.st_dev, stat.st_ino);
		const struct bpf_file_version version = {
			(uint64_t)stat.st_size, (uint64_t)stat.st_ctim.tv_sec * 1000000000 +
							(uint64_t)stat.st_ctim.tv_nsec};

		bpf_recorder_know_file(watch->recorder, &file, &version);
	}
}

void dlopen_watch_init(struct dlopen_watch *ret, struct bpf_recorder *recorder,
		       struct backpressure *backpressure, struct allocator_search *search,
		       struct file_leases *leases)
{
	const struct allocator_search_limits limits = {SLICE_NS, USER_NS, WINDOW_NS,
						       ALLOCATOR_SEARCH_FILES};

	*ret = (struct dlopen_watch){.recorder = recorder,
				     .backpressure = backpressure,
				     .search = search,
				     .leases = leases,
				     .share = LOOK_SHARE};
	if (recorder)
		tell_programs(ret);
	allocator_search_limit(search, &limits);
}

/*
 * mm->exec_vm, which /proc shows in two parts (task_mem(), fs/proc/task_mmu.c). If it cannot be
 * read: 0, and the process is stopped once needlessly.
 */
static uint64_t code_pages(pid_t pid)
{
	struct process_status status;

	return process_status_read(living_thread(pid), &status)
		       ? 0
		       : status.code_bytes / (uint64_t)getpagesize();
}

void dlopen_watch_know_process(struct dlopen_watch *watch, pid_t pid)
{
	bpf_recorder_know_code(watch->recorder, pid, code_pages(pid));
}

void dlopen_watch_deinit(struct dlopen_watch *watch)
{
	for (size_t i = 0; i < watch->nr_sets; i++) {
		probe_set_deinit(watch->sets[i]);
		free(watch->sets[i]);
	}
	free(watch->sets);
	*watch = (struct dlopen_watch){0};
}

/* Moves @set to memory of our own and returns it, or NULL if out of memory. */
static struct probe_set *keep(struct dlopen_watch *watch, struct probe_set *set)
{
	struct probe_set **grown, *kept;

	grown = reallocarray(watch->sets, watch->nr_sets + 1, sizeof(struct probe_set *));
	if (!grown)
		return NULL;
	watch->sets = grown;
	kept = malloc(sizeof(*kept));
	if (!kept)
		return NULL;
	*kept = *set;
	*set = (struct probe_set){0};
	watch->sets[watch->nr_sets++] = kept;
	return kept;
}

/* True if the file is recorded already: it may be found twice while it is being mapped. */
static bool is_recorded(const struct bpf_recorder *recorder, const struct probe_file *file)
{
	struct group_name name, other;

	if (group_name_parse(file->group, &name))
		return false;
	for (size_t i = 0; i < recorder->sites.nr_watched; i++)
		if (!recorder->sites.watched[i].file->is_given_up &&
		    group_name_parse(recorder->sites.watched[i].file->group, &other) == 0 &&
		    other.inode_hash == name.inode_hash && other.build_hash == name.build_hash)
			return true;
	return false;
}

/* Returns how many of the file's functions are recorded from now on, or a negative errno. */
static int record_file(struct dlopen_watch *watch, struct probe_file *file)
{
	int err;

	if (is_recorded(watch->recorder, file))
		return 0;
	if (watch->only_notes) {
		bpf_recorder_note_skipped(watch->recorder);
		return 0;
	}
	/* It may not be what was analysed. */
	err = file_leases_take(watch->leases, file);
	if (err == -EAGAIN || err == -ESTALE) {
		diag_note("not recording %s: %s", file->display, file_leases_reason(err));
		return err;
	}
	if (err)
		file_leases_warn(file, err);
	return bpf_recorder_add_late(watch->recorder, file);
}

/* A file is not recorded, although it may be an allocator. */
static void note_left_out(struct dlopen_watch *watch)
{
	if (watch->recorder->in_windows)
		watch->recorder->has_left_out_file = true;
	else
		target_table_note_missed(backpressure_table(watch->backpressure));
}

/* Closes the files that are not recorded: a process that loads many must not exhaust ours. */
static void record_files(struct dlopen_watch *watch, struct probe_set *set, pid_t pid)
{
	char name[PROCESS_NAME_MAX];

	process_namespace_format_name(pid, name);
	for (size_t i = 0; i < set->nr_files; i++) {
		struct probe_file *file = &set->files[i];
		int nr = record_file(watch, file);

		if (nr > 0) {
			watch->nr_recorded++;
			diag_note("recording %s, too, which %s has loaded", file->display, name);
		} else if (nr < 0 && nr != -E2BIG) {
			note_left_out(watch);
		} else {
			file_leases_give(watch->leases, file);
			probe_file_deinit(file);
			*file = (struct probe_file){.fd = -1};
		}
	}
}

/* Returns true if there are more files to inspect. */
static bool look_at_process(struct dlopen_watch *watch, pid_t pid)
{
	struct probe_set set = {.with_operators = watch->operators, .limit_ns = FILE_NS}, *kept;
	int found = allocator_search_process(watch->search, pid, &set);

	if (found >= 0 && set.nr_files) {
		kept = keep(watch, &set);
		if (kept) {
			record_files(watch, kept, pid);
		} else {
			diag_error("cannot record what process %d has loaded: out of memory",
				   (int)pid);
			note_left_out(watch);
		}
	}
	/* It was reported. */
	if (found < 0)
		note_left_out(watch);
	probe_set_deinit(&set);
	return found > 0;
}

void dlopen_watch_forget(struct dlopen_watch *watch, const struct probe_file *file)
{
	struct bpf_file known;
	struct stat st;

	if (fstat(file->fd, &st) < 0)
		return;
	known = kernel_file(st.st_dev, st.st_ino);
	allocator_search_forget(watch->search, &st);
	bpf_recorder_forget_file(watch->recorder, &known);
}

bool dlopen_watch_is_waiting(const struct dlopen_watch *watch)
{
	return watch->recorder && target_table_has_mapped(backpressure_table(watch->backpressure));
}

/* Inspects what one process has mapped. Returns false if it has to be repeated. */
static bool serve_target(struct dlopen_watch *watch, struct target *target)
{
	struct target_table *table = backpressure_table(watch->backpressure);
	struct bpf_file_version version;
	struct bpf_file file;
	bool is_done;

	target_table_begin_inspection(target);
	file = (struct bpf_file){target->mapped_device, target->mapped_inode};
	version = (struct bpf_file_version){target->mapped_size_bytes, target->mapped_changed_ns};
	is_done = !look_at_process(watch, (pid_t)target->tgid);
	if (is_done)
		bpf_recorder_know_file(watch->recorder, &file, &version);
	tell_programs(watch);
	target_table_end_inspection(table, target, is_done);
	return is_done;
}

static void serve_waiting(struct dlopen_watch *watch)
{
	struct target_table *table = backpressure_table(watch->backpressure);
	uint64_t end_ns = clock_thread_ns() + SLICE_NS;

	/* After a signal, the end of the recording continues the waiting processes. */
	if (is_interrupted() || !target_table_consume_mapped(table))
		return;
	for (struct target *target = NULL; (target = target_table_next(table, target));) {
		if (!target->has_mapped)
			continue;
		/* The others keep their marks and go on waiting. */
		if (clock_thread_ns() > end_ns) {
			target_table_postpone_inspection(table);
			break;
		}
		if (!serve_target(watch, target))
			break;
	}
	/* Not each process that maps a file shows which one it was: one for all. */
	if (table->files_unheld && watch->nr_recorded)
		target_table_note_missed(table);
}

/* --- Files that have gone unseen --- */

static struct dlopen_watch_counts count(const struct dlopen_watch *watch)
{
	struct dlopen_watch_counts ret = {.nr_recorded = watch->nr_recorded};

	/* First: a process whose use is skipped after the count is gone after it, too. */
	ret.nr_gone = __atomic_load_n(&backpressure_table(watch->backpressure)->nr_gone,
				      __ATOMIC_SEQ_CST);
	ret.nr_skipped = bpf_recorder_nr_skipped(watch->recorder, SKIP_COSTS_FILES);
	return ret;
}

/* Looks at the targets that follow, until @end_ns of this thread's time. True: none is left. */
static bool look_at_targets(struct dlopen_watch *watch, uint64_t end_ns)
{
	struct target_table *table = backpressure_table(watch->backpressure);
	struct target *target;

	while ((target = target_table_next(table, watch->looked_at))) {
		/* The end of the recording tells what was not looked at. */
		if (clock_thread_ns() > end_ns || (!watch->only_notes && is_interrupted()))
			return false;
		if (target->role <= TARGET_SPARED && look_at_process(watch, (pid_t)target->tgid)) {
			if (clock_thread_ns() <= end_ns)
				continue;
			/* Those behind it do not wait for one that may map new files for ever. */
			watch->is_incomplete = true;
		}
		watch->looked_at = target;
	}
	return true;
}

/* If there were skips: looks at the files of all targets, until @end_ns of this thread's time. */
static void make_up(struct dlopen_watch *watch, uint64_t end_ns)
{
	const struct dlopen_watch_counts now = count(watch);
	const struct dlopen_watch_counts *before = &watch->made_up;

	if (!watch->is_walking) {
		watch->begun = now;
		watch->looked_at = NULL;
		watch->is_incomplete = false;
	}
	watch->is_walking = watch->begun.nr_skipped > before->nr_skipped;
	if (watch->is_walking) {
		watch->is_walking = !look_at_targets(watch, end_ns);
		tell_programs(watch);
		if (watch->is_walking || watch->is_incomplete)
			return;
		if (backpressure_is_system_wide(watch->backpressure) ||
		    watch->nr_recorded > before->nr_recorded ||
		    count(watch).nr_gone > before->nr_gone)
			bpf_recorder_note_skipped(watch->recorder);
	}
	watch->made_up = watch->begun;
}

/* Lets the next round continue those that wait: nothing is recorded any more. */
static void let_go(struct target_table *table)
{
	for (struct target *target = NULL; (target = target_table_next(table, target));) {
		if (!target->has_mapped)
			continue;
		target_table_begin_inspection(target);
		target_table_end_inspection(table, target, true);
	}
}

void dlopen_watch_end(struct dlopen_watch *watch)
{
	const uint64_t nr_skipped = bpf_recorder_nr_skipped(watch->recorder, SKIP_COSTS_FILES);
	const uint64_t end_ns =
		clock_thread_ns() + (watch->recorder->in_windows ? SLICE_NS : LAST_LOOK_NS);

	watch->only_notes = true;
	let_go(backpressure_table(watch->backpressure));
	/* The walk that has begun, and one for later skips. */
	for (int i = 0; i < 2 && watch->made_up.nr_skipped < nr_skipped; i++)
		make_up(watch, end_ns);
	if (watch->made_up.nr_skipped < nr_skipped)
		bpf_recorder_note_skipped(watch->recorder);
}

void dlopen_watch_serve(struct dlopen_watch *watch)
{
	uint64_t begin_ns, spent_ns;

	/* After the end of the recording, those that waited have been let go. */
	if (watch->only_notes)
		return;
	serve_waiting(watch);
	if (clock_now_ns() < watch->next_look_ns)
		return;
	begin_ns = clock_thread_ns();
	make_up(watch, begin_ns + SLICE_NS);
	spent_ns = clock_thread_ns() - begin_ns;
	watch->next_look_ns = clock_now_ns() + (uint64_t)((double)spent_ns / watch->share);
	if (!watch->is_walking)
		watch->next_look_ns += LOOK_EVERY_NS;
}
