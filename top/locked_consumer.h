/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A consumer that wraps another and holds a mutex during each of its callbacks. A second thread can
 * then read the inner consumer's state between two records.
 */
#ifndef LEAKTOOLS_TOP_LOCKED_CONSUMER_H
#define LEAKTOOLS_TOP_LOCKED_CONSUMER_H

#include "parser/records/perf_event_types.h"

#include <pthread.h>
#include <stdbool.h>

struct locked_consumer {
	struct perf_consumer inner;
	pthread_mutex_t mutex;
	pthread_cond_t unwanted;
	/* The second thread waits for @mutex, and the callbacks let it pass: mutexes are unfair. */
	bool is_wanted;
};

/*
 * Returns the wrapping consumer. Its context is @locked, which must outlive it. It forwards the
 * callbacks that a recording in perf's pipe format causes; @inner must have them all.
 */
struct perf_consumer locked_consumer_init(struct locked_consumer *locked,
					  const struct perf_consumer *inner);

/* Between these two calls, the parsing thread runs no callback. */
void locked_consumer_acquire(struct locked_consumer *locked);
void locked_consumer_release(struct locked_consumer *locked);

#endif
