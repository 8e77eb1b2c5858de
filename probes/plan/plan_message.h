/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The planned probes of a file, on their way from the process that has analysed it
 * (common/sandbox/sandbox.h). Whoever reads them places breakpoints by them, so everything is
 * checked: the file's owner may have made them. The descriptor, the names of the file, and the
 * definitions for tracefs are not sent, but made anew.
 */
#ifndef LEAKTOOLS_PROBES_PLAN_MESSAGE_H
#define LEAKTOOLS_PROBES_PLAN_MESSAGE_H

#include "probes/plan/probe_set.h"

#include "common/sandbox/message.h"
#include "common/schema/resource_schema.h"
#include "common/proc/mapped_files.h"

/* Writes the probes of @set, which are those of one mapped file. */
void plan_message_put(FILE *to, const struct probe_set *set);

/* Whoever names functions for resources knows their rows, by the names of their events. */
struct plan_rows {
	/* Returns NULL if there is no such event at such a point. */
	const struct resource_call *(*find)(void *context, const char *event,
					    enum probe_point point);
	void *context;
};

/*
 * Reads the probes of @mapped and appends them to @set. @rows: of functions that the user names; or
 * NULL. Returns 0; -EBADMSG if the message is bad, and then @set is as before; or another negative
 * errno.
 */
int plan_message_get(struct message_reader *reader, const struct mapped_file *mapped,
		     const struct plan_rows *rows, struct probe_set *set);

#endif
