/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/backpressure/exempt_processes.h"

#include "common/diag.h"
#include "common/scope.h"
#include "common/proc/living_thread.h"
#include "common/proc/process_stat.h"
#include "common/proc/process_namespace.h"
#include "common/proc/proc_file.h"
#include "recorder/processes/exempt.h"
#include "recorder/processes/process_list.h"
#include "recorder/target_table/target_table.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define MAX_ANCESTORS 256

/* One end of a pipe that a process has open. */
struct pipe_end {
	pid_t pid;
	bool reads; /* or writes */
	dev_t device;
	ino_t inode;
};

struct pipe_ends {
	struct pipe_end *ends;
	size_t nr;
};

/* The process's parent, its parent, and so on, up to init. */
static int find_ancestors(struct process_list *ret)
{
	struct process_stat status;
	pid_t pid = getpid();
	int err = 0;

	for (int i = 0; i < MAX_ANCESTORS && pid > 1 && !err; i++) {
		pid = process_stat_read(pid, &status) ? 0 : status.parent;
		if (pid > 1)
			err = process_list_add(ret, pid);
	}
	return err;
}

static bool has_pid(const struct process_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->nr; i++)
		if (list->pids[i] == pid)
			return true;
	return false;
}

static int add_end(struct pipe_ends *ends, const struct pipe_end *end)
{
	if ((ends->nr & (ends->nr - 1)) == 0) {
		struct pipe_end *grown =
			reallocarray(ends->ends, ends->nr ? ends->nr * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		ends->ends = grown;
	}
	ends->ends[ends->nr++] = *end;
	return 0;
}

/* The flags that @pid has opened a descriptor with; -1 if they cannot be read. */
static long flags_of(pid_t pid, const char *descriptor)
{
	char name[32], text[256];
	const char *flags;

	snprintf(name, sizeof(name), "fdinfo/%.20s", descriptor);
	flags = proc_file_read(pid, name, text, sizeof(text)) ? NULL
							      : proc_file_find(text, "flags:");
	return flags ? strtol(flags, NULL, 8) : -1;
}

/* Adds the ends of pipes that @pid has open. */
static int add_ends_of(struct pipe_ends *ends, pid_t pid)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[PROC_FILE_PATH_SIZE];
	int err = 0;

	pid = living_thread(pid);
	proc_file_path(path, pid, "fd");
	dir = opendir(path);
	while (dir && !err && (entry = readdir(dir))) {
		struct stat st;
		bool reads;
		long flags;

		if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 ||
		    !S_ISFIFO(st.st_mode))
			continue;
		flags = flags_of(pid, entry->d_name);
		if (flags < 0)
			continue;
		/*
		 * A descriptor open for both counts as a reader, to be on the safe side. Shells
		 * leave descriptors open that are seldom written; so only standard output and error
		 * count as writers.
		 */
		reads = (flags & O_ACCMODE) != O_WRONLY;
		if (!reads && strtol(entry->d_name, NULL, 10) > STDERR_FILENO)
			continue;
		err = add_end(ends, &(struct pipe_end){.pid = pid,
						       .reads = reads,
						       .device = st.st_dev,
						       .inode = st.st_ino});
	}
	return err;
}

static int find_ends(struct pipe_ends *ret)
{
	struct process_list list = {0};
	int err = process_list_add_all(&list);

	for (size_t i = 0; i < list.nr && !err; i++) {
		err = list.pids[i] == getpid() ? 0 : add_ends_of(ret, list.pids[i]);
		if (err)
			diag_error("cannot find the reader of the recording: %s", strerror(-err));
	}
	process_list_deinit(&list);
	return err;
}

/* Adds the readers of the pipe to @readers, each once. */
static int add_readers(const struct pipe_ends *ends, dev_t device, ino_t inode,
		       struct process_list *readers)
{
	for (size_t i = 0; i < ends->nr; i++) {
		const struct pipe_end *end = &ends->ends[i];

		if (!end->reads || end->device != device || end->inode != inode)
			continue;
		if (!has_pid(readers, end->pid) && process_list_add(readers, end->pid))
			return -ENOMEM;
	}
	return 0;
}

/* Finds the readers of the pipe, of the pipes that these write, and so on. */
static int find_readers(const struct pipe_ends *ends, const struct stat *pipe,
			struct process_list *ret)
{
	int err = add_readers(ends, pipe->st_dev, pipe->st_ino, ret);

