/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/segments/segments.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/quantity.h"
#include "common/schema/segment_values.h"
#include "recorder/events/sample_format.h"
#include "recorder/held/held_groups.h"
#include "recorder/output/byte_buffer.h"
#include "recorder/output/own_samples.h"
#include "recorder/segments/side_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Parts of the limits that a segment has. */
#define BYTE_PARTS 10
#define AGE_PARTS  12

/* 64 MiB in the table, 24 MiB in a segment before compression. */
#define MAX_BLOCKS ((size_t)1 << 20)
/* The blocks may take a quarter of a segment. */
#define BLOCK_BYTES (4 * HELD_NR_VALUES * sizeof(uint64_t))
#define MAX_GROUP   1024
/* So may the mappings. */
#define MAX_MAP_BYTES ((uint64_t)64 << 20)
#define MAP_PARTS     4

/* At the end, how often to look whether the last segments are written. */
#define WRITE_POLL_NS	   10000000
#define WRITE_POLLS_UNTOLD 50

struct segments {
	struct segment_keeper *keeper;
	struct segment_limits limits;
	struct perf_writer *writer;
	struct held_blocks *held;
	struct side_state *side;
	struct byte_buffer waiting; /* side records from after the round */
	pid_t pid;
	uint64_t start_ns;
	uint64_t began_ns, began_bytes; /* the current segment, of all that was written */
	bool out_of_memory;
	uint64_t told_one_of;
	const char *reason; /* to write what is in memory; NULL: none */
	uint64_t reason_ns; /* since when */
	bool wrote_last;    /* the end of the recording, too */
	bool asked_first;   /* @has_first was asked for */
	bool has_first;	    /* the file has the first round; the writing thread's */
};

static size_t max_map_bytes(const struct segment_limits *limits)
{
	uint64_t bytes = limits->bytes / BYTE_PARTS / MAP_PARTS;

	return limits->bytes && bytes < MAX_MAP_BYTES ? (size_t)bytes : MAX_MAP_BYTES;
}

int segments_create(const char *path, const struct segment_limits *limits, struct segments **ret,
		    int *ret_fd)
{
	struct segments *segments = calloc(1, sizeof(*segments));
	int err;

	if (segments)
		segments->side = side_state_create(max_map_bytes(limits));
	if (!segments || !segments->side) {
		diag_error("cannot write into %s: out of memory", path);
		free(segments);
		return -ENOMEM;
	}
	segments->limits = *limits;
	segments->told_one_of = 1;
	err = segment_keeper_create(path, limits, &segments->keeper, ret_fd);
	if (err)
		segments_destroy(segments);
	else
		*ret = segments;
	return err;
}

void segments_destroy(struct segments *segments)
{
	if (!segments)
		return;
	segment_keeper_destroy(segments->keeper);
	side_state_destroy(segments->side);
	byte_buffer_deinit(&segments->waiting);
	free(segments);
}

void segments_drop_unused(struct segments *segments)
{
	if (segments && !segments->has_first)
		segment_keeper_drop_first(segments->keeper);
}

const char *segments_name(const struct segments *segments)
{
	return segment_keeper_name(segments->keeper);
}

size_t segments_max_blocks(const struct segments *segments)
{
	uint64_t nr = segments->limits.bytes / BYTE_PARTS / BLOCK_BYTES;

	return segments->limits.bytes && nr < MAX_BLOCKS ? (size_t)nr : MAX_BLOCKS;
}

int segments_describe(struct record_events *events, const struct record_config *config)
{
	int err = own_samples_describe(events, config, OWN_SEGMENT);

	return err ? err : own_samples_describe(events, config, OWN_HELD);
}

static void note(void *context, const struct perf_event_header *record)
{
	struct segments *segments = context;

	segments->out_of_memory |= side_state_note(segments->side, record) != 0;
}

void segments_watch(struct segments *segments, struct perf_writer *writer)
{
	segments->writer = writer;
	perf_writer_keep_head(writer);
	perf_writer_watch_side(writer, note, segments);
}

int segments_start(struct segments *segments, struct held_blocks *held)
{
	segments->held = held;
	return segment_keeper_start(segments->keeper);
}

static int write_sample(const struct segments *segments, uint64_t time_ns, uint64_t lost)
{
	const uint64_t values[] = {
		[SEGMENT_STARTED] = segments->start_ns,
		[SEGMENT_LOST] = lost,
		[SEGMENT_ONE_OF] = held_blocks_one_of(segments->held),
		[SEGMENT_WITHOUT_STACK] = held_blocks_without_stack(segments->held),
		[SEGMENT_OUT_OF_ORDER] = held_blocks_out_of_order(segments->held),
	};

	return own_samples_write(segments->writer, OWN_SEGMENT, segments->pid, time_ns,
				 segment_keeper_number(segments->keeper), values);
}

