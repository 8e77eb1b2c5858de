/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/ring_reader.h"

#include "common/clock.h"
#include "common/scope.h"
#include "common/perf_disk.h"

#include <errno.h>
#include <perf/event.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <poll.h>
#include <signal.h>

/* Bytes to take from a ring before its space is given back to the kernel, and no more of a small.
 */
#define CONSUME_BYTES	(64 << 10)
#define CONSUME_PART	64
#define STOP_ROUNDS_NS	200000000ULL
#define MAX_LAST_ROUNDS 1000 /* 1 ms each: a program may be preempted while it writes */

/* True if the sample was taken while not all events were enabled. */
static bool is_outside(const struct ring_reader *reader, const struct perf_event_header *sample)
{
	const char *time_at = (const char *)sample + RECORD_SAMPLE_TIME_OFFSET;
	uint64_t time_ns;

	memcpy(&time_ns, time_at, sizeof(time_ns));
	return time_ns < reader->start_ns || time_ns > reader->end_ns;
}

/* Counts a record. Returns 1 to write it, 0 to leave it out, or -ENOMEM. */
static int inspect_record(struct ring_reader *reader, const struct perf_event_header *record,
			  bool is_probe)
{
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		reader->taken += is_probe;
		if (is_probe && is_outside(reader, record))
			return 0;
		reader->samples += is_probe;
		break;
	case PERF_RECORD_LOST:
		reader->lost += ((const struct perf_disk_lost *)record)->lost;
		break;
	case PERF_RECORD_LOST_SAMPLES:
		reader->lost += ((const struct perf_disk_lost_samples *)record)->lost;
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		context_breakers_follow(&reader->events->breakers,
					(const struct perf_disk_task *)record);
		if (reader->backpressure)
			backpressure_follow(reader->backpressure,
					    (const struct perf_disk_task *)record);
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
 * The record in one piece. Where it wraps, @record is libperf's copy, of which only the first
 * sizeof(union perf_event) bytes are good (6.1, perf_mmap__read()): a stack dump is longer. So the
 * bytes come from the ring itself, whose start the first record of all shows.
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
	if (reader->unwinder)
		return live_unwinder_write(reader->unwinder, record, reader->writer);
	return perf_writer_add_record(reader->writer, record);
}

/* Takes one record of a perf ring to the writer. */
static int take_record(struct ring_reader *reader, const struct record_group *group,
		       struct record_ring *ring)
{
	bool is_probe = group == &reader->events->probes;
	const struct perf_event_header *record = whole_record(reader, group, ring, ring->next);
	int wanted = inspect_record(reader, record, is_probe);

	ring->offset += record->size;
	ring->next = NULL;
	if (wanted <= 0)
		return wanted;
	if (is_probe)
		return write_sample(reader, record);
	if (reader->unwinder && live_unwinder_note(reader->unwinder, record))
		return -ENOMEM;
	return perf_writer_add_record(reader->writer, record);
}

/* The time of a sample; of another record in the probes' rings 0, as it may be taken any time. */
static uint64_t sample_time_ns(const struct perf_event_header *record)
{
	uint64_t time_ns = 0;

	if (record->type == PERF_RECORD_SAMPLE)
		memcpy(&time_ns, (const char *)record + RECORD_SAMPLE_TIME_OFFSET, sizeof(time_ns));
	return time_ns;
}

/*
 * Takes what the ring holds up to the first sample from after @until_ns, at most its size: a target
 * that is faster than we are must not keep us at one ring.
 *
 * perf_mmap__read_done() is not called: it skips what arrived since the last read (6.1). What was
 * seen and not taken must not be given back, which perf_mmap__consume() would do.
 */
static int drain_ring(struct ring_reader *reader, const struct record_group *group,
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
		    (until_ns != UINT64_MAX && sample_time_ns(ring->next) > until_ns))
			break;
		err = take_record(reader, group, ring);
	}
	if (!ring->next) {
		perf_mmap__consume(ring->map);
		ring->consumed = ring->offset;
	}
	return err;
}

/*
 * Takes what the programs' ring of a CPU holds up to the first sample from after @until_ns.
 * *@ret_busy is set where a record is still being written. Returns 1 if there was anything, 0 if
 * not, or a negative errno.
 */
static int drain_program_ring(struct ring_reader *reader, size_t cpu, uint64_t until_ns,
			      bool *ret_busy)
{
	struct bpf_ring *ring = &reader->programs->rings[cpu];
	const struct perf_event_header *record;
	uint64_t start = ring->at, consumed = start, at = start, end;
	int err = 0;

	if (!ring->control)
		return 0;
	end = bpf_ring_end(ring);
	while (!err && (record = bpf_ring_next(ring, end, ret_busy))) {
		if (sample_time_ns(record) > until_ns) {
			ring->at = at;
			break;
		}
		ring->nr_read++;
		if (record->type == PERF_RECORD_LOST)
			reader->lost += ((const struct perf_disk_lost *)record)->lost;
		else
			reader->samples++;
		err = write_sample(reader, record);
		at = ring->at;
		if (at - consumed >= CONSUME_BYTES) {
			bpf_ring_consume(ring);
			consumed = at;
		}
	}
	bpf_ring_consume(ring);
	bpf_recorder_rearm(reader->programs, cpu);
	return err ? err : ring->at > start;
}

