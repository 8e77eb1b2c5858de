/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/ring_reader.h"

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

/* Bytes to take from a ring before its space is given back to the kernel. */
#define CONSUME_BYTES	(64 << 10)
#define MAX_LAST_ROUNDS 1000 /* 1 ms each: a program may be preempted while it writes */

/* True if the sample was taken while not all events were enabled. */
static bool is_outside(const struct ring_reader *reader, const struct perf_event_header *sample)
{
	const char *time_at = (const char *)sample + RECORD_SAMPLE_TIME_OFFSET;
	uint64_t time_ns;

	memcpy(&time_ns, time_at, sizeof(time_ns));
	return time_ns < reader->start_ns || time_ns > reader->end_ns;
}

static bool process_exists(pid_t pid)
{
	return kill(pid, 0) == 0 || errno == EPERM;
}

/* Keeps the gate's list of processes. */
static void follow_process(struct ring_reader *reader, const struct perf_disk_task *task)
{
	if (!reader->gate)
		return;
	if (task->header.type == PERF_RECORD_FORK && task->pid != task->ppid)
		gate_add_target(reader->gate, (pid_t)task->pid, false);
	else if (task->header.type == PERF_RECORD_EXIT && !process_exists((pid_t)task->pid))
		gate_remove_target(reader->gate, (pid_t)task->pid);
}

