/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The uprobes in tracefs, parsed from uprobe_events and uprobe_profile. libtracefs 1.6.4 cannot be
 * used: its tracefs_dynevent_get_all() lists kprobes as uprobes.
 */
#ifndef LEAKTOOLS_PROBES_UPROBE_LIST_H
#define LEAKTOOLS_PROBES_UPROBE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uprobe {
	char *group, *event;
	char *path;
	char *fetch_args; /* "" if none */
	uint64_t offset;  /* in the file */
	bool is_return;
	bool has_hits, has_misses; /* not every kernel counts misses */
	uint64_t hits, misses;
};

struct uprobe_list {
	struct uprobe *probes; /* in the order of tracefs: by time of registration */
	size_t nr;
};

/*
 * Parses the text of uprobe_events. Lines that are not uprobes are skipped. Returns 0 or -ENOMEM.
 * Release with uprobe_list_deinit().
 */
int uprobe_list_parse(struct uprobe_list *ret, const char *events);
void uprobe_list_deinit(struct uprobe_list *list);

/*
 * Adds the hits from the text of uprobe_profile. Its lines have no group, but are in the order of
 * uprobe_events. Returns 0, or -EAGAIN if the two texts do not match, since probes came or went
 * between the readings.
 */
int uprobe_list_add_profile(struct uprobe_list *list, const char *profile);

/* The first probe of that name, or NULL. */
const struct uprobe *uprobe_list_find(const struct uprobe_list *list, const char *group,
				      const char *event);

/*
 * True if @probe's event has other places, too. Such an event must not be removed: see
 * tracefs_uprobe_destroy().
 */
bool uprobe_list_has_others(const struct uprobe_list *list, const struct uprobe *probe);

#endif
