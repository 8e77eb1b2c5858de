/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/drain/ring_reader.h"

#include "common/clock.h"
#include "common/perf_disk.h"
#include "recorder/events/ring_size.h"
#include "recorder/drain/perf_samples.h"

#include <errno.h>
#include <perf/event.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <unistd.h>

/* Bytes to consume before the space is given back to the kernel; less in a small ring. */
#define CONSUME_BYTES (64 << 10)
#define CONSUME_PART  64

/*
 * Live readers wait for PERF_RECORD_FINISHED_ROUND. While the rings are empty, one follows after
 * this time, because leakrec itself may have written samples.
 */
#define QUIET_NS 1000000000ULL

/* True if the sample was taken while not all events were enabled. */
static bool is_outside(const struct ring_reader *reader, const struct perf_event_header *sample)
{
	const char *time_at = (const char *)sample + RECORD_SAMPLE_TIME_OFFSET;
	uint64_t time_ns;

	memcpy(&time_ns, time_at, sizeof(time_ns));
	return time_ns < reader->start_ns || time_ns > reader->end_ns;
}

static int keep_task(struct task_records *tasks, const struct perf_disk_task *task)
{
	if (tasks->nr == tasks->nr_allocated) {
		size_t nr = tasks->nr ? 2 * tasks->nr : 64;
		struct perf_disk_task *grown = reallocarray(tasks->records, nr, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		tasks->records = grown;
		tasks->nr_allocated = nr;
	}
	tasks->records[tasks->nr++] = *task;
	return 0;
}

/* The number of samples that @record says were lost; 0 if it is another kind of record. */
static uint64_t lost_of(const struct perf_event_header *record)
{
	if (record->type == PERF_RECORD_LOST)
		return ((const struct perf_disk_lost *)record)->lost;
	if (record->type == PERF_RECORD_LOST_SAMPLES)
		return ((const struct perf_disk_lost_samples *)record)->lost;
	return 0;
}

/* Counts a record. Returns 1 to write it, 0 to leave it out, or -ENOMEM. */
static int inspect_record(struct ring_reader *reader, const struct perf_event_header *record,
			  bool is_probe)
{
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		reader->consumed += is_probe;
		reader->sample_bytes += is_probe ? record->size : 0;
		if (is_probe && is_outside(reader, record))
			return 0;
		reader->samples += is_probe;
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		reader->lost += lost_of(record);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		if (keep_task(&reader->tasks, (const struct perf_disk_task *)record))
			return -ENOMEM;
		break;
	case PERF_RECORD_MMAP2:
		if (build_ids_add_record(reader->build_ids, record))
			return -ENOMEM;
		break;
	default:
		break;
	}
	return 1;
}

/*
 * Returns the record in one piece. Where it wraps, @record is libperf's copy, of which only the
 * first sizeof(union perf_event) bytes are valid (6.1, perf_mmap__read()); a stack dump is longer.
 * So the bytes come from the ring itself, whose start the first record shows.
 */
static const struct perf_event_header *whole_record(struct ring_reader *reader,
						    const struct record_group *group,
						    struct record_ring *ring,
						    const struct perf_event_header *record)
{
	size_t at = ring->offset & (group->ring_bytes - 1), until_wrap = group->ring_bytes - at;

	if (!ring->data)
		ring->data = (const char *)record;
	if (record->size <= until_wrap)
		return (const void *)(ring->data + at);
	memcpy(reader->wrapped, ring->data + at, until_wrap);
	memcpy((char *)reader->wrapped + until_wrap, ring->data, record->size - until_wrap);
	return (const void *)reader->wrapped;
}

static int write_sample(struct ring_reader *reader, const struct perf_event_header *record)
{
	const struct perf_event_header *written = record;
	const struct raw_head *raw;
	int err = reader->unwinder
			  ? live_unwinder_write(reader->unwinder, record, reader->writer, &written)
			  : perf_writer_add_sample(reader->writer, record);

	if (!reader->held || err || !written)
		return err;
	raw = perf_sample_raw(written);
	if (raw)
		held_blocks_feed_sample(reader->held, written, raw);
	return 0;
}

