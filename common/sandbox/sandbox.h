/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs an analysis of what others own in a child process without privileges (unprivileged.h). The
 * child has this process's memory, as a copy, and none of its descriptors but those that it is
 * given. What it replies is hostile: message.h reads it.
 */
#ifndef LEAKTOOLS_COMMON_SANDBOX_H
#define LEAKTOOLS_COMMON_SANDBOX_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The memory that an analysis may take, besides what this process has. */
#define SANDBOX_MAX_BYTES (256ull << 20)

struct sandbox_task {
	/*
	 * Does the work in the child, in parts: writes the reply of part @nr to @reply. Its result
	 * is ignored: a failure is part of the reply.
	 */
	void (*run)(void *context, size_t nr, FILE *reply);
	void *context;
	size_t nr_parts;
	const int *fds; /* that the child keeps; the same number may occur several times */
	size_t nr_fds;
	uint64_t cpu_ns, elapsed_ns; /* limits for one part; then the child is ended */
	/* Called every few milliseconds while the child works; or NULL. */
	void (*meanwhile)(void *context);
	void *meanwhile_context;
};

struct sandbox_reply {
	char *bytes; /* of one part after the other */
	size_t size_bytes;
	size_t *part_ends; /* offsets in @bytes */
	size_t nr_parts;   /* that are complete; the next one failed if that is not all */
	char *messages;	   /* what the child has to say to the user; a string */
	uint64_t cpu_ns;   /* that the child took */
};

/*
 * Runs the task. Returns 0, also if the child ended early: then ret->nr_parts is less than
 * task->nr_parts; or a negative errno, not reported: the child could not be started; -EINTR: a
 * signal that ends this process is pending. Release @ret with sandbox_reply_deinit() in any case.
 */
int sandbox_run(const struct sandbox_task *task, struct sandbox_reply *ret);

/* Prints the child's messages as this process's. */
void sandbox_reply_print(const struct sandbox_reply *reply);
void sandbox_reply_deinit(struct sandbox_reply *reply);

#endif
