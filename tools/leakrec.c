/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakrec: records what processes allocate and release. */
#include "common/diag.h"
#include "common/options.h"
#include "common/proc/cgroup.h"
#include "common/proc/proc_file.h"
#include "common/scope.h"
#include "common/size_range.h"
#include "recorder/events/ring_size.h"
#include "recorder/session/session.h"
#include "report/live/live_process.h"
#include "tools/leakrec_narrow.h"
#include "tools/leakrec_options.h"
#include "top/top_view.h"

#include <errno.h>
#include <signal.h>

/* "leakrec --top: leaky_daemon (4165), only blocks of 3072 bytes"; NULL: out of memory. */
static char *describe_targets(const struct session_options *options)
{
	char comm[32] = "?";
	char *title = NULL;
	size_t size;
	FILE *out = open_memstream(&title, &size);

	if (!out)
		return NULL;
	fputs("leakrec --top: ", out);
	if (options->nr_pids > 1) {
		fprintf(out, "%zu processes", options->nr_pids);
	} else {
		if (!proc_file_read(options->pids[0], "comm", comm, sizeof(comm)))
			comm[strcspn(comm, "\n")] = '\0';
		diag_print_escaped(out, comm, NULL);
		fprintf(out, " (%d)", (int)options->pids[0]);
	}
	if (options->config.has_sizes) {
		fputs(", only blocks of ", out);
		size_range_write(out, &options->config.sizes);
		fputs(" bytes", out);
	}
	if (fclose(out) == 0)
		return title;
	free(title);
	return NULL;
}

static int run_with_top(struct session_options *options)
{
	_cleanup_free_ char *title = describe_targets(options);
	struct top_view view;
	int err, status, command_status;

	if (top_view_start(title ? title : "leakrec --top", &view))
		return DIAG_EXIT_FAILED;
	options->view_fd = view.stream_fd;
	options->status = view.status;
	err = session_run(options, &command_status);
	status = top_view_finish(&view);
	return err ? DIAG_EXIT_FAILED : status;
}

static int run_with_live(struct session_options *options, const struct live_options *live)
{
	struct live_process process;
	int err, command_status;

	if (live_process_start(live, &process))
		return DIAG_EXIT_FAILED;
	options->live_parser = process.pid;
	options->view_fd = process.stream_fd;
	options->status = process.status;
	err = session_run(options, &command_status);
	/* Beside a recording, the state is no more than a copy. */
	if (live_process_finish(&process) && (!options->output || options->needs_live_parser))
		err = -EIO;
	return err ? DIAG_EXIT_FAILED : command_status;
}

/* Finds the processes to record if they are not named, and checks them. */
static int find_processes(struct session_options *options, const struct followed *followed,
			  struct process_list *list)
{
	int err = followed_wait(followed, options->manager, list);

	options->pids = list->pids;
	options->nr_pids = list->nr;
	options->pids_are_found = true;
	return err ? err : leakrec_options_check_processes(options);
}

static int run(struct session_options *options, const struct leakrec_options *own)
{
	int command_status;

	if (options->cgroup && (options->config.cgroup_fd = cgroup_open(options->cgroup)) < 0)
		return DIAG_EXIT_FAILED;
	if (options->with_view)
		return run_with_top(options);
	if (live_is_wanted(&own->live))
		return run_with_live(options, &own->live);
	return session_run(options, &command_status) ? DIAG_EXIT_FAILED : command_status;
}

int main(int argc, char **argv)
{
	struct resource_specs resources = {0};
	struct service_manager manager;
	struct process_list found = {0};
	struct call_list calls = {0};
	struct leakrec_options own;
	struct session_options options = {
		.compression_level = SESSION_DEFAULT_COMPRESSION,
		.view_fd = -1,
		.resources = &resources,
		.calls = &calls,
		.manager = &manager,
		.config =
			{
				.cgroup_fd = -1,
				.on_overload = OVERLOAD_HOLD,
				.call_graph = CALL_GRAPH_DWARF,
				.ring_pages = ring_size_default(),
			},
		.argc = argc,
		.argv = argv,
	};
	int err, status;

	diag_begin("leakrec");
	/* Where files are limited, a copy in memory is a write error. A user chose its size. */
	signal(SIGXFSZ, SIG_IGN);
	service_manager_init(&manager);
	err = leakrec_options_parse(argc, argv, &options, &own);
	if (err)
		status = options_exit_status(err);
	else if ((own.narrow && leakrec_narrow_read(own.narrow, &calls)) ||
		 (leakrec_options_follow(&own) && find_processes(&options, &own.followed, &found)))
		status = DIAG_EXIT_FAILED;
	else
		status = run(&options, &own);
	call_list_deinit(&calls);
	process_list_deinit(&found);
	leakrec_options_deinit(&own);
	resource_specs_deinit(&resources);
	service_manager_deinit(&manager);
	return status;
}