/* Adds to a perf event's sample what its event must not fetch. */
static const struct perf_event_header *complete_sample(struct ring_reader *reader,
						       struct record_group *group,
						       const struct perf_event_header *record)
{
	const struct raw_head *raw = perf_sample_raw(record);
	const struct record_event *event = raw ? record_group_find_type(group, raw->type) : NULL;

	if (event && event->mark)
		return mark_texts_convert(&reader->mark_texts, event, record);
	if (!event || !event->caller_at)
		return record;
	/* The kernel does not permit to write to the ring's data. */
	if ((const void *)record != reader->wrapped)
		memcpy(reader->wrapped, record, record->size);
	perf_sample_set_caller((void *)reader->wrapped, event);
	return (const void *)reader->wrapped;
}

/* Passes a side event's record on to the writer. */
static int pass_side_record(struct ring_reader *reader, const struct perf_event_header *record)
{
	int wanted = inspect_record(reader, record, false);

	if (wanted <= 0)
		return wanted;
	if (reader->unwinder && live_unwinder_note(reader->unwinder, record))
		return -ENOMEM;
	if (reader->held)
		held_blocks_feed_task(reader->held, record);
	return reader->segments ? segments_add_side(reader->segments, record, reader->round_ns)
				: perf_writer_add_record(reader->writer, record);
}

/* Passes one record of a perf ring on to the writer, or to the filter. */
static int consume_record(struct ring_reader *reader, struct record_group *group,
			  struct record_ring *ring)
{
	const struct perf_event_header *record = whole_record(reader, group, ring, ring->next);
	int wanted;

	ring->offset += record->size;
	ring->next = NULL;
	if (group == &reader->events->side)
		return reader->events->filter ? side_filter_keep(reader->events->filter, record)
					      : pass_side_record(reader, record);
	wanted = inspect_record(reader, record, true);
	ring->nr_lost += lost_of(record);
	return wanted <= 0 ? wanted : write_sample(reader, complete_sample(reader, group, record));
}

/*
 * The time of a sample. For other records in the rings of probes, 0: they may be consumed at any
 * time.
 */
static uint64_t sample_time_ns(const struct perf_event_header *record)
{
	uint64_t time_ns = 0;

	if (record->type == PERF_RECORD_SAMPLE)
		memcpy(&time_ns, (const char *)record + RECORD_SAMPLE_TIME_OFFSET, sizeof(time_ns));
	return time_ns;
}

/* When the next record of a ring has to be consumed. */
static uint64_t next_time_ns(struct ring_reader *reader, const struct record_group *group,
			     struct record_ring *ring)
{
	return group == &reader->events->side
		       ? side_filter_time_ns(whole_record(reader, group, ring, ring->next))
		       : sample_time_ns(ring->next);
}

/*
 * Drains a ring up to the first sample from after @until_ns (a side ring: up to the first record),
 * but no more than the ring's size: a target that is faster than the reader must not keep it at one
 * ring.
 *
 * perf_mmap__read_done() is not called: it skips what arrived since the last read (6.1). A record
 * that was seen but not consumed must stay in the ring, so perf_mmap__consume() is not called then.
 */
static int drain_ring(struct ring_reader *reader, struct record_group *group,
		      struct record_ring *ring, uint64_t until_ns)
{
	const uint64_t part = group->ring_bytes / CONSUME_PART;
	const uint64_t consume_bytes = part < CONSUME_BYTES ? part : CONSUME_BYTES;
	uint64_t start = ring->offset;
	int err = 0;

	if (!ring->next && perf_mmap__read_init(ring->map) < 0)
		return 0;
	while (!err && ring->offset - start < group->ring_bytes) {
		if (!ring->next && ring->offset - ring->consumed >= consume_bytes) {
			perf_mmap__consume(ring->map);
			ring->consumed = ring->offset;
		}
		if (!ring->next)
			ring->next = (const void *)perf_mmap__read_event(ring->map);
		if (!ring->next ||
		    (until_ns != UINT64_MAX && next_time_ns(reader, group, ring) > until_ns))
			break;
		err = consume_record(reader, group, ring);
	}
	if (!ring->next) {
		perf_mmap__consume(ring->map);
		ring->consumed = ring->offset;
	}
	return err;
}

