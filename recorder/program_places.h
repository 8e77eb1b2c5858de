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
#define PROGRAM_MAX_TYPES  (PROGRAM_NR_EVENTS * PROGRAM_MAX_SITES + 256)

/* Appends the places for @set's probes. Returns 0 or -E2BIG. */
int program_places_find(struct probe_programs *programs, const struct probe_set *set,
			bool only_registered);

/* The same for one file. */
int program_places_find_file(struct probe_programs *programs, const struct probe_file *file,
			     bool only_registered);

/*
 * Fills in @sites and adds the places' events to @events, and those of files that may come later,
 * which a recording must have named before: one for each row of the schema, whatever the file. They
 * serve all files where all processes are recorded, of which there may be many. Returns 0 or
 * -ENOMEM.
 */
int program_places_describe(struct probe_programs *programs, struct program_site *sites,
			    const struct record_config *config, struct record_events *events);

/*
 * Fills in @sites for the places from @first on, of a file that came while recording. Places that
 * no event is for are dropped. Returns how many are left.
 */
size_t program_places_fill_late(struct probe_programs *programs, struct program_site *sites,
				size_t first);

#endif