	for (size_t i = 0; i < ret->nr && !err; i++)
		for (size_t j = 0; j < ends->nr && !err; j++)
			if (ends->ends[j].pid == ret->pids[i] && !ends->ends[j].reads)
				err = add_readers(ends, ends->ends[j].device, ends->ends[j].inode,
						  ret);
	if (err)
		diag_error("cannot find the reader of the recording: out of memory");
	return err;
}

/* Finds the processes that read the recording, if it goes into a pipe. */
static int find_output_readers(const char *output, struct process_list *ret)
{
	struct pipe_ends ends = {0};
	struct stat st;
	int err = -1;

	if (output)
		err = strcmp(output, "-") == 0 ? fstat(STDOUT_FILENO, &st) : stat(output, &st);
	if (err < 0 || !S_ISFIFO(st.st_mode))
		return 0;
	err = find_ends(&ends);
	if (!err)
		err = find_readers(&ends, &st, ret);
	free(ends.ends);
	return err;
}

/* Adds processes that run leakrec: recorders that record each other would never end. */
static int find_recorders(struct process_list *ret)
{
	struct process_list all = {0};
	struct stat own, other;
	int err = stat("/proc/self/exe", &own) < 0 ? 0 : process_list_add_all(&all);

	for (size_t i = 0; i < all.nr && !err; i++) {
		char path[PROC_FILE_PATH_SIZE];

		proc_file_path(path, living_thread(all.pids[i]), "exe");
		if (stat(path, &other) == 0 && other.st_dev == own.st_dev &&
		    other.st_ino == own.st_ino)
			err = process_list_add(ret, all.pids[i]);
	}
	process_list_deinit(&all);
	return err;
}

static void set_roles(struct backpressure *backpressure, const struct process_list *list,
		      enum target_role role)
{
	for (size_t i = 0; i < list->nr; i++)
		backpressure_set_role(backpressure, list->pids[i], role);
}

/* Refuses a named process that reads the recording, and tells which ones are never stopped. */
static int check_named(struct backpressure *backpressure, const pid_t *pids, size_t nr_pids,
		       const struct process_list *ancestors, const struct process_list *readers)
{
	char name[PROCESS_NAME_MAX];

	for (size_t i = 0; i < nr_pids; i++) {
		const char *why;

		process_namespace_format_name(pids[i], name);
		if (has_pid(readers, pids[i])) {
			diag_error("cannot record %s: it reads the recording, and its own events "
				   "would never end; write to a file (-o)",
				   name);
			return -EINVAL;
		}
		if (!backpressure)
			continue;
		why = has_pid(ancestors, pids[i])
			      ? "leakrec is its child"
			      : exempt_why(pids[i],
					   (pid_t)backpressure_table(backpressure)->own_session,
					   NULL);
		if (why)
			diag_note("%s is never stopped: %s; when it is too fast, events are "
				  "lost, and counted",
				  name, why);
	}
	return 0;
}

bool exempt_processes_is_foreign(pid_t pid, const pid_t *pids, size_t nr_pids)
{
	struct process_list ancestors = {0};
	struct process_stat status;
	bool is_foreign = pid != getpid() && !process_stat_read(pid, &status) &&
			  !process_stat_is_dead(&status) && !find_ancestors(&ancestors) &&
			  !has_pid(&ancestors, pid);

	for (size_t i = 0; i < nr_pids && is_foreign; i++)
		is_foreign = pids[i] != pid;
	process_list_deinit(&ancestors);
	return is_foreign;
}

int exempt_processes_exempt(struct backpressure *backpressure, const char *output,
			    const pid_t *pids, size_t nr_pids)
{
	struct process_list ancestors = {0}, readers = {0}, recorders = {0};
	int err = find_ancestors(&ancestors);

	if (!err)
		err = find_output_readers(output, &readers);
	if (!err && backpressure && backpressure_is_system_wide(backpressure)) {
		err = find_recorders(&recorders);
		set_roles(backpressure, &recorders, TARGET_LEFT_OUT);
		set_roles(backpressure, &readers, TARGET_LEFT_OUT);
		backpressure_set_role(backpressure, getpid(), TARGET_RECORDER);
		backpressure_set_role(backpressure, backpressure_watchdog_pid(backpressure),
				      TARGET_LEFT_OUT);
	}
	if (backpressure)
		set_roles(backpressure, &ancestors, TARGET_SPARED);
	if (backpressure)
		target_table_set_own_groups(backpressure_table(backpressure),
					    nr_pids ? exempt_own_session() : 0, getpgrp());
	if (!err)
		err = check_named(backpressure, pids, nr_pids, &ancestors, &readers);
	process_list_deinit(&ancestors);
	process_list_deinit(&readers);
	process_list_deinit(&recorders);
	return err;
}
