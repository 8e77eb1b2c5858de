/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/session_targets.h"

#include "common/diag.h"
#include "common/proc/process_stat.h"
#include "common/scope.h"
#include "probes/calls/call_plan.h"
#include "probes/plan/allocator_plan.h"
#include "probes/resources/registered_resources.h"
#include "probes/resources/resource_plan.h"
#include "recorder/backpressure/exempt_processes.h"
#include "recorder/processes/changed_code.h"
#include "recorder/processes/shadow_stack.h"
#include "recorder/processes/tasks.h"
#include "recorder/targets/system_wide.h"

#include <errno.h>

#define MAX_CHILDREN_NAMED 8 /* in one message */

/*
 * Plans the resources of the command line, or else those that leakprobe registered. In windows,
 * they would not match.
 */
static int plan_resources(struct probe_set *set, pid_t pid, const struct session_options *options)
{
	if (options->budget)
		return 0;
	return options->resources->nr
		       ? resource_plan_pid(set, pid, options->resources)
		       : registered_resources_add(set, pid, &options->resources->schemas);
}

static bool has_file(const struct probe_set *set, const struct stat *stat)
{
	for (size_t i = 0; i < set->nr_files; i++)
		if (set->files[i].stat.st_dev == stat->st_dev &&
		    set->files[i].stat.st_ino == stat->st_ino)
			return true;
	return false;
}

/* What is not recorded of one process must not count as known when another one maps it. */
static void forget_files(struct session *session, const struct probe_set *set)
{
	for (size_t i = 0; i < set->nr_files; i++)
		if (!has_file(&session->probes, &set->files[i].stat))
			allocator_search_forget(session->search, &set->files[i].stat);
}

/* Adds the probes of a process to those of the session. */
static int plan_process(struct session *session, pid_t pid)
{
	const struct session_options *options = session->options;
	struct probe_set set = {0};
	int err = allocator_plan_check_program(pid);

	if (!err)
		err = shadow_stack_check(pid);
	/* Before planning: a file that is mapped in between is found twice rather than never. */
	if (!err && !options->config.no_heap)
		err = allocator_search_skip(session->search, pid);
	if (!err && !options->config.no_heap)
		err = allocator_plan_pid(&set, pid, options->mismatch);
	/* What it maps is recorded all the same. */
	if (err == -ENODATA && options->config.syscalls)
		err = 0;
	if (!err && options->config.at_calls)
		err = call_plan_pid(&set, pid, options->calls);
	else if (!err)
		err = plan_resources(&set, pid, options);
	if (!err)
		err = changed_code_check(pid, &set, true);
	if (!err) {
		allocator_search_drop_seen(session->search, &set);
		err = probe_set_merge(&session->probes, &set);
	} else {
		forget_files(session, &set);
	}
	probe_set_deinit(&set);
	return err;
}

/* Plans the probes for the allocators of all processes. */
static int find_all_allocators(struct session *session)
{
	int err;

	session->probes.with_operators = session->options->mismatch;
	err = system_wide_find_allocators(&session->options->config, session->search,
					  &session->probes, &session->nr_found);
	if (session->options->config.no_heap)
		probe_set_deinit(&session->probes);
	return err;
}

/* Lists the processes to record: with --children also those that they have, and theirs. */
static int list_processes(struct session *session)
{
	const struct session_options *options = session->options;
	struct process_list *list = &session->all_processes;
	int err = 0;

	for (size_t i = 0; i < options->nr_pids && !err; i++)
		err = process_list_add(list, options->pids[i]);
	/* The list grows meanwhile. */
	for (size_t i = 0; i < list->nr && options->with_children && !err; i++) {
		struct task_list tasks = {0};

		/* A named process that has ended is reported by plan_process(). */
		if (task_list_read(&tasks, &list->pids[i], 1) == -ENOMEM)
			err = -ENOMEM;
		for (size_t k = 0; k < tasks.nr_children && !err; k++)
			if (exempt_processes_is_foreign(tasks.children[k], list->pids, list->nr))
				err = process_list_add(list, tasks.children[k]);
		task_list_deinit(&tasks);
	}
	session->pids = list->pids;
	session->nr_pids = list->nr;
	return err;
}

