/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/rounds.h"

#include "common/clock.h"
#include "common/perf_disk.h"
#include "common/scope.h"
#include "probes/elf/analysis_limit.h"
#include "recorder/targets/kept_stops.h"

#include <errno.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <poll.h>
#include <sys/sysinfo.h>
#include <time.h>

#define STOP_ROUNDS_NS	200000000ULL
#define MAX_LAST_ROUNDS 1000 /* 1 ms each: a program may be preempted while it writes */

static void handle_fork(struct rounds *rounds, pid_t pid, pid_t ppid)
{
	if (memory_samples_fork(rounds->memory, pid, ppid) && rounds->ends)
		process_ends_add(rounds->ends, pid, true);
}

/*
 * Handles forks and exits. It comes before the samples are drained: a thread may fork again soon.
 */
static void handle_tasks(struct rounds *rounds)
{
	const struct task_records *tasks = &rounds->reader.tasks;

	for (size_t i = 0; i < tasks->nr; i++) {
		context_breakers_handle_task(&rounds->reader.events->breakers, &tasks->records[i]);
		if (rounds->backpressure)
			backpressure_handle_task(rounds->backpressure, &tasks->records[i]);
		if (rounds->fork_follow)
			fork_follow_handle_task(rounds->fork_follow, &tasks->records[i]);
		if (tasks->records[i].header.type == PERF_RECORD_FORK)
			handle_fork(rounds, (pid_t)tasks->records[i].pid,
				    (pid_t)tasks->records[i].ppid);
	}
}

static int drain(struct rounds *rounds)
{
	int err;

	if (rounds->backpressure)
		backpressure_begin_round(rounds->backpressure);
	err = ring_reader_drain_side(&rounds->reader);
	if (err)
		return err;
	handle_tasks(rounds);
	return ring_reader_drain_samples(&rounds->reader, &rounds->most_bytes);
}

/*
 * While a file is analysed, which may take seconds on a busy machine: processes whose rings are
 * full wait no longer than for a round.
 */
static void drain_meanwhile(void *context)
{
	struct rounds *rounds = context;

	if (rounds->err || !rounds_are_busy(rounds))
		return;
	rounds->err = drain(rounds);
	if (rounds->backpressure)
		backpressure_continue_ready(rounds->backpressure);
}

/* Does the set-up work that processes wait for. Returns 0 or the writer's error. */
static int serve_targets(struct rounds *rounds)
{
	context_breakers_serve(&rounds->reader.events->breakers);
	given_up_serve(&rounds->given_up);
	if (rounds->fork_follow)
		fork_follow_serve(rounds->fork_follow);
	if (rounds->dlopen_watch) {
		analysis_limit_set_pause(drain_meanwhile, rounds);
		dlopen_watch_serve(rounds->dlopen_watch);
		analysis_limit_set_pause(NULL, NULL);
	}
	return rounds->err;
}

int rounds_run(struct rounds *rounds)
{
	int err;

	do {
		err = drain(rounds);
		if (!err)
			err = serve_targets(rounds);
		if (err)
			return err;
		if (rounds->backpressure) {
			backpressure_end_round(rounds->backpressure, rounds->most_bytes);
			kept_stops_tell(backpressure_table(rounds->backpressure),
					rounds->reader.recorder);
		}
	} while (rounds->backpressure && backpressure_wants_round(rounds->backpressure));
	return 0;
}

bool rounds_are_busy(const struct rounds *rounds)
{
	const struct bpf_recorder *recorder = rounds->reader.recorder;

	if (!recorder)
		return rounds->most_bytes > rounds->reader.events->probes.ring_bytes / 2;
	for (size_t i = 0; i < recorder->nr_rings; i++) {
		const struct bpf_ring *ring = &recorder->rings[i];

		if (ring->control && bpf_ring_end(ring) - ring->at > ring->size_bytes / 2)
			return true;
	}
	return false;
}

int rounds_wait(struct rounds *rounds, int signal_fd, int timeout_ms)
{
	struct ring_reader *reader = &rounds->reader;
	struct side_filter *filter = reader->events->filter;
	const struct record_group *groups[] = {&reader->events->side, &reader->events->probes};
	size_t nr_rings = groups[0]->nr_rings + groups[1]->nr_rings, nr = 0, nr_live = 0;
	_cleanup_free_ struct pollfd *fds = calloc(nr_rings + 8, sizeof(*fds));
	_cleanup_free_ struct record_ring **rings =
		calloc(nr_rings + 1, sizeof(struct record_ring *));

	if (!fds || !rings)
		return -ENOMEM;
	if (rounds->dlopen_watch && dlopen_watch_is_waiting(rounds->dlopen_watch))
		timeout_ms = 0;
	if (given_up_is_busy(&rounds->given_up) && timeout_ms > GIVEN_UP_ASK_MS)
		timeout_ms = GIVEN_UP_ASK_MS;

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
	if (reader->recorder)
		fds[nr + 1].fd = bpf_recorder_wakeup_fd(reader->recorder);
	/* For marks and scans, poll() only wakes up in time; others read the descriptors. */
	fds[nr + 2] = (struct pollfd){rounds->marks_fd, POLLIN, 0};
	fds[nr + 3] = (struct pollfd){context_breakers_fd(&reader->events->breakers), POLLIN, 0};
	fds[nr + 4] = (struct pollfd){-1, POLLIN, 0};
	/* Who waits for another file waits on. */
	if (!given_up_is_busy(&rounds->given_up))
		fds[nr + 4].fd = rounds->given_up.leases->fd;
	fds[nr + 5] = (struct pollfd){rounds->scan->signal_fd, POLLIN, 0};
	fds[nr + 6] = (struct pollfd){heap_scan_lines_fd(rounds->scan), POLLIN, 0};
	fds[nr + 7] = (struct pollfd){filter ? side_filter_fd(filter) : -1, POLLIN, 0};
	if (poll(fds, nr + 8, timeout_ms) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[nr].revents)
		return 1;
	if (fds[nr + 1].revents)
		bpf_recorder_consume_wakeups(reader->recorder);

	for (size_t i = 0; i < nr; i++)
		/* POLLHUP: the event's thread and all tasks that inherited the event have ended. */
		if (fds[i].revents & (POLLHUP | POLLERR | POLLNVAL))
			rings[i]->current++;
	for (size_t i = 0; i < groups[0]->nr_rings; i++)
		nr_live += groups[0]->rings[i].current < groups[0]->rings[i].nr_fds;
	return !nr_live || (filter && side_filter_have_all_ended(filter)) ? -ESRCH : 0;
}

