/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What perf script's text leaves out, made up for: which process a thread belongs to, and addresses
 * for frames of which only file and offset are given.
 */
#ifndef LEAKTOOLS_PARSER_PERF_SCRIPT_PLACES_H
#define LEAKTOOLS_PARSER_PERF_SCRIPT_PLACES_H

#include "parser/records/perf_event_types.h"
#include "parser/perfdata/perf_script_line.h"

struct perf_script_places;

/* @consumer gets the mappings and the names. Returns 0 or -ENOMEM. */
int perf_script_places_create(const struct perf_consumer *consumer,
			      struct perf_script_places **ret);
void perf_script_places_destroy(struct perf_script_places *places);

/*
 * The process of thread @tid; @pid is what the line says, or -1. Where no line ever says it, all
 * threads that no process forked are one process. Returns 0 or -ENOMEM.
 */
int perf_script_places_process(struct perf_script_places *places, pid_t pid, pid_t tid,
			       pid_t *ret_pid);
/* Whether that was so for threads that differ. */
bool perf_script_places_guessed(const struct perf_script_places *places);
int perf_script_places_fork(struct perf_script_places *places, const struct perf_task_record *task);
void perf_script_places_exec(struct perf_script_places *places, pid_t pid);

/* Whether @name is not what the thread was called last: @ret_is_new. Returns 0 or -ENOMEM. */
int perf_script_places_name(struct perf_script_places *places, pid_t tid, const char *name,
			    bool *ret_is_new);

/* An address for a frame, in a mapping that the consumer knows. Returns 0 or what it returned. */
int perf_script_places_frame(struct perf_script_places *places, pid_t pid,
			     const struct perf_script_frame *frame, uint64_t *ret);

/* Learns from a stack as perf printed it where in memory its first frame is. */
void perf_script_places_learn(struct perf_script_places *places, const struct perf_sample *sample);

/*
 * Makes @sample's stack, which is @chain, whole: the probed function on top, and the caller, which
 * a stack at an entry lacks. Where the function is, no stack may have shown: then it is in a file
 * "/unknown". The number of frames, at most @max, goes to *@ret_nr. Returns as _frame().
 */
int perf_script_places_complete(struct perf_script_places *places, const struct perf_sample *sample,
				uint64_t *chain, size_t max, size_t *ret_nr);

#endif