int segments_begin(struct segments *segments, pid_t pid, uint64_t start_ns)
{
	size_t size;
	const char *head = perf_writer_head(segments->writer, &size);

	segment_keeper_set_head(segments->keeper, head, size);
	segments->pid = pid;
	segments->start_ns = segments->began_ns = start_ns;
	return write_sample(segments, start_ns, 0);
}

/* The side events have samples, too: of task:task_newtask. */
static uint64_t side_time_ns(const struct perf_event_header *record)
{
	size_t at = record->type == PERF_RECORD_SAMPLE
			    ? RECORD_SAMPLE_TIME_OFFSET
			    : record->size - sizeof(struct record_trailer) +
				      offsetof(struct record_trailer, time_ns);
	uint64_t time_ns;

	memcpy(&time_ns, (const char *)record + at, sizeof(time_ns));
	return time_ns;
}

int segments_add_side(struct segments *segments, const struct perf_event_header *record,
		      uint64_t until_ns)
{
	if (side_time_ns(record) <= until_ns)
		return perf_writer_add_side(segments->writer, record);
	byte_buffer_add(&segments->waiting, record, record->size);
	if (!segments->waiting.failed)
		return 0;
	diag_error("cannot keep records for the next segment: out of memory");
	return -ENOMEM;
}

int segments_add_waiting(struct segments *segments)
{
	uint64_t words[UINT16_MAX / sizeof(uint64_t) + 1];
	struct perf_event_header *record = (void *)words;
	size_t at = 0;
	int err = 0;

	while (!err && at < segments->waiting.size) {
		memcpy(words, segments->waiting.bytes + at, sizeof(*record));
		memcpy(words, segments->waiting.bytes + at, record->size);
		at += record->size;
		err = perf_writer_add_side(segments->writer, record);
	}
	segments->waiting.size = 0;
	return err;
}

/* True if the current segment has its part of the limits. */
static bool is_full(const struct segments *segments)
{
	const struct segment_limits *limits = &segments->limits;

	if (limits->bytes && perf_writer_size_bytes(segments->writer) - segments->began_bytes >=
				     limits->bytes / BYTE_PARTS)
		return true;
	return limits->age_ns && clock_now_ns() - segments->began_ns >= limits->age_ns / AGE_PARTS;
}

/* In the writing thread. */
static void on_complete(void *context, int old_fd)
{
	const struct segments *segments = context;

	segment_keeper_complete(segments->keeper, old_fd);
}

static void on_state_written(void *context)
{
	const struct segments *segments = context;

	segment_keeper_settle(segments->keeper);
}

static void on_first_round(void *context)
{
	struct segments *segments = context;

	segments->has_first = !perf_writer_error(segments->writer);
}

struct held_writer {
	struct perf_writer *writer;
	uint64_t time_ns;
};

static int write_group(void *context, const struct held_group *group)
{
	const struct held_writer *to = context;

	return own_samples_write_held(to->writer, group->pid, to->time_ns,
				      &(struct own_held){
					      .function = group->stack.schema->function,
					      .chain = group->stack.chain,
					      .nr_chain = group->stack.nr,
					      .values = group->values,
					      .nr_blocks = (uint32_t)group->nr,
				      });
}

static int write_state(struct segments *segments, const struct segments_now *now)
{
	struct held_writer to = {segments->writer, now->round_ns};
	int err = side_state_write(segments->side, segments->writer);

	if (!err)
		err = write_sample(segments, now->round_ns, now->lost);
	if (!err)
		err = held_groups_visit(segments->held, MAX_GROUP, write_group, &to);
	return err ? err : perf_writer_call(segments->writer, on_state_written, segments);
}

static int cut(struct segments *segments, const struct segments_now *now, int fd)
{
	const struct perf_next_output next = {
		.fd = fd,
		.name = segment_keeper_name(segments->keeper),
		.done = on_complete,
		.context = segments,
	};
	int err = perf_writer_change(segments->writer, &next, now->build_ids);

	segments->began_ns = clock_now_ns();
	/* What is still in the writer's buffers counts for the new one. */
	segments->began_bytes = perf_writer_size_bytes(segments->writer);
	return err ? err : write_state(segments, now);
}

static void tell_sampling(struct segments *segments)
{
	uint64_t one_of = held_blocks_one_of(segments->held);

	if (one_of == segments->told_one_of)
		return;
	segments->told_one_of = one_of;
	diag_warn("more than %zu blocks are held: from now on segments list one in %" PRIu64
		  " of those from before; others will be missing when their segment is removed",
		  segments_max_blocks(segments), one_of);
}

