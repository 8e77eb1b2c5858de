/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures what conditions are about. What that needs is opened before rights are given up. */
#ifndef LEAKTOOLS_RECORDER_CONDITION_SOURCES_H
#define LEAKTOOLS_RECORDER_CONDITION_SOURCES_H

#include "recorder/conditions/condition.h"
#include "recorder/output/memory_samples.h"

struct condition_sources {
	const struct memory_samples *memory; /* the processes; NULL: nobody asks for their memory */
	int pressure_fd, events_fd;	     /* -1: the same */
};

/*
 * Opens what @conditions need: memory.events of the cgroup @cgroup_fd, or, if that is -1, of the
 * one that process @pid is in; its memory.pressure, or if it has none /proc/pressure/memory.
 * Returns 0 or a negative errno, reported.
 */
int condition_sources_open(struct condition_sources *ret, const struct condition *conditions,
			   size_t nr, const struct memory_samples *memory, int cgroup_fd,
			   pid_t pid);
void condition_sources_close(struct condition_sources *sources);

struct condition_values condition_sources_read(const struct condition_sources *sources,
					       uint64_t now_ns);

/* "some avg10=0.12 ..." as hundredths of a percent; UINT64_MAX: it is something else. */
uint64_t condition_sources_pressure(const char *text);

#endif
