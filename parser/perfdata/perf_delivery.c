/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perfdata/perf_delivery.h"

#include "common/perf_disk.h"
#include "parser/records/perf_sample.h"
#include "parser/records/perf_side_records.h"

#include <string.h>

static int deliver_sample(struct perf_delivery *delivery, const struct perf_event *event,
			  const struct perf_record *record)
{
	const struct perf_consumer *consumer = delivery->consumer;
	struct perf_sample sample;

	if (perf_sample_decode(event, record, &sample)) {
		delivery->stats->undecodable++;
		return 0;
	}
	if (perf_event_is_operation(&event->desc)) {
		delivery->stats->probe_samples++;
		delivery->sequence++;
	} else if (event->desc.is_bound) {
		delivery->has_end = sample.mark_number != 0;
	}
	sample.origin.sequence = delivery->sequence;
	return consumer->on_sample ? consumer->on_sample(consumer->context, &sample) : 0;
}

static int deliver_mmap(struct perf_delivery *delivery, const struct perf_origin *origin,
			const struct perf_record *record, size_t body_bytes)
{
	const struct perf_consumer *consumer = delivery->consumer;
	struct perf_mmap_record mmap = {.origin = *origin};

	if ((record->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
		return 0;
	if (perf_decode_mmap(record, body_bytes, &mmap)) {
		delivery->stats->undecodable++;
		return 0;
	}
	return consumer->on_mmap ? consumer->on_mmap(consumer->context, &mmap) : 0;
}

static int deliver_task(struct perf_delivery *delivery, const struct perf_origin *origin,
			const struct perf_record *record, size_t body_bytes)
{
	const struct perf_consumer *consumer = delivery->consumer;
	struct perf_task_record task = {.origin = *origin};
	int (*callback)(void *context, const struct perf_task_record *record) =
		record->header.type == PERF_RECORD_FORK ? consumer->on_fork : consumer->on_exit;

	if (perf_decode_task(record, body_bytes, &task)) {
		delivery->stats->undecodable++;
		return 0;
	}
	return callback ? callback(consumer->context, &task) : 0;
}

static int deliver_comm(struct perf_delivery *delivery, const struct perf_origin *origin,
			const struct perf_record *record, size_t body_bytes)
{
	const struct perf_consumer *consumer = delivery->consumer;
	struct perf_comm_record comm = {.origin = *origin};

	if (perf_decode_comm(record, body_bytes, &comm)) {
		delivery->stats->undecodable++;
		return 0;
	}
	return consumer->on_comm ? consumer->on_comm(consumer->context, &comm) : 0;
}

static int deliver_lost(struct perf_delivery *delivery, const struct perf_origin *origin,
			const struct perf_event *event, uint64_t lost)
{
	const struct perf_consumer *consumer = delivery->consumer;
	struct perf_lost_record record = {
		.origin = *origin,
		.event = event ? &event->desc : NULL,
		.lost = lost,
	};

	return consumer->on_lost ? consumer->on_lost(consumer->context, &record) : 0;
}

static uint64_t lost_of(const struct perf_record *record)
{
	struct perf_disk_lost lost;

	if (record->header.size < sizeof(lost))
		return 0;
	memcpy(&lost, record->bytes, sizeof(lost));
	return lost.lost;
}

/* Delivers a kernel record that is not a sample. */
static int deliver_other(struct perf_delivery *delivery, const struct perf_event *event,
			 const struct perf_record *record)
{
	size_t body_bytes = record->header.size;
	struct perf_origin origin;

	perf_event_read_trailer(event, record, &origin);
	origin.sequence = delivery->sequence;
	body_bytes -= body_bytes < event->trailer_bytes ? body_bytes : event->trailer_bytes;
	switch (record->header.type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return deliver_mmap(delivery, &origin, record, body_bytes);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return deliver_task(delivery, &origin, record, body_bytes);
	case PERF_RECORD_COMM:
		return deliver_comm(delivery, &origin, record, body_bytes);
	case PERF_RECORD_LOST:
		delivery->lost_in_rings += lost_of(record);
		return deliver_lost(delivery, &origin, event, lost_of(record));
	default:
		return 0;
	}
}

static int deliver_record(struct perf_delivery *delivery, const struct perf_event *event,
			  const struct perf_record *record)
{
	return record->header.type == PERF_RECORD_SAMPLE ? deliver_sample(delivery, event, record)
							 : deliver_other(delivery, event, record);
}

static __attribute__((noinline)) int deliver_misaligned(struct perf_delivery *delivery,
							const struct perf_event *event,
							const struct perf_record *record)
{
	struct perf_record copy = *record;

	memcpy(delivery->aligned, record->bytes, record->header.size);
	copy.bytes = (uint8_t *)delivery->aligned;
	return deliver_record(delivery, event, &copy);
}

int perf_delivery_record(struct perf_delivery *delivery, const struct perf_queued *queued)
{
	const struct perf_event *event = queued->event;
	const struct perf_record *record = &queued->record;

	if (!event) {
		delivery->stats->undecodable++;
		return 0;
	}
	if (queued->time_ns < delivery->stats->latest_ns && queued->time_ns != 0)
		delivery->stats->out_of_order++;
	else if (queued->time_ns != 0)
		delivery->stats->latest_ns = queued->time_ns;
	return (uintptr_t)record->bytes % sizeof(uint64_t) == 0
		       ? deliver_record(delivery, event, record)
		       : deliver_misaligned(delivery, event, record);
}

void perf_delivery_count_lost(struct perf_delivery *delivery, const struct perf_record *record)
{
	struct perf_disk_lost_samples lost;

	if (record->header.size < sizeof(lost) ||
	    (record->header.misc & PERF_MISC_LOST_SAMPLES_BPF))
		return;
	memcpy(&lost, record->bytes, sizeof(lost));
	delivery->lost_by_events += lost.lost;
}

int perf_delivery_lost_rest(struct perf_delivery *delivery)
{
	const struct perf_origin origin = {
		.time_ns = delivery->stats->latest_ns,
		.sequence = delivery->sequence,
		.pid = -1,
		.tid = -1,
	};

	if (delivery->lost_by_events <= delivery->lost_in_rings)
		return 0;
	return deliver_lost(delivery, &origin, NULL,
			    delivery->lost_by_events - delivery->lost_in_rings);
}
