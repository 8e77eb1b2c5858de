/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Feeds a heap tracker with events that a test makes up, as a recording would have them. Each event
 * is 10 ns later than the one before.
 */
#ifndef LEAKTOOLS_TEST_SUPPORT_HEAP_FEED_H
#define LEAKTOOLS_TEST_SUPPORT_HEAP_FEED_H

#include "parser/calls/heap_tracker.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

/* Addresses of the simulated libc's functions, and of the program's calls. */
#define FEED_LIBC    0x7f0000090000u
#define FEED_PROGRAM 0x555500001234u
/* Return addresses in the allocator's own code. */
#define FEED_IN_LIBC 0x7f0000090a52u

struct feed {
	struct heap_tracker *tracker;
	uint64_t sequence;
	bool callers; /* recorded by leakrec, but not by perf record */
	/* Values for the next events. */
	pid_t pid, tid;
	uint64_t caller;
	uint64_t probe_address;
	uint32_t stack_id;
};

static inline void feed_init(struct feed *feed, const struct heap_observer *observer)
{
	*feed = (struct feed){
		.callers = true,
		.pid = 100,
		.tid = 100,
		.caller = FEED_PROGRAM,
	};
	assert_int_equal(heap_tracker_create(observer, &feed->tracker), 0);
}

static inline void feed_deinit(struct feed *feed)
{
	heap_tracker_destroy(feed->tracker);
}

static inline void feed_as(struct feed *feed, pid_t pid, pid_t tid)
{
	feed->pid = pid;
	feed->tid = tid;
}

static inline struct perf_origin feed_origin(struct feed *feed)
{
	feed->sequence++;
	return (struct perf_origin){
		.time_ns = feed->sequence * 10,
		.sequence = feed->sequence,
		.pid = feed->pid,
		.tid = feed->tid,
	};
}

static inline uint64_t feed_function_address(const struct probe_schema *schema)
{
	size_t nr;

	return FEED_LIBC + 0x100 * (uint64_t)(schema - probe_schema_table(&nr));
}

/* Sends @sample, of which all but origin, event and stack are set. Returns its sequence number. */
static inline uint64_t feed_send(struct feed *feed, const char *function, enum probe_point point,
				 struct perf_sample *sample)
{
	struct perf_event_desc event = {
		.schema = probe_schema_find(function),
		.point = point,
	};

	assert_non_null(event.schema);
	sample->event = &event;
	sample->origin = feed_origin(feed);
	sample->probe_address =
		feed->probe_address ? feed->probe_address : feed_function_address(event.schema);
	assert_int_equal(heap_tracker_sample(feed->tracker, sample, feed->stack_id), 0);
	sample->event = NULL;
	return feed->sequence;
}

static inline uint64_t feed_entry(struct feed *feed, const char *function, uint64_t a, uint64_t b,
				  uint64_t c)
{
	struct perf_sample sample = {.args = {a, b, c}};

	sample.caller = feed->callers ? feed->caller : 0;
	return feed_send(feed, function, PROBE_ENTRY, &sample);
}

static inline uint64_t feed_return(struct feed *feed, const char *function, uint64_t value)
{
	struct perf_sample sample = {.ret = value, .return_address = feed->caller};

	return feed_send(feed, function, PROBE_RETURN, &sample);
}

static inline uint64_t feed_store(struct feed *feed, uint64_t memptr, uint64_t block)
{
	struct perf_sample sample = {.block = block, .args = {memptr}};

	return feed_send(feed, "posix_memalign", PROBE_STORE, &sample);
}

/* Entry and return in one event. */
static inline uint64_t feed_call(struct feed *feed, const char *function, uint64_t a, uint64_t b,
				 uint64_t value)
{
	struct perf_sample sample = {
		.args = {a, b},
		.ret = value,
		.caller = feed->caller,
		.return_address = feed->caller,
	};

	return feed_send(feed, function, PROBE_CALL, &sample);
}

/* Send whole calls. Return the sequence number of the last event. */
static inline uint64_t feed_malloc(struct feed *feed, uint64_t size, uint64_t block)
{
	feed_entry(feed, "malloc", size, 0, 0);
	return feed_return(feed, "malloc", block);
}