/* Takes the samples of all rings up to @until_ns. */
static int drain_samples(struct ring_reader *reader, uint64_t until_ns, bool *ret_any,
			 bool *ret_busy)
{
	struct record_group *group = &reader->events->probes;
	int err;

	for (size_t i = 0; i < group->nr_rings; i++) {
		err = drain_ring(reader, group, &group->rings[i], until_ns);
		if (err)
			return err;
	}
	for (size_t cpu = 0; reader->programs && cpu < reader->programs->nr_rings; cpu++) {
		err = drain_program_ring(reader, cpu, until_ns, ret_busy);
		if (err < 0)
			return err;
		*ret_any |= err;
	}
	return 0;
}

/* Takes the samples from before the round, each against the mappings of its time. */
static int drain_in_order(struct ring_reader *reader, uint64_t round_ns, bool *ret_any,
			  bool *ret_busy)
{
	uint64_t next_ns;
	int err = 0;

	if (!reader->unwinder)
		return drain_samples(reader, UINT64_MAX, ret_any, ret_busy);
	while (!err && (next_ns = live_unwinder_next_ns(reader->unwinder)) <= round_ns &&
	       next_ns != UINT64_MAX) {
		err = drain_samples(reader, next_ns - 1, ret_any, ret_busy);
		if (!err)
			err = live_unwinder_apply_next(reader->unwinder);
	}
	return err ? err : drain_samples(reader, round_ns, ret_any, ret_busy);
}

/* Drains all rings once. Returns the bytes of the fullest of the perf rings, or a negative errno.
 */
static int64_t drain_all(struct ring_reader *reader, bool *ret_any, bool *ret_busy)
{
	/* Before the side rings are drained: ring_reader.h. */
	const uint64_t round_ns = reader->stopped ? UINT64_MAX : clock_now_ns();
	struct record_group *groups[] = {&reader->events->side, &reader->events->probes};
	uint64_t most_bytes = 0;
	int err = 0;

	for (size_t g = 0; g < ARRAY_SIZE(groups); g++)
		for (size_t i = 0; i < groups[g]->nr_rings; i++)
			groups[g]->rings[i].round_start = groups[g]->rings[i].offset;
	for (size_t i = 0; i < groups[0]->nr_rings && !err; i++)
		err = drain_ring(reader, groups[0], &groups[0]->rings[i], UINT64_MAX);
	if (!err)
		err = drain_in_order(reader, round_ns, ret_any, ret_busy);
	if (err)
		return err;
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		for (size_t i = 0; i < groups[g]->nr_rings; i++) {
			const struct record_ring *ring = &groups[g]->rings[i];
			uint64_t bytes = ring->offset - ring->round_start;

			*ret_any |= bytes > 0;
			if (g == 1 && bytes > most_bytes)
				most_bytes = bytes;
		}
	}
	return (int64_t)most_bytes;
}

int ring_reader_round(struct ring_reader *reader)
{
	static const struct perf_event_header finished_round = {
		.type = PERF_USER_FINISHED_ROUND,
		.size = sizeof(finished_round),
	};
	int64_t most_bytes;
	int err;

	do {
		bool any = false, busy = false;

		if (reader->backpressure)
			backpressure_begin_round(reader->backpressure);
		most_bytes = drain_all(reader, &any, &busy);
		if (most_bytes < 0)
			return (int)most_bytes;
		err = 0;
		if (any && !busy)
			err = perf_writer_add_record(reader->writer, &finished_round);
		context_breakers_serve(&reader->events->breakers);
		if (reader->follow)
			fork_follow_serve(reader->follow);
		if (reader->late)
			dlopen_watch_serve(reader->late);
		if (reader->backpressure)
			backpressure_end_round(reader->backpressure, (uint64_t)most_bytes);
	} while (!err && reader->backpressure && backpressure_wants_round(reader->backpressure));
	return err;
}