/* True if no program is writing a record any more. */
static bool are_rings_empty(const struct bpf_recorder *recorder)
{
	for (size_t i = 0; i < recorder->nr_rings; i++)
		if (recorder->rings[i].control &&
		    recorder->rings[i].at < bpf_ring_end(&recorder->rings[i]))
			return false;
	return true;
}

bool rounds_have_drained(const struct rounds *rounds)
{
	return are_rings_empty(rounds->reader.recorder);
}

/* Counts losses that are in no record: samples without room, unread records, skipped hits. */
static uint64_t consume_lost_by_programs(struct ring_reader *reader)
{
	uint64_t lost = bpf_recorder_nr_skipped(reader->recorder, SKIP_COSTS_CALLS);

	for (size_t cpu = 0; cpu < reader->recorder->nr_rings; cpu++) {
		struct bpf_ring *ring = &reader->recorder->rings[cpu];
		uint64_t without_room = bpf_recorder_consume_lost(reader->recorder, cpu);

		ring->nr_lost += without_room;
		lost += without_room;
		if (ring->control)
			lost += bpf_ring_nr_unread(ring);
	}
	return lost;
}

/* Stops the programs and waits for the records that they are writing. */
static int stop_programs(struct rounds *rounds)
{
	struct ring_reader *reader = &rounds->reader;
	const struct timespec pause = {.tv_nsec = 1000000};
	int err;

	bpf_recorder_stop(reader->recorder);
	if (bpf_recorder_nr_skipped(reader->recorder, SKIP_COSTS_SET_UP))
		bpf_recorder_note_skipped(reader->recorder);
	if (rounds->dlopen_watch)
		dlopen_watch_end(rounds->dlopen_watch);
	perf_evlist__disable(reader->events->side.evlist);
	reader->stopped = true;
	err = rounds_run(rounds);
	for (int i = 0; i < MAX_LAST_ROUNDS && !err && !are_rings_empty(reader->recorder); i++) {
		nanosleep(&pause, NULL);
		err = rounds_run(rounds);
	}
	rounds->lost_by_programs = reader->lost + consume_lost_by_programs(reader);
	return err;
}

static uint64_t hits_of(const struct ring_reader *reader, const struct record_event *event)
{
	struct record_totals totals = {0};

	record_event_add_totals(event, reader->events->nr_threads, &totals);
	return totals.hits;
}

/*
 * Disables an event. A thread that has just hit it writes no sample then, although the kernel has
 * counted the hit: on each CPU one at most, because nothing preempts perf_tp_event()
 * (__uprobe_perf_func(), kernel/trace/trace_uprobe.c, Linux 6.1; seen with 6.18). It is from after
 * the recording's end.
 */
static void disable_event(struct rounds *rounds, const struct record_event *event)
{
	uint64_t hits = hits_of(&rounds->reader, event), nr_cpus = (uint64_t)get_nprocs();

	perf_evsel__disable(event->evsel);
	hits = hits_of(&rounds->reader, event) - hits;
	rounds->nr_cut_off += hits < nr_cpus ? hits : nr_cpus;
}

int rounds_stop(struct rounds *rounds)
{
	struct ring_reader *reader = &rounds->reader;
	int err = 0;

	if (reader->recorder)
		return stop_programs(rounds);
	/*
	 * Drain the rings after each event, so that nothing is lost at the end. Many threads may
	 * fill them faster than that: stopped processes then wait until all events are disabled.
	 */
	for (size_t i = 0; i < reader->events->probes.nr_events; i++) {
		if (!err && clock_now_ns() < reader->end_ns + STOP_ROUNDS_NS)
			err = rounds_run(rounds);
		if (reader->events->probes.events[i].evsel)
			disable_event(rounds, &reader->events->probes.events[i]);
	}
	perf_evlist__disable(reader->events->side.evlist);
	reader->stopped = true;
	return err ? err : rounds_run(rounds);
}

/* The number of hits without a sample, or the kernel's count of lost samples if that is higher. */
static uint64_t lost_by_perf_events(const struct rounds *rounds)
{
	const struct record_totals totals = record_events_totals(rounds->reader.events);
	uint64_t seen = rounds->reader.consumed + rounds->nr_cut_off;
	uint64_t missing = totals.hits > seen ? totals.hits - seen : 0;

	return missing > totals.lost ? missing : totals.lost;
}

void rounds_abandon(struct rounds *rounds)
{
	struct ring_reader *reader = &rounds->reader;
	uint64_t lost = lost_by_perf_events(rounds);

	if (reader->recorder && !rounds->lost_by_programs) {
		bpf_recorder_stop(reader->recorder);
		reader->lost += consume_lost_by_programs(reader);
	}
	if (lost > reader->lost)
		reader->lost = lost;
}

int rounds_finish(struct rounds *rounds)
{
	struct ring_reader *reader = &rounds->reader;
	uint64_t lost = lost_by_perf_events(rounds) + rounds->lost_by_programs +
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