static inline uint64_t feed_realloc(struct feed *feed, uint64_t old, uint64_t size, uint64_t block)
{
	feed_entry(feed, "realloc", old, size, 0);
	return feed_return(feed, "realloc", block);
}

static inline uint64_t feed_free(struct feed *feed, uint64_t block)
{
	return feed_entry(feed, "free", block, 0, 0);
}

static inline struct perf_task_record feed_task(struct feed *feed, pid_t pid, pid_t ppid, pid_t tid,
						pid_t ptid)
{
	return (struct perf_task_record){
		.origin = feed_origin(feed),
		.pid = pid,
		.ppid = ppid,
		.tid = tid,
		.ptid = ptid,
	};
}

/* The current thread creates a process or a thread. */
static inline void feed_fork(struct feed *feed, pid_t child)
{
	struct perf_task_record record = feed_task(feed, child, feed->pid, child, feed->tid);

	assert_int_equal(heap_tracker_fork(feed->tracker, &record), 0);
}

static inline void feed_new_thread(struct feed *feed, pid_t tid)
{
	struct perf_task_record record = feed_task(feed, feed->pid, feed->pid, tid, feed->tid);

	assert_int_equal(heap_tracker_fork(feed->tracker, &record), 0);
}

static inline void feed_newtask(struct feed *feed, pid_t child, uint64_t clone_flags)
{
	struct perf_event_desc event = {.is_newtask = true};
	struct perf_sample sample = {
		.origin = feed_origin(feed),
		.event = &event,
		.newtask_pid = child,
		.newtask_clone_flags = clone_flags,
	};

	assert_int_equal(heap_tracker_sample(feed->tracker, &sample, 0), 0);
}

static inline void feed_exit(struct feed *feed, pid_t pid, pid_t tid)
{
	struct perf_task_record record = feed_task(feed, pid, pid, tid, tid);

	assert_int_equal(heap_tracker_exit(feed->tracker, &record), 0);
}

static inline void feed_comm(struct feed *feed, pid_t pid, pid_t tid, bool exec, const char *comm)
{
	struct perf_comm_record record = {
		.origin = feed_origin(feed),
		.pid = pid,
		.tid = tid,
		.exec = exec,
		.comm = comm,
	};

	assert_int_equal(heap_tracker_comm(feed->tracker, &record), 0);
}

static inline void feed_finish(struct feed *feed)
{
	assert_int_equal(heap_tracker_finish(feed->tracker), 0);
}

static inline const struct heap_tracker_stats *feed_stats(const struct feed *feed)
{
	return heap_tracker_stats(feed->tracker);
}

static inline uint64_t feed_nr_anomalies(const struct feed *feed)
{
	uint64_t nr = 0;

	for (int i = 0; i < ANOMALY_NR_KINDS; i++)
		nr += feed_stats(feed)->anomalies[i];
	return nr;
}

/* Returns the only anomaly. Call it after feed_finish(). */
static inline const struct heap_anomaly *feed_only_anomaly(const struct feed *feed)
{
	const struct heap_anomaly *list;
	size_t nr;

	list = heap_tracker_anomalies(feed->tracker, &nr);
	assert_int_equal(nr, 1);
	assert_int_equal(feed_nr_anomalies(feed), 1);
	assert_int_equal(feed_stats(feed)->anomalies[list[0].kind], 1);
	return &list[0];
}

static inline size_t feed_held(struct feed *feed, const struct heap_block **ret)
{
	size_t nr;

	assert_int_equal(heap_tracker_held(feed->tracker, ret, &nr), 0);
	return nr;
}

/* Returns the only held block. */
static inline const struct heap_block *feed_only_held(struct feed *feed)
{
	const struct heap_block *blocks;

	assert_int_equal(feed_held(feed, &blocks), 1);
	return &blocks[0];
}

static inline size_t feed_nr_held(struct feed *feed)
{
	const struct heap_block *blocks;

	return feed_held(feed, &blocks);
}

#endif
