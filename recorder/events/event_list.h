/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which perf events a recording has. They are listed here, and opened by record_group_open().
 * @format is event_attr_read_format()'s. The functions return 0 or a negative errno, which is
 * reported unless it is -ENOMEM.
 */
#ifndef LEAKTOOLS_RECORDER_EVENT_LIST_H
#define LEAKTOOLS_RECORDER_EVENT_LIST_H

#include "probes/plan/probe_set.h"
#include "recorder/events/record_config.h"
#include "recorder/events/record_group.h"

#define SIDE_RING_PAGES 64

/* Adds what tells of mappings, forks, exits and names. */
int event_list_add_side(struct record_group *group, const struct record_config *config,
			uint64_t format);

/* Adds the registered probes of the sets and the system calls, with the user's filters. */
int event_list_add_probes(struct record_group *group, const struct probe_set *const *sets,
			  size_t nr_sets, const struct record_config *config, uint64_t format);

#endif
