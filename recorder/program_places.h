/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which places the recording programs watch, what they write there, and how the recording describes
 * it: attributes, and formats as tracefs has them for the same probe.
 */
#ifndef LEAKTOOLS_RECORDER_PROGRAM_PLACES_H
#define LEAKTOOLS_RECORDER_PROGRAM_PLACES_H

#include "recorder/probe_programs.h"

/* Ids and types of events that no perf event stands for; the kernel's count from 1. */
#define PROGRAM_FIRST_ID   (1ULL << 32)
#define PROGRAM_FIRST_TYPE 60000 /* 16 bits, and types of tracefs' are few */

/* Appends the places for @set's probes. Returns 0 or -E2BIG. */
int program_places_find(struct probe_programs *programs, const struct probe_set *set,
			bool only_registered);

/* Fills in @sites and adds the places' events to @events. Returns 0 or -ENOMEM. */
int program_places_describe(const struct probe_programs *programs, struct program_site *sites,
			    const struct record_config *config, struct record_events *events);

#endif
