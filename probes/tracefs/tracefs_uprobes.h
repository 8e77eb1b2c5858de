/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Uprobes in tracefs: made and removed through libtracefs, with the kernel's own reason in every
 * message. Nothing here touches a probe that it was not told of by name.
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

/* The path of this process's descriptor, by which the kernel finds that very file. */
#define PROBE_FD_PATH_MAX 32

static inline void probe_fd_path(int fd, char ret[static PROBE_FD_PATH_MAX])
{
	snprintf(ret, PROBE_FD_PATH_MAX, "/proc/self/fd/%d", fd);
}

/* Reads the uprobes there are, @with_hits or without. Returns 0 or a negative errno, reported. */
int tracefs_uprobes_read(struct uprobe_list *ret, bool with_hits);

/* What tracefs is to register; nothing is kept. */
struct uprobe_spec {
	const char *group, *event;
	bool is_return;
	int fd;		  /* the file */
	const char *path; /* what readers of tracefs see of it; without white space or '#' */
	uint64_t offset;  /* in the file */
	const char *fetch_args;
};

/* The line that tracefs_uprobe_create() writes to uprobe_events; the caller frees it. */
char *tracefs_uprobe_definition(const struct uprobe_spec *spec);

/*
 * Registers it, on the file that @spec->fd is, whatever its path leads to. @errors_before is the
 * text of error_log from before, so that no older error is taken for the reason (NULL if it was
 * empty). Returns 0 or a negative errno, reported.
 */
int tracefs_uprobe_create(const struct uprobe_spec *spec, const char *errors_before);

/*
 * Whether an event of that name, with this offset and these arguments, which is there, is on the
 * file that @spec->fd is. Returns 1 or 0, and then the event is gone, or a negative errno,
 * reported.
 */
int tracefs_uprobe_is_on_file(const struct uprobe_spec *spec);

/* The id for perf_event_attr.config, or a negative errno, reported. */
int64_t tracefs_uprobe_id(const char *group, const char *event);

/*
 * Removes the event. Returns 0, also if it was gone already; -EBUSY, not reported, if a recorder
 * uses it; or another negative errno, reported.
 */
int tracefs_uprobe_destroy(const char *group, const char *event);

/*
 * The kernel's reason in the text of error_log for refusing @command, or NULL if it holds none. An
 * entry that @before holds too is an older one. The caller frees it.
 */
char *tracefs_error_reason(const char *before, const char *after, const char *command);

#endif
