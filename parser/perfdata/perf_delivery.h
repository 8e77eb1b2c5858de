/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The last step of reading: decodes the kernel's records, in time order, and hands them to the
 * consumer.
 */
#ifndef LEAKTOOLS_PARSER_PERF_DELIVERY_H
#define LEAKTOOLS_PARSER_PERF_DELIVERY_H

#include "parser/perfdata/perf_input_stats.h"
#include "parser/perfdata/perf_order.h"
#include "parser/records/perf_event_types.h"

#define PERF_MAX_RECORD_BYTES ((size_t)1 << 16)

struct perf_delivery {
	const struct perf_consumer *consumer;
	struct perf_input_stats *stats;
	uint64_t sequence;	 /* of the last operation */
	bool has_end;		 /* leakrec wrote where its recording ends */
	uint64_t lost_in_rings;	 /* by LOST records */
	uint64_t lost_by_events; /* by LOST_SAMPLES records */

	/* A misaligned record is copied here to be decoded. */
	uint64_t aligned[PERF_MAX_RECORD_BYTES / sizeof(uint64_t)];
};

/* Delivers a kernel record. Returns 0 or the callback's value. */
int perf_delivery_record(struct perf_delivery *delivery, const struct perf_queued *queued);

/* Adds the count of a LOST_SAMPLES record. */
void perf_delivery_count_lost(struct perf_delivery *delivery, const struct perf_record *record);

/*
 * The kernel counts a lost sample twice: in the ring's LOST record, and in its event's counter,
 * from which the recorder makes LOST_SAMPLES. Call this after the last record: it delivers what the
 * counters have beyond the rings. Returns 0 or the callback's value.
 */
int perf_delivery_lost_rest(struct perf_delivery *delivery);

#endif
