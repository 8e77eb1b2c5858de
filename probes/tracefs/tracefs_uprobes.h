/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Creates and removes uprobes in tracefs, through libtracefs. Messages have the kernel's own
 * reason. Only probes that the caller names are touched.
 */
#ifndef LEAKTOOLS_PROBES_TRACEFS_UPROBES_H
#define LEAKTOOLS_PROBES_TRACEFS_UPROBES_H

#include "probes/tracefs/uprobe_list.h"

#include <stdio.h>

/*
 * Finds tracefs, and mounts it at /sys/kernel/tracing if it is not mounted and the caller may.
 * Returns its path (static), or NULL after reporting how to mount it.
 */
const char *probe_tracefs_dir(void);

/* The path of a descriptor of this process, through which the kernel finds exactly that file. */
#define PROBE_FD_PATH_MAX 32

static inline void probe_fd_path(int fd, char ret[static PROBE_FD_PATH_MAX])
{
	snprintf(ret, PROBE_FD_PATH_MAX, "/proc/self/fd/%d", fd);
}

/* Reads all uprobes, with their hits if @with_hits. Returns 0 or a negative errno, reported. */
int tracefs_uprobes_read(struct uprobe_list *ret, bool with_hits);

/* A uprobe to register. Nothing is copied. */
struct uprobe_spec {
	const char *group, *event;
	bool is_return;
	int fd;		  /* the file */
	const char *path; /* shown in tracefs; without white space or '#' */
	uint64_t offset;  /* in the file */
	const char *fetch_args;
};

/* The line that tracefs_uprobe_create() writes to uprobe_events. The caller frees it. */
char *tracefs_uprobe_definition(const struct uprobe_spec *spec);

/*
 * Registers the uprobe on the file at @spec->fd, wherever its path leads. @errors_before is the
 * earlier text of error_log (NULL if it was empty), so that no older error is taken for the reason.
 * Returns 0 or a negative errno, reported.
 */
int tracefs_uprobe_create(const struct uprobe_spec *spec, const char *errors_before);

/*
 * Removes the event of that name, with this offset and these arguments, unless it is on the file at
 * @spec->fd. Returns 1 if it is there, 0 if it has been removed, or a negative errno, reported
 * unless it is -EBUSY: the event is on another file, and in use.
 */
int tracefs_uprobe_remove_if_elsewhere(const struct uprobe_spec *spec);

/* The id for perf_event_attr.config, or a negative errno, reported. */
int64_t tracefs_uprobe_id(const char *group, const char *event);

/*
 * Removes the event, which must have one place only. Of an event with several, the kernel frees all
 * but the last without a look at whether they are in use, and a list of consumers then leads
 * through freed memory: unregister_trace_uprobe() in kernel/trace/trace_uprobe.c, 5.5 to 7.3.
 * Returns 0, also if the event did not exist; -EBUSY, not reported, if a recorder uses it; or
 * another negative errno, reported.
 */
int tracefs_uprobe_destroy(const char *group, const char *event);

/*
 * Finds the kernel's reason for refusing @command in @after, the text of error_log. NULL: there is
 * none. Entries that @before also has are older. The caller frees it.
 */
char *tracefs_error_reason(const char *before, const char *after, const char *command);

#endif