/* Plans the processes' probes. One that was not named is left out if it cannot be recorded. */
static int plan_processes(struct session *session)
{
	struct process_list *list = &session->all_processes;
	size_t nr = 0;
	int err = list_processes(session);

	session->start_ticks = err ? NULL : calloc(list->nr, sizeof(*session->start_ticks));
	if (!session->start_ticks)
		return err ? err : -ENOMEM;
	for (size_t i = 0; i < list->nr && !err; i++) {
		bool is_named = i < session->options->nr_pids && !session->options->pids_are_found;
		struct process_stat status = {0};

		process_stat_read(list->pids[i], &status);
		err = plan_process(session, list->pids[i]);
		if (!err) {
			session->start_ticks[nr] = status.start_time_ticks;
			list->pids[nr++] = list->pids[i];
		} else if (!is_named && err != -ENOMEM) {
			err = 0;
		}
	}
	session->nr_pids = list->nr = nr;
	if (!err && !nr) {
		diag_error("cannot record any of the processes: see above");
		return -ESRCH;
	}
	return err;
}

/*
 * Starts the command, which is then the only process to record, and plans its probes. It stays
 * stopped before its first allocation (launch.h) until all events are set up. Launching plans the
 * allocators, which --no-heap drops. The files that it maps by now are known to the search, which
 * finds those that it maps later.
 */
static int start_command(struct session *session)
{
	const struct session_options *options = session->options;
	const struct launch_options launch = {
		.own_stdout = options->output && strcmp(options->output, "-") == 0,
		.niceness = session->priority_before,
		.operators = options->mismatch,
		.resources = options->resources,
	};
	int err = launch_command(options->command, &launch, &session->command, &session->probes);

	if (!err && options->config.no_heap)
		probe_set_deinit(&session->probes);
	if (!err)
		err = allocator_search_skip(session->search, session->command.pid);
	if (!err)
		err = plan_resources(&session->probes, session->command.pid, options);
	session->pids = &session->command.pid;
	session->nr_pids = 1;
	return err;
}

int session_targets_find(struct session *session)
{
	const struct session_options *options = session->options;
	int err = allocator_search_create(&session->search);

	if (err)
		return err;
	if (session_is_system_wide(session))
		return find_all_allocators(session);
	return options->command ? start_command(session) : plan_processes(session);
}

int session_targets_check(struct session *session)
{
	const struct session_options *options = session->options;

	if (!options->config.no_heap || session->probes.nr_files || options->config.syscalls)
		return 0;
	diag_error("--no-heap leaves nothing to record: give --pair, --ref or --with, or tell "
		   "leakprobe add");
	return -EINVAL;
}

/*
 * Warns of processes that are stopped already. They stay so, because the reason is unknown: a
 * recorder may have been killed.
 */
static void warn_of_stopped(const struct session *session)
{
	const struct session_options *options = session->options;
	struct process_stat status;

	for (size_t i = 0; i < session->nr_pids && options->nr_pids; i++)
		if (!process_stat_read(session->pids[i], &status) && status.state == 'T')
			diag_warn("process %d was stopped already and stays stopped; `kill -CONT "
				  "%d` continues it",
				  (int)session->pids[i], (int)session->pids[i]);
}

/* Warns of children that exist already: they inherit no event, and are not named. */
static void warn_of_children(const struct session *session)
{
	const struct session_options *options = session->options;
	_cleanup_free_ char *text = NULL;
	struct task_list list = {0};
	size_t size, nr = 0;
	FILE *out;

	if (options->nr_pids && !task_list_read(&list, session->pids, session->nr_pids) &&
	    (out = open_memstream(&text, &size))) {
		for (size_t i = 0; i < list.nr_children; i++)
			if (exempt_processes_is_foreign(list.children[i], session->pids,
							session->nr_pids) &&
			    ++nr <= MAX_CHILDREN_NAMED)
				fprintf(out, "%s%d", nr > 1 ? "," : "", (int)list.children[i]);
		fclose(out);
	}
	task_list_deinit(&list);
	if (nr == 1)
		diag_warn("an existing child, process %s, is not recorded; --children records it, "
			  "too",
			  text);
	else if (nr > 1)
		diag_warn("%zu existing children, processes %s%s, are not recorded; --children "
			  "records them, too",
			  nr, text, nr > MAX_CHILDREN_NAMED ? ",..." : "");
}

int session_targets_warn(struct session *session)
{
	warn_of_stopped(session);
	warn_of_children(session);
	return 0;
}