/* Counts a record. Returns 1 to write it, 0 to leave it out, or -ENOMEM. */
static int inspect_record(struct ring_reader *reader, const struct perf_event_header *record,
			  bool is_probe)
{
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
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
		follow_process(reader, (const struct perf_disk_task *)record);
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
 * Takes one record to the writer. Where it wraps, @record is libperf's copy, of which only the
 * first sizeof(union perf_event) bytes are good (6.1, perf_mmap__read()): a stack dump is longer.
 * So the bytes come from the ring itself, whose start the first record of all shows.
 */
static int take_record(struct ring_reader *reader, const struct record_group *group,
		       struct record_ring *ring, const struct perf_event_header *record)
{
	size_t at = ring->offset & (group->ring_bytes - 1), size = record->size;
	size_t until_wrap = group->ring_bytes - at;
	int wanted = inspect_record(reader, record, group == &reader->events->probes);

	if (!ring->data)
		ring->data = (const char *)record;
	ring->offset += size;
	if (wanted <= 0)
		return wanted;
	if (size <= until_wrap)
		return perf_writer_add(reader->writer, ring->data + at, size, NULL, 0);
	return perf_writer_add(reader->writer, ring->data + at, until_wrap, ring->data,
			       size - until_wrap);
}

/*
 * Takes what the ring holds, at most its size: a target that is faster than we are must not keep us
 * at one ring. Returns 1 if the ring held anything, 0 if not, or a negative errno.
 *
 * perf_mmap__read_done() is not called: it skips what arrived since the last read (6.1).
 */
static int drain_ring(struct ring_reader *reader, const struct record_group *group,
		      struct record_ring *ring)
{
	uint64_t start = ring->offset, consumed = start;
	union perf_event *event;
	int err = 0;

	if (perf_mmap__read_init(ring->map) < 0)
		return 0;
	while (!err && ring->offset - start < group->ring_bytes &&
	       (event = perf_mmap__read_event(ring->map))) {
		err = take_record(reader, group, ring, (const void *)event);
		if (ring->offset - consumed >= CONSUME_BYTES) {
			perf_mmap__consume(ring->map);
			consumed = ring->offset;
		}
	}
	perf_mmap__consume(ring->map);
	return err ? err : ring->offset > start;
}

/*
 * Takes what the programs' ring of a CPU holds. *@ret_busy is set where a record is still being
 * written. Returns as drain_ring().
 */
static int drain_program_ring(struct ring_reader *reader, size_t cpu, bool *ret_busy)
{
	struct program_ring *ring = &reader->programs->rings[cpu];
	const struct perf_event_header *record;
	uint64_t start = ring->at, consumed = start, end;
	int err = 0;

	if (!ring->consumer)
		return 0;
	probe_programs_rearm(reader->programs, cpu);
	end = program_ring_end(ring);
	while (!err && (record = program_ring_next(ring, end, ret_busy))) {
		if (record->type == PERF_RECORD_LOST)
			reader->lost += ((const struct perf_disk_lost *)record)->lost;
		else
			reader->samples++;
		err = perf_writer_add_record(reader->writer, record);
		if (ring->at - consumed >= CONSUME_BYTES) {
			program_ring_consume(ring);
			consumed = ring->at;
		}
	}
	program_ring_consume(ring);
	return err ? err : ring->at > start;
}

static int drain_program_rings(struct ring_reader *reader, bool *ret_any, bool *ret_busy)
{
	for (size_t cpu = 0; reader->programs && cpu < reader->programs->nr_rings; cpu++) {
		int err = drain_program_ring(reader, cpu, ret_busy);

		if (err < 0)
			return err;
		*ret_any |= err;
	}
	return 0;
}

/* Drains all rings. Returns the bytes of the fullest of the probes', or a negative errno. */
static int64_t drain_all(struct ring_reader *reader, bool *ret_any)
{
	const struct record_group *groups[] = {&reader->events->side, &reader->events->probes};
	uint64_t most_bytes = 0;

	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		for (size_t i = 0; i < groups[g]->nr_rings; i++) {
			struct record_ring *ring = &groups[g]->rings[i];
			uint64_t start = ring->offset;
			int err = drain_ring(reader, groups[g], ring);

			if (err < 0)
				return err;
			*ret_any |= err;
			if (groups[g] == &reader->events->probes &&
			    ring->offset - start > most_bytes)
				most_bytes = ring->offset - start;
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

		if (reader->gate)
			gate_begin_round(reader->gate);
		most_bytes = drain_all(reader, &any);
		if (most_bytes < 0)
			return (int)most_bytes;
		err = drain_program_rings(reader, &any, &busy);
		if (!err && any && !busy)
			err = perf_writer_add_record(reader->writer, &finished_round);
		if (reader->followers)
			followers_serve(reader->followers);
		if (reader->gate)
			gate_end_round(reader->gate, (uint64_t)most_bytes);
	} while (!err && reader->gate && gate_wants_round(reader->gate));
	return err;
}

int ring_reader_wait(struct ring_reader *reader, int signal_fd, int timeout_ms)
{
	const struct record_group *groups[] = {&reader->events->side, &reader->events->probes};
	size_t nr_rings = groups[0]->nr_rings + groups[1]->nr_rings, nr = 0, nr_live = 0;
	_cleanup_free_ struct pollfd *fds = calloc(nr_rings + 2, sizeof(*fds));
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
	fds[nr + 1] = (struct pollfd){-1, POLLIN, 0};
	if (reader->programs)
		fds[nr + 1].fd = probe_programs_wakeup_fd(reader->programs);
	if (poll(fds, nr + 2, timeout_ms) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[nr].revents)
		return 1;
	if (fds[nr + 1].revents)
		probe_programs_woken(reader->programs);

	for (size_t i = 0; i < nr; i++)
		/* POLLHUP: the event's thread and all that inherited from it are gone. */
		if (fds[i].revents & (POLLHUP | POLLERR | POLLNVAL))
			rings[i]->current++;
	for (size_t i = 0; i < groups[0]->nr_rings; i++)
		nr_live += groups[0]->rings[i].current < groups[0]->rings[i].nr_fds;
	return nr_live ? 0 : -ESRCH;
}

/* True if no program is writing a record any more. */
static bool are_rings_empty(const struct probe_programs *programs)
{
	for (size_t i = 0; i < programs->nr_rings; i++)
		if (programs->rings[i].consumer &&
		    programs->rings[i].at < program_ring_end(&programs->rings[i]))
			return false;
	return true;
}

/* The programs' part of the end: what they are writing just now is waited for. */
static int stop_programs(struct ring_reader *reader)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int err;

	probe_programs_stop(reader->programs);
	perf_evlist__disable(reader->events->side.evlist);
	err = ring_reader_round(reader);
	for (int i = 0; i < MAX_LAST_ROUNDS && !err && !are_rings_empty(reader->programs); i++) {
		nanosleep(&pause, NULL);
		err = ring_reader_round(reader);
	}
	reader->lost_by_programs = reader->lost;
	for (size_t cpu = 0; cpu < reader->programs->nr_rings; cpu++)
		reader->lost_by_programs += probe_programs_take_lost(reader->programs, cpu);
	return err;
}

int ring_reader_stop(struct ring_reader *reader)
{
	int err = 0;

	reader->end_ns = clock_now_ns();
	if (reader->programs)
		return stop_programs(reader);
	/* Between the steps the rings are drained, so that nothing is lost that late. */
	for (size_t i = 0; i < reader->events->probes.nr_events; i++) {
		if (!err)
			err = ring_reader_round(reader);
		perf_evsel__disable(reader->events->probes.events[i].evsel);
	}
	perf_evlist__disable(reader->events->side.evlist);
	return err ? err : ring_reader_round(reader);
}

int ring_reader_finish(struct ring_reader *reader)
{
	uint64_t lost = record_events_lost(reader->events) + reader->lost_by_programs;
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
