/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the side records (COMM, FORK, EXIT, MMAP2) say of the living processes: their threads, names
 * and mappings. It can be written again, as records of the time 0, like those of synthesize.h, but
 * as of a moment of the recording, not of /proc.
 *
 * The kernel does not tell of munmap(). A mapping goes when a later one covers it, or with its
 * process. Memory is bounded (SIDE_STATE_MAX_BYTES): later mappings are left out, and counted.
 */
#ifndef LEAKTOOLS_RECORDER_SIDE_STATE_H
#define LEAKTOOLS_RECORDER_SIDE_STATE_H

#include "recorder/output/perf_writer.h"

#define SIDE_STATE_MAX_BYTES ((size_t)64 << 20)
#define SIDE_STATE_MAX_MAPS  16384 /* of a process */

struct side_state;

/* NULL: out of memory. */
struct side_state *side_state_create(void);
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
