/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The uprobes that tracefs knows, as read from uprobe_events and uprobe_profile. libtracefs 1.6.4's
 * tracefs_dynevent_get_all() takes kprobes for uprobes, so the files are parsed here.
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
	struct uprobe *probes; /* in tracefs's order: by time of registration */
	size_t nr;
};

/*
 * Parses the text of uprobe_events. A line that is no uprobe is skipped. Returns 0 or -ENOMEM.
 * Release with uprobe_list_deinit().
 */
int uprobe_list_parse(struct uprobe_list *ret, const char *events);
void uprobe_list_deinit(struct uprobe_list *list);

/*
 * Takes the hits from the text of uprobe_profile. Its lines bear no group, but stand in the order
 * of uprobe_events. Returns 0, or -EAGAIN if the two do not belong together, that is, probes came
 * or went between reading them.
 */
int uprobe_list_add_profile(struct uprobe_list *list, const char *profile);

/* The first probe of that name, or NULL. */
const struct uprobe *uprobe_list_find(const struct uprobe_list *list, const char *group,
				      const char *event);

/* The probe of that name at @offset, or NULL: an event may have several places. */
const struct uprobe *uprobe_list_find_at(const struct uprobe_list *list, const char *group,
					 const char *event, uint64_t offset);

#endif
