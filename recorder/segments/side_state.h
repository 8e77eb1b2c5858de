/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the side records (COMM, FORK, EXIT, MMAP2) say of the living processes: their threads, names
 * and mappings. It can be written again, as records of the time 0, like those of synthesize.h, but
 * as of a moment of the recording, not of /proc.
 *
 * The kernel does not tell of munmap(). What a later mapping covers goes, and all of them go with
 * their process. Their number is bounded, for memory and for what is written with each segment:
 * later mappings are left out, and counted.
 */
#ifndef LEAKTOOLS_RECORDER_SIDE_STATE_H
#define LEAKTOOLS_RECORDER_SIDE_STATE_H

#include "recorder/output/perf_writer.h"

#define SIDE_STATE_MAX_MAPS 16384 /* of a process */

struct side_state;

/*
 * @max_map_bytes: of the mappings of all processes, as they are written. In memory, those that
 * processes have in common are there once. NULL: out of memory.
 */
struct side_state *side_state_create(size_t max_map_bytes);
void side_state_destroy(struct side_state *state);

/*
 * Notes a record with its trailer, in any order; others than side records are ignored. Returns 0 or
 * -ENOMEM, as the next one.
 */
int side_state_note(struct side_state *state, const struct perf_event_header *record);

/* Applies what happened up to @until_ns. All of that was noted. */
int side_state_apply(struct side_state *state, uint64_t until_ns);

/* Writes the state. Returns 0 or the writer's error. */
int side_state_write(const struct side_state *state, struct perf_writer *writer);

/* How many mappings were left out. */
uint64_t side_state_left_out(const struct side_state *state);

#endif