/*
 * True if a record after the first one from after @until_ns is older: its program ran on while the
 * other one's was preempted. Leaves the ring as it is.
 */
static bool has_straggler(struct ring_reader *reader, struct bpf_ring *ring, uint64_t end,
			  uint64_t until_ns)
{
	const struct perf_event_header *record;
	uint64_t at = ring->at;
	bool found = false;

	while (!found && (record = bpf_ring_next(ring, end, &reader->busy)))
		found = sample_time_ns(record) <= until_ns;
	ring->at = at;
	return found;
}

/*
 * Drains the BPF ring of a CPU up to the first sample from after @until_ns. Sets reader->busy if a
 * record is still being written. Returns 1 if there was a record, 0 if not, or a negative errno.
 */
static int drain_bpf_ring(struct ring_reader *reader, size_t cpu, uint64_t until_ns)
{
	struct bpf_ring *ring = &reader->recorder->rings[cpu];
	const struct perf_event_header *record;
	uint64_t start = ring->at, consumed = start, at = start, end;
	int err = 0;

	if (!ring->control)
		return 0;
	end = bpf_ring_end(ring);
	while (!err && (record = bpf_ring_next(ring, end, &reader->busy))) {
		if (sample_time_ns(record) > until_ns) {
			ring->at = at;
			reader->busy |= reader->segments && until_ns == reader->round_ns &&
					has_straggler(reader, ring, end, until_ns);
			break;
		}
		ring->nr_read++;
		if (record->type == PERF_RECORD_LOST) {
			reader->lost += lost_of(record);
			ring->nr_lost += lost_of(record);
		} else {
			reader->samples++;
			reader->sample_bytes += record->size;
			if (record->misc & MARK_IS_UNREAD)
				record = mark_texts_complete(&reader->mark_texts,
							     &reader->recorder->sites,
							     (const void *)record);
		}
		if (reader->windows)
			record = windows_fit(reader->windows, record, reader->wrapped);
		err = write_sample(reader, record);
		at = ring->at;
		if (at - consumed >= CONSUME_BYTES) {
			bpf_ring_consume(ring);
			consumed = at;
		}
	}
	bpf_ring_consume(ring);
	bpf_recorder_rearm(reader->recorder, cpu);
	return err ? err : ring->at > start;
}

/* Drains the samples of all rings up to @until_ns. */
static int drain_samples(struct ring_reader *reader, uint64_t until_ns)
{
	struct record_group *group = &reader->events->probes;
	int err;

	for (size_t i = 0; i < group->nr_rings; i++) {
		err = drain_ring(reader, group, &group->rings[i], until_ns);
		if (err)
			return err;
	}
	for (size_t cpu = 0; reader->recorder && cpu < reader->recorder->nr_rings; cpu++) {
		err = drain_bpf_ring(reader, cpu, until_ns);
		if (err < 0)
			return err;
		reader->any |= err;
	}
	return 0;
}

/*
 * Drains the samples from before the round, and applies each mapping before the samples that are
 * younger than it.
 */
static int drain_in_order(struct ring_reader *reader, uint64_t round_ns)
{
	uint64_t next_ns;
	int err = 0;

	if (!reader->unwinder)
		return drain_samples(reader, reader->segments ? round_ns : UINT64_MAX);
	while (!err && (next_ns = live_unwinder_next_ns(reader->unwinder)) <= round_ns &&
	       next_ns != UINT64_MAX) {
		err = drain_samples(reader, next_ns - 1);
		if (!err)
			err = live_unwinder_apply_next(reader->unwinder);
	}
	return err ? err : drain_samples(reader, round_ns);
}

