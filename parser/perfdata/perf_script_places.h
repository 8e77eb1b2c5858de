/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Substitutes for what perf script's text lacks: the process of a thread, and addresses for frames
 * of which only file and offset are given.
 */
#ifndef LEAKTOOLS_PARSER_PERF_SCRIPT_PLACES_H
#define LEAKTOOLS_PARSER_PERF_SCRIPT_PLACES_H

#include "parser/records/perf_event_types.h"
#include "parser/perfdata/perf_script_line.h"

struct perf_script_places;

/* @consumer receives the mappings and the names. Returns 0 or -ENOMEM. */
int perf_script_places_create(const struct perf_consumer *consumer,
			      struct perf_script_places **ret);
void perf_script_places_destroy(struct perf_script_places *places);

/*
 * Finds the process of thread @tid. @pid is what the line says, or -1. If no line ever says it, all
 * threads that no process forked make one process. Returns 0 or -ENOMEM.
 */
int perf_script_places_process(struct perf_script_places *places, pid_t pid, pid_t tid,
			       pid_t *ret_pid);
/* True if several threads became one process that way. */
bool perf_script_places_guessed(const struct perf_script_places *places);
/*
 * Looks at the first frame of @sample's stack: if its address is that of the probe, or the one that
 * the function returns to, the text has addresses in memory.
 */
void perf_script_places_begin_stack(struct perf_script_places *places,
				    const struct perf_sample *sample,
				    const struct perf_script_frame *first);
/* True if a frame of a file had an address in memory: its line is not known. */
bool perf_script_places_in_memory(const struct perf_script_places *places);
int perf_script_places_fork(struct perf_script_places *places, const struct perf_task_record *task);
void perf_script_places_exec(struct perf_script_places *places, pid_t pid);

/*
 * Stores the thread's @name. *@ret_is_new: it differs from the last one. perf's substitute for the
 * name of a thread that has ended, ":TID", is none. Returns 0 or -ENOMEM.
 */
int perf_script_places_name(struct perf_script_places *places, pid_t tid, const char *name,
			    bool *ret_is_new);

/*
 * Makes an address for a frame, in a mapping that the consumer gets. Returns 0 or the consumer's
 * value.
 */
int perf_script_places_frame(struct perf_script_places *places, pid_t pid,
			     const struct perf_script_frame *frame, uint64_t *ret);

/* Learns, from a stack as perf printed it, the address of its first frame in memory. */
void perf_script_places_learn(struct perf_script_places *places, const struct perf_sample *sample);

/*
 * Completes @sample's stack, @chain: adds the probed function, and the caller, which a stack at an
 * entry lacks. If no stack has shown where the function is, it is in a file "/unknown". The number
 * of frames, at most @max, goes to *@ret_nr. Returns as _frame().
 */
int perf_script_places_complete(struct perf_script_places *places, const struct perf_sample *sample,
				uint64_t *chain, size_t max, size_t *ret_nr);

#endif
