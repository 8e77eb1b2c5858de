/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/ring_reader.h"

#include "common/scope.h"
#include "recorder/perf_records.h"

#include <errno.h>
#include <perf/event.h>
#include <perf/mmap.h>
#include <poll.h>

/* Bytes to take from a ring before its space is given back to the kernel. */
#define CONSUME_BYTES (64 << 10)

static int take_record(struct ring_reader *reader, const struct perf_event_header *record,
		       bool is_probe)
{
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		reader->samples += is_probe;
		break;
	case PERF_RECORD_LOST:
		reader->lost += ((const struct perf_lost_event *)record)->lost;
		break;
	case PERF_RECORD_LOST_SAMPLES:
		reader->lost += ((const struct perf_lost_samples_event *)record)->lost;
		break;
	case PERF_RECORD_MMAP2:
		if (build_ids_add_record(reader->build_ids, record))
			return -ENOMEM;
		break;
	default:
		break;
	}
	return perf_writer_add(reader->writer, record);
}

/* Returns 1 if the ring held anything, 0 if not, or a negative errno. */
static int drain_ring(struct ring_reader *reader, struct perf_mmap *map, bool is_probe)
{
	union perf_event *event;
	size_t unconsumed = 0;
	int err = 0, any = 0;

	if (perf_mmap__read_init(map) < 0)
		return 0;
	while (!err && (event = perf_mmap__read_event(map))) {
		const struct perf_event_header *record = (const void *)event;

		any = 1;
		unconsumed += record->size;
		err = take_record(reader, record, is_probe);
		if (unconsumed >= CONSUME_BYTES) {
			perf_mmap__consume(map);
			unconsumed = 0;
		}
	}
	perf_mmap__consume(map);
	perf_mmap__read_done(map);
	return err ? err : any;
}

int ring_reader_round(struct ring_reader *reader)
{
	static const struct perf_event_header finished_round = {
		.type = PERF_RECORD_USER_FINISHED_ROUND,
		.size = sizeof(finished_round),
	};
	const struct record_group *groups[] = {&reader->events->side, &reader->events->probes};
	bool any = false;

	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		for (size_t i = 0; i < groups[g]->nr_rings; i++) {
			int err = drain_ring(reader, groups[g]->rings[i].map,
					     groups[g] == &reader->events->probes);

			if (err < 0)
				return err;
			any |= err;
		}
	}
	return any ? perf_writer_add(reader->writer, &finished_round) : 0;
}

int ring_reader_wait(struct ring_reader *reader, int signal_fd, int timeout_ms)
{
	const struct record_group *groups[] = {&reader->events->side, &reader->events->probes};
	size_t nr_rings = groups[0]->nr_rings + groups[1]->nr_rings, nr = 0, nr_live = 0;
	_cleanup_free_ struct pollfd *fds = calloc(nr_rings + 1, sizeof(*fds));
	_cleanup_free_ struct record_ring **rings =
		calloc(nr_rings + 1, sizeof(struct record_ring *));

	if (!fds || !rings)
		return -ENOMEM;

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
	if (poll(fds, nr + 1, timeout_ms) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[nr].revents)
		return 1;

	for (size_t i = 0; i < nr; i++)
		/* POLLHUP: the event's thread and all that inherited from it are gone. */
		if (fds[i].revents & (POLLHUP | POLLERR | POLLNVAL))
			rings[i]->current++;
	for (size_t i = 0; i < groups[0]->nr_rings; i++)
		nr_live += groups[0]->rings[i].current < groups[0]->rings[i].nr_fds;
	return nr_live ? 0 : -ESRCH;
}

int ring_reader_finish(struct ring_reader *reader)
{
	uint64_t lost = record_events_lost(reader->events);
	struct {
		struct perf_lost_samples_event event;
		struct perf_record_trailer trailer;
	} record = {
		.event.header = {PERF_RECORD_LOST_SAMPLES, 0, sizeof(record)},
		.event.lost = lost - reader->lost,
	};

	if (lost <= reader->lost)
		return 0;
	reader->lost = lost;
	return perf_writer_add(reader->writer, &record.event.header);
}
