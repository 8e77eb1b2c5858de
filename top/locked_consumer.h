/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A consumer of a recording whose callbacks hold a lock while another's run: so that somebody else
 * can look at what that one has made of it so far, between two records.
 */
#ifndef LEAKTOOLS_TOP_LOCKED_CONSUMER_H
#define LEAKTOOLS_TOP_LOCKED_CONSUMER_H

#include "parser/records/perf_event_types.h"

#include <pthread.h>
#include <stdbool.h>

struct locked_consumer {
	struct perf_consumer inner; /* all its callbacks are there */
	pthread_mutex_t mutex;
	pthread_cond_t unwanted;
	bool is_wanted; /* somebody waits to look: mutexes are not fair */
};

/* Its context is @locked, which must outlive it. */
struct perf_consumer locked_consumer_init(struct locked_consumer *locked,
					  const struct perf_consumer *inner);

/* Between these the other thread is in no callback. */
void locked_consumer_acquire(struct locked_consumer *locked);
void locked_consumer_release(struct locked_consumer *locked);

#endif