/* Passes on what the filter has kept of the recorded processes, in the order of time. */
static int pass_filtered(struct ring_reader *reader)
{
	struct side_filter *filter = reader->events->filter;
	const struct perf_event_header *record;
	int err = 0;

	side_filter_sort(filter);
	while (!err && (record = side_filter_next(filter))) {
		reader->any = true;
		err = pass_side_record(reader, record);
	}
	return err;
}

int ring_reader_drain_side(struct ring_reader *reader)
{
	struct record_group *side = &reader->events->side;
	bool is_filtered = reader->events->filter;
	int err = 0;

	/* Samples from after this are left to the next round: ring_reader.h. */
	reader->round_ns = reader->stopped ? UINT64_MAX : clock_now_ns();
	reader->tasks.nr = 0;
	reader->busy = false;
	if (reader->segments)
		err = segments_add_waiting(reader->segments);
	for (size_t i = 0; i < side->nr_rings && !err; i++) {
		uint64_t start = side->rings[i].offset;

		/* The filter takes what is from before the round. */
		err = drain_ring(reader, side, &side->rings[i],
				 is_filtered ? reader->round_ns : UINT64_MAX);
		reader->any |= !is_filtered && side->rings[i].offset != start;
	}
	return err || !is_filtered ? err : pass_filtered(reader);
}

/*
 * Applies what no later round can precede: where stacks are unwound, all that is from before this
 * round; otherwise what is from before the round before it (ring_reader.h).
 */
static void apply_held(struct ring_reader *reader)
{
	if (reader->busy)
		return;
	held_blocks_apply(reader->held, reader->unwinder || reader->segments || reader->stopped
						? reader->round_ns
						: reader->whole_ns);
	reader->whole_ns = reader->round_ns;
}

int ring_reader_drain_samples(struct ring_reader *reader, uint64_t *ret_most_bytes)
{
	static const struct perf_event_header finished_round = {
		.type = PERF_USER_FINISHED_ROUND,
		.size = sizeof(finished_round),
	};
	struct record_group *probes = &reader->events->probes;
	int err;

	*ret_most_bytes = 0;
	for (size_t i = 0; i < probes->nr_rings; i++)
		probes->rings[i].round_start = probes->rings[i].offset;
	err = drain_in_order(reader, reader->round_ns);
	if (err)
		return err;
	for (size_t i = 0; i < probes->nr_rings; i++) {
		uint64_t bytes = probes->rings[i].offset - probes->rings[i].round_start;

		reader->any |= bytes > 0;
		if (bytes > *ret_most_bytes)
			*ret_most_bytes = bytes;
	}
	if (reader->held)
		apply_held(reader);
	if (reader->busy || !(reader->any || reader->round_ns - reader->finished_ns > QUIET_NS))
		return 0;
	if (reader->windows && (reader->stopped || windows_hold_round(reader->windows)))
		return 0;
	reader->any = false;
	reader->finished_ns = reader->round_ns;
	return perf_writer_add_record(reader->writer, &finished_round);
}

void ring_reader_deinit(struct ring_reader *reader)
{
	mark_texts_deinit(&reader->mark_texts);
	free(reader->tasks.records);
	reader->tasks = (struct task_records){0};
}

struct ring_losses ring_reader_losses(const struct ring_reader *reader, uint32_t ring_pages)
{
	const struct record_group *probes = &reader->events->probes;
	uint64_t nr = reader->recorder ? reader->samples : reader->consumed;
	struct ring_losses losses = {
		.sample_bytes = nr ? reader->sample_bytes / nr + 1 : 0,
		.pages = ring_pages,
		.page_bytes = (uint32_t)getpagesize(),
		.most_pages = ring_size_most(),
	};

	for (size_t i = 0; !reader->recorder && i < probes->nr_rings; i++)
		if (probes->rings[i].nr_lost > losses.most_lost)
			losses.most_lost = probes->rings[i].nr_lost;
	for (size_t i = 0; reader->recorder && i < reader->recorder->nr_rings; i++)
		if (reader->recorder->rings[i].nr_lost > losses.most_lost)
			losses.most_lost = reader->recorder->rings[i].nr_lost;
	return losses;
}
