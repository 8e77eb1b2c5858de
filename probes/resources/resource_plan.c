/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/resources/resource_plan.h"

#include "probes/elf/analysis_limit.h"
#include "probes/elf/function_lines.h"
#include "probes/plan/file_sandbox.h"
#include "probes/plan/findings_message.h"
#include "probes/plan/plan_message.h"
#include "probes/resources/resource_targets.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is looked for in the files of a process. */
struct analysis {
	const struct mapped_file *files;
	struct resource_specs *specs;
	struct found_functions *found;		 /* for each pair */
	const struct debug_symbols_files *debug; /* of the only file; or NULL */
	struct probe_set *set;			 /* NULL: nothing is planned */
	bool is_quiet;
};

/* In the process without privileges. */

/* True if a line may be in a debug file. */
static bool wants_debug_file(const struct resource_specs *specs, const struct elf_image *image,
			     struct debug_symbols_id *ret)
{
	for (size_t i = 0; i < specs->nr; i++)
		for (size_t j = 0; j < specs->pairs[i].nr; j++)
			if (specs->pairs[i].calls[j].naming == PAIR_BY_LINE)
				return !function_lines_are_in(image) &&
				       debug_symbols_id(image, ret);
	return false;
}

static void put_found(FILE *to, const struct analysis *analysis)
{
	for (size_t i = 0; i < analysis->specs->nr; i++)
		for (size_t j = 0; j < analysis->specs->pairs[i].nr; j++)
			message_put_number(to, analysis->found[i].is_found[j]);
}

static void analyse(void *context, size_t nr, FILE *reply)
{
	const struct analysis *analysis = context;
	const struct mapped_file *file = &analysis->files[nr];
	struct debug_symbols_id wanted;
	struct probe_set set = {0};
	struct elf_image image;
	bool is_wanted = false;
	int err = 0;

	memset(analysis->found, 0, analysis->specs->nr * sizeof(*analysis->found));
	analysis_limit_begin(ANALYSIS_LIMIT_NS);
	if (elf_image_init(&image, file->fd) == 0) {
		is_wanted = image.is_native && !analysis->debug &&
			    wants_debug_file(analysis->specs, &image, &wanted);
		if (image.is_native && !is_wanted && analysis->set)
			err = resource_targets_plan(&set, file, &image, analysis->debug,
						    analysis->specs, analysis->found);
		else if (image.is_native && !is_wanted)
			resource_functions_mark(file, &image, analysis->debug, analysis->specs,
						analysis->found);
		elf_image_deinit(&image);
	}
	analysis_limit_end();
	message_put_number(reply, (uint64_t)(int64_t)err);
	findings_message_put_wish(reply, is_wanted, &wanted);
	put_found(reply, analysis);
	plan_message_put(reply, &set);
	probe_set_deinit(&set);
}

/* In the process that waits. */

static int run(const struct analysis *analysis, size_t nr);

static const struct resource_call *find_row(void *context, const char *name, enum probe_point point)
{
	struct resource_specs *specs = context;
	struct resource_event event;
	struct resource_call *row;

	if (resource_event_parse(name, &event) ||
	    (event.stage == RESOURCE_EXIT) != (point == PROBE_EXIT))
		return NULL;
	for (size_t i = 0; i < specs->nr; i++)
		for (size_t j = 0; j < specs->pairs[i].nr; j++) {
			const struct pair_call *call = &specs->pairs[i].calls[j];
			char own[RESOURCE_EVENT_MAX + 1];

			resource_targets_name(&specs->pairs[i], call, &event);
			resource_event_format(&event, own);
			if (strcmp(own, name) == 0)
				return resource_targets_row(&specs->schemas, call, &event, &row)
					       ? NULL
					       : row;
		}
	return NULL;
}

static void leave_out(void *context, size_t nr)
{
	const struct analysis *analysis = context;

	if (!analysis->is_quiet)
		file_sandbox_tell_left_out(&analysis->files[nr],
					   "functions of --pair and --ref there are not probed");
}

static int run_with_debug_file(const struct analysis *analysis, size_t nr,
			       const struct debug_symbols_id *wanted)
{
	const struct mapped_file *file = &analysis->files[nr];
	struct analysis again = *analysis;
	struct debug_symbols_files debug;
	int err;

	debug_symbols_open(wanted, file->fd, file->path, file->display, &debug);
	again.files = file;
	again.debug = &debug;
	err = run(&again, 1);
	debug_symbols_files_deinit(&debug);
	return err;
}

/* Takes what the reply says of file @nr. Returns 0 or a negative errno, reported. */
static int take(void *context, size_t nr, struct message_reader *reader)
{
	const struct analysis *analysis = context;
	const struct plan_rows rows = {find_row, analysis->specs};
	struct debug_symbols_id wanted;
	int err = (int)message_get_number(reader, -4095, 0);
	bool is_wanted = findings_message_get_wish(reader, &wanted);

	if (!err && !reader->is_bad && is_wanted && !analysis->debug)
		return run_with_debug_file(analysis, nr, &wanted);
	for (size_t i = 0; i < analysis->specs->nr; i++)
		for (size_t j = 0; j < analysis->specs->pairs[i].nr; j++)
			analysis->found[i].is_found[j] |= message_get_number(reader, false, true);
	if (!err && analysis->set)
		err = plan_message_get(reader, &analysis->files[nr], &rows, analysis->set);
	if (reader->is_bad) {
		leave_out(context, nr);
		return 0;
	}
	if (err && !analysis->is_quiet)
		diag_error("cannot plan probes for %s: %s", analysis->files[nr].display,
			   strerror(-err));
	return err;
}

static int run(const struct analysis *analysis, size_t nr)
{
	const struct file_sandbox sandbox = {
		.files = analysis->files,
		.nr = nr,
		.debug = analysis->debug,
		.cpu_limit_ns = ANALYSIS_LIMIT_NS,
		.analyse = analyse,
		.take = take,
		.leave_out = leave_out,
		.context = (void *)analysis,
	};

	return file_sandbox_run(&sandbox);
}

int resource_plan_pid(struct probe_set *set, pid_t pid, struct resource_specs *specs)
{
	_cleanup_free_ struct found_functions *found = calloc(specs->nr + 1, sizeof(*found));
	struct analysis analysis = {.specs = specs, .found = found, .set = set};
	struct mapped_files files;
	int err;

	if (!specs->nr)
		return 0;
	if (!found) {
		diag_error("cannot plan probes: out of memory");
		return -ENOMEM;
	}
	err = mapped_files_open(&files, pid);
	if (err)
		return err;
	analysis.files = files.files;
	err = run(&analysis, files.nr);
	if (!err)
		err = resource_functions_check(pid, specs, found);
	mapped_files_deinit(&files);
	return err;
}

bool resource_plan_is_mapped(const struct resource_specs *specs, pid_t pid)
{
	_cleanup_free_ struct found_functions *found = calloc(specs->nr + 1, sizeof(*found));
	/* Without a plan, no row is added. */
	struct analysis analysis = {
		.specs = (struct resource_specs *)specs,
		.found = found,
		.is_quiet = true,
	};
	struct mapped_files files;
	bool all = true;

	if (!specs->nr || !found || mapped_files_open(&files, pid))
		return true;
	analysis.files = files.files;
	run(&analysis, files.nr);
	for (size_t i = 0; i < specs->nr; i++)
		for (size_t j = 0; j < specs->pairs[i].nr; j++)
			all &= found[i].is_found[j];
	mapped_files_deinit(&files);
	return all;
}