/* True if there is a reason to write what is in memory, and the last time that is done. */
static bool can_write(const struct segments *segments)
{
	return segments->reason && !segment_keeper_is_writing(segments->keeper);
}

int segments_serve(struct segments *segments, const struct segments_now *now)
{
	int err = 0, fd;

	if (!segments->asked_first) {
		segments->asked_first = true;
		err = perf_writer_call(segments->writer, on_first_round, segments);
	}
	if (err || !now->is_whole)
		return err;
	err = side_state_apply(segments->side, now->round_ns);
	if (err || segments->out_of_memory) {
		diag_error("cannot keep the state of the processes: out of memory");
		return -ENOMEM;
	}
	tell_sampling(segments);
	if (is_full(segments) || can_write(segments))
		segment_keeper_want(segments->keeper);
	fd = segment_keeper_take(segments->keeper);
	if (fd < 0)
		return fd == -EAGAIN ? 0 : fd;
	/* All of what was recorded before the reason came is before this cut. */
	if (can_write(segments) && now->round_ns >= segments->reason_ns) {
		err = segment_keeper_write(segments->keeper, segments->reason);
		segments->reason = NULL;
	}
	if (!err)
		err = cut(segments, now, fd);
	return err ? err : 1;
}

void segments_write(struct segments *segments, const char *reason, uint64_t now_ns)
{
	if (segments->reason)
		return;
	segments->reason = reason;
	segments->reason_ns = now_ns;
}

uint32_t segments_written_before(const struct segments *segments)
{
	return segment_keeper_written(segments->keeper).nr_before;
}

bool segments_are_asked(const struct segments *segments)
{
	return segments->reason;
}

static void wait_for_output(const struct segments *segments, bool (*gives_up)(void))
{
	const struct timespec pause = {.tv_nsec = WRITE_POLL_NS};

	for (uint32_t nr = 0; segment_keeper_is_writing(segments->keeper); nr++) {
		if (nr == WRITE_POLLS_UNTOLD)
			diag_note(
				"ending; what is in memory is being written, Ctrl-C leaves the rest "
				"of it out");
		if (gives_up())
			segment_keeper_abandon(segments->keeper);
		nanosleep(&pause, NULL);
	}
}

int segments_end(struct segments *segments, const char *reason, bool (*gives_up)(void))
{
	uint32_t nr_before;
	int err = 0;

	segment_keeper_end(segments->keeper);
	wait_for_output(segments, gives_up);
	nr_before = segment_keeper_written(segments->keeper).nr;
	if (segments->reason)
		reason = segments->reason;
	if (reason)
		err = segment_keeper_write_last(segments->keeper, reason);
	wait_for_output(segments, gives_up);
	segments->wrote_last = segment_keeper_written(segments->keeper).nr > nr_before;
	if (!err && segment_keeper_written(segments->keeper).nr_failed)
		err = -EIO;
	return err;
}

char *segments_describe_ring(const struct segments *segments)
{
	const struct ring_written written = segment_keeper_written(segments->keeper);
	uint64_t from_ns = segment_keeper_began_ns(segments->keeper);
	uint64_t now_ns = clock_now_ns();
	char left[64] = "", *text;

	if (written.until_ns > from_ns)
		from_ns = written.until_ns;
	if (!segments->wrote_last && now_ns > from_ns)
		snprintf(left, sizeof(left), ", the last %s not written",
			 quantity_duration((double)(now_ns - from_ns) / 1e9).text);
	return asprintf(&text, ", %" PRIu32 " written%s", written.nr, left) < 0 ? NULL : text;
}

void segments_report(const struct segments *segments)
{
	uint64_t nr = side_state_left_out(segments->side);
	uint64_t nr_blocks = held_blocks_without_stack(segments->held);
	uint64_t nr_events = held_blocks_out_of_order(segments->held);

	if (nr)
		diag_warn("%" PRIu64 " mapping%s had no room in the state of segments: functions "
			  "there may have no names",
			  nr, quantity_plural(nr));
	if (nr_blocks)
		diag_warn("%" PRIu64 " block%s had no room for %s stack in the state of segments: "
			  "they are missing where their segment is removed",
			  nr_blocks, quantity_plural(nr_blocks),
			  quantity_word(nr_blocks, "its", "their"));
	if (nr_events)
		diag_warn("%" PRIu64 " events came out of order, because there were too many in a "
			  "round: what later segments list as held may have been freed",
			  nr_events);
}