int ring_reader_wait(struct ring_reader *reader, int signal_fd, int timeout_ms)
{
	const struct record_group *groups[] = {&reader->events->side, &reader->events->probes};
	size_t nr_rings = groups[0]->nr_rings + groups[1]->nr_rings, nr = 0, nr_live = 0;
	_cleanup_free_ struct pollfd *fds = calloc(nr_rings + 4, sizeof(*fds));
	_cleanup_free_ struct record_ring **rings =
		calloc(nr_rings + 1, sizeof(struct record_ring *));

	if (!fds || !rings)
		return -ENOMEM;
	if (reader->late && dlopen_watch_is_waiting(reader->late))
		timeout_ms = 0;

	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		for (size_t i = 0; i < groups[g]->nr_rings; i++) {
			struct record_ring *ring = &groups[g]->rings[i];

			if (ring->current == ring->nr_fds)
				continue;
			fds[nr] = (struct pollfd){ring->fds[ring->current], POLLIN, 0};
			rings[nr++] = ring;
		}
	}
	fds[nr] = (struct pollfd){signal_fd, POLLIN, 0};
	fds[nr + 1] = (struct pollfd){-1, POLLIN, 0};
	if (reader->programs)
		fds[nr + 1].fd = bpf_recorder_wakeup_fd(reader->programs);
	/* Only to be on time. */
	fds[nr + 2] = (struct pollfd){reader->marks_fd, POLLIN, 0};
	fds[nr + 3] = (struct pollfd){context_breakers_fd(&reader->events->breakers), POLLIN, 0};
	if (poll(fds, nr + 4, timeout_ms) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[nr].revents)
		return 1;
	if (fds[nr + 1].revents)
		bpf_recorder_consume_wakeups(reader->programs);

	for (size_t i = 0; i < nr; i++)
		/* POLLHUP: the event's thread and all that inherited from it are gone. */
		if (fds[i].revents & (POLLHUP | POLLERR | POLLNVAL))
			rings[i]->current++;
	for (size_t i = 0; i < groups[0]->nr_rings; i++)
		nr_live += groups[0]->rings[i].current < groups[0]->rings[i].nr_fds;
	return nr_live ? 0 : -ESRCH;
}

/* True if no program is writing a record any more. */
static bool are_rings_empty(const struct bpf_recorder *programs)
{
	for (size_t i = 0; i < programs->nr_rings; i++)
		if (programs->rings[i].control &&
		    programs->rings[i].at < bpf_ring_end(&programs->rings[i]))
			return false;
	return true;
}

/* What no record tells of: samples without room, records that nobody read, hits that were skipped.
 */
static uint64_t take_lost_by_programs(const struct ring_reader *reader)
{
	uint64_t lost = bpf_recorder_nr_skipped(reader->programs);

	for (size_t cpu = 0; cpu < reader->programs->nr_rings; cpu++) {
		const struct bpf_ring *ring = &reader->programs->rings[cpu];

		lost += bpf_recorder_consume_lost(reader->programs, cpu);
		if (ring->control)
			lost += bpf_ring_nr_unread(ring);
	}
	return lost;
}

/* The programs' part of the end: what they are writing just now is waited for. */
static int stop_programs(struct ring_reader *reader)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int err;

	bpf_recorder_stop(reader->programs);
	perf_evlist__disable(reader->events->side.evlist);
	reader->stopped = true;
	err = ring_reader_round(reader);
	for (int i = 0; i < MAX_LAST_ROUNDS && !err && !are_rings_empty(reader->programs); i++) {
		nanosleep(&pause, NULL);
		err = ring_reader_round(reader);
	}
	reader->lost_by_programs = reader->lost + take_lost_by_programs(reader);
	return err;
}

int ring_reader_stop(struct ring_reader *reader)
{
	int err = 0;

	reader->end_ns = clock_now_ns();
	if (reader->programs)
		return stop_programs(reader);
	/*
	 * Between the steps the rings are drained, so that nothing is lost that late. Many threads
	 * fill them faster than that: who is held back then waits until all events are disabled.
	 */
	for (size_t i = 0; i < reader->events->probes.nr_events; i++) {
		if (!err && clock_now_ns() < reader->end_ns + STOP_ROUNDS_NS)
			err = ring_reader_round(reader);
		if (reader->events->probes.events[i].evsel)
			perf_evsel__disable(reader->events->probes.events[i].evsel);
	}
	perf_evlist__disable(reader->events->side.evlist);
	reader->stopped = true;
	return err ? err : ring_reader_round(reader);
}

/* What the kernel counted and no ring held, whether or not the kernel says that it was lost. */
static uint64_t lost_by_perf_events(const struct ring_reader *reader)
{
	const struct record_totals totals = record_events_totals(reader->events);
	uint64_t missing = totals.hits > reader->taken ? totals.hits - reader->taken : 0;

	return missing > totals.lost ? missing : totals.lost;
}

void ring_reader_abandon(struct ring_reader *reader)
{
	uint64_t lost = lost_by_perf_events(reader);

	if (reader->programs && !reader->lost_by_programs) {
		bpf_recorder_stop(reader->programs);
		reader->lost += take_lost_by_programs(reader);
	}
	if (lost > reader->lost)
		reader->lost = lost;
}

int ring_reader_finish(struct ring_reader *reader)
{
	uint64_t lost = lost_by_perf_events(reader) + reader->lost_by_programs +
			(reader->unwinder ? live_unwinder_nr_dropped(reader->unwinder) : 0);
	struct {
		struct perf_disk_lost_samples event;
		struct record_trailer trailer;
	} record = {
		.event.header = {PERF_RECORD_LOST_SAMPLES, 0, sizeof(record)},
		.event.lost = lost,
		.trailer.time_ns = reader->end_ns,
	};

	if (lost > reader->lost)
		reader->lost = lost;
	if (!lost)
		return 0;
	return perf_writer_add_record(reader->writer, &record.event.header);
}
