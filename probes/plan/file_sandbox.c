/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/file_sandbox.h"

#include "common/diag.h"
#include "common/sandbox/sandbox.h"
#include "common/scope.h"
#include "probes/elf/analysis_limit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The parent waits longer than the child's own limit, which names the file better. */
#define GRACE_NS 500000000ull

/* Files of one owner, which are analysed by one process. */
struct part {
	const struct file_sandbox *sandbox;
	size_t first, nr;
};

/* In the child. */
static void analyse(void *context, size_t nr, FILE *reply)
{
	const struct part *part = context;

	/* What the parent does meanwhile is not for the child. */
	analysis_limit_set_pause(NULL, NULL);
	part->sandbox->analyse(part->sandbox->context, part->first + nr, reply);
}

/* Starts the process, and waits for it. */
static int wait_for_reply(const struct part *part, struct sandbox_reply *ret)
{
	const struct file_sandbox *sandbox = part->sandbox;
	size_t nr_debug = sandbox->debug ? sandbox->debug->nr : 0;
	_cleanup_free_ int *fds = calloc(part->nr + nr_debug + 1, sizeof(*fds));
	struct sandbox_task task = {
		.run = analyse,
		.context = (void *)part,
		.nr_parts = part->nr,
		.fds = fds,
		.nr_fds = part->nr + nr_debug,
		.cpu_ns = sandbox->cpu_limit_ns + GRACE_NS,
		.elapsed_ns = analysis_limit_elapsed_ns(sandbox->cpu_limit_ns) + GRACE_NS,
		.meanwhile = analysis_limit_pause,
	};
	int err;

	*ret = (struct sandbox_reply){0};
	if (!fds)
		return -ENOMEM;
	for (size_t i = 0; i < part->nr; i++)
		fds[i] = sandbox->files[part->first + i].fd;
	for (size_t i = 0; i < nr_debug; i++)
		fds[part->nr + i] = sandbox->debug->fds[i];
	err = sandbox_run(&task, ret);
	analysis_limit_count(ret->cpu_ns);
	return err;
}

/*
 * Analyses files by one process. *@ret_nr: how many of them were dealt with; it may have ended
 * before the last one. Returns 0 or a negative errno, reported.
 */
static int run_part(const struct part *part, size_t *ret_nr)
{
	const struct file_sandbox *sandbox = part->sandbox;
	struct sandbox_reply reply;
	size_t from = 0;
	int err = wait_for_reply(part, &reply);

	*ret_nr = 0;
	if (err && err != -EINTR)
		diag_error("cannot analyse files: %s", strerror(-err));
	if (!err)
		sandbox_reply_print(&reply);
	for (size_t i = 0; i < reply.nr_parts && !err; i++) {
		struct message_reader reader = {reply.bytes + from,
						reply.bytes + reply.part_ends[i], false};

		err = sandbox->take(sandbox->context, part->first + i, &reader);
		from = reply.part_ends[i];
		*ret_nr = i + 1;
	}
	if (!err && *ret_nr < part->nr) {
		sandbox->leave_out(sandbox->context, part->first + *ret_nr);
		++*ret_nr;
	}
	sandbox_reply_deinit(&reply);
	return err;
}

int file_sandbox_run(const struct file_sandbox *sandbox)
{
	const struct mapped_file *files = sandbox->files;
	int err = 0;

	for (size_t from = 0, done; from < sandbox->nr && !err; from += done) {
		struct part part = {sandbox, from, 1};

		while (from + part.nr < sandbox->nr &&
		       files[from + part.nr].stat.st_uid == files[from].stat.st_uid)
			part.nr++;
		err = run_part(&part, &done);
	}
	return err;
}

void file_sandbox_tell_left_out(const struct mapped_file *file, const char *consequence)
{
	diag_warn("%s: its symbol tables are damaged, or it takes too long or too much memory to "
		  "analyse; %s",
		  file->display, consequence);
}
