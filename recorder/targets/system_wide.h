/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings of all processes, of the system or of a cgroup (RECORD_SYSTEM_WIDE, RECORD_CGROUP):
 * what to record.
 */
#ifndef LEAKTOOLS_RECORDER_SYSTEM_WIDE_H
#define LEAKTOOLS_RECORDER_SYSTEM_WIDE_H

#include "probes/plan/allocator_search.h"
#include "recorder/events/record_events.h"

/*
 * Plans the probes for the allocators of all present processes, *@ret_nr of them, and for our own
 * libc, which future processes are likely to use. @search remembers the files. Returns 0 or a
 * negative errno, reported.
 */
int system_wide_find_allocators(const struct record_config *config, struct allocator_search *search,
				struct probe_set *ret_set, size_t *ret_nr);

/* Reports that recording has begun. @cgroup: its name, or NULL: all processes. */
void system_wide_report_start(const char *cgroup, size_t nr_processes, size_t nr_files);

#endif
