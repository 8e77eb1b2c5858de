/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perfdata/perf_input.h"

#include "common/diag.h"
#include "common/scope.h"
#include "common/perf_disk.h"
#include "parser/perfdata/perf_delivery.h"
#include "parser/perfdata/perf_header.h"
#include "parser/perfdata/perf_order.h"
#include "parser/records/perf_sample.h"
#include "parser/perfdata/perf_script_text.h"
#include "parser/records/block_prefetch.h"
#include "parser/records/perf_side_records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TRACING_DATA_BYTES ((uint32_t)256 << 20)
#define AHEAD		       4    /* records */
#define NOT_AHEAD	       4096 /* records to skip before trying prefetch again */

struct perf_input {
	struct perf_source source;
	struct perf_header header;
	struct perf_chunks chunks;
	/* The contents of compressed records, from which records come while @in_compressed. */
	struct perf_decompressor decompressor;
	struct perf_source decompressed_source;
	struct perf_chunks decompressed;
	bool in_compressed;
	struct perf_events events;
	struct perf_formats *formats;
	struct perf_order order;
	struct perf_delivery delivery;
	const struct perf_consumer *consumer;
	struct perf_input_stats *stats;

	bool events_checked;	 /* there is an event that the schema knows */
	uint64_t progress_at;	 /* stats->records at the next call of on_progress() */
	uint32_t not_ahead;	 /* records left without prefetch */
	struct perf_record last; /* the last one delivered; its chunk is held; NULL: none */
};

/* Lists the events' names, for a file that has none of ours. */
static char *list_events(const struct perf_events *events)
{
	_cleanup_free_ char *list = NULL;
	size_t size, nr_named = 0;
	FILE *out = open_memstream(&list, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < events->nr; i++) {
		const struct perf_event_desc *desc = &events->events[i]->desc;

		if (!desc->name)
			continue;
		if (nr_named < 5)
			fprintf(out, "%s%s:%s", nr_named ? ", " : "", desc->system, desc->name);
		nr_named++;
	}
	if (nr_named > 5)
		fprintf(out, " and %zu more", nr_named - 5);
	if (nr_named == 0)
		fprintf(out, "%zu events, none of them with a name", events->nr);
	if (fclose(out) != 0)
		return NULL;
	return steal_ptr(list);
}

/* Reports a file of another recording than the files before. Returns 0 or -EXDEV. */
static int check_recording(struct perf_input *input)
{
	uint64_t recording = perf_events_recording(&input->events);
	struct perf_input_stats *stats = input->stats;

	if (recording && stats->recording && recording != stats->recording) {
		diag_error("%s: belongs to another recording than the files before it: analyse it "
			   "by itself",
			   input->source.name);
		return -EXDEV;
	}
	if (!stats->recording)
		stats->recording = recording;
	return 0;
}

/*
 * Reports a file without any of our events, or of another recording. Returns 0, -ENODATA or
 * -EXDEV.
 */
static int check_events(struct perf_input *input)
{
	_cleanup_free_ char *list = NULL;
	bool formats_missing = false;

	if (input->events_checked)
		return 0;
	for (size_t i = 0; i < input->events.nr; i++) {
		const struct perf_event *event = input->events.events[i];

		if (perf_event_is_operation(&event->desc)) {
			input->stats->not_inherited = !event->desc.attr.inherit;
			if (event->desc.attr.sample_type & PERF_SAMPLE_STACK_USER)
				input->stats->dump_bytes = event->desc.attr.sample_stack_user;
			if (event->desc.attr.freq)
				diag_warn(
					"%s: perf record -F records few of the calls: held blocks "
					"may have been freed; record without -F",
					input->source.name);
			input->events_checked = true;
			return check_recording(input);
		}
		formats_missing |= event->desc.attr.type == PERF_TYPE_TRACEPOINT && !event->bound;
	}
	if (formats_missing) {
		diag_error("%s: the formats of its events are missing: the file is truncated, or "
			   "its recorder was killed before it wrote them",
			   input->source.name);
		return -ENODATA;
	}
	list = list_events(&input->events);
	diag_error("%s: no allocator events (%s); record probes on malloc, free and the like "
		   "(leakprobe add, leakrec)",
		   input->source.name, list ? list : "");
	return -ENODATA;
}

/*
 * The entries of most blocks are in no cache any more. They are prefetched some records ahead, in
 * steps, as each step shows the address for the next.
 */
static void fetch_ahead(struct perf_input *input)
{
	const struct perf_queued *next = perf_order_ahead(&input->order, 1);
	const struct block_prefetch *prefetch = input->consumer->block_prefetch;
	uint64_t address;

	/* Unwinding of a dump begins here; the unwinder prefetches the rest. */
	if (next && next->record.header.size > PERF_LARGE_BYTES)
		perf_chunks_fetch(next->record.bytes, PERF_LARGE_BYTES);
	if (!prefetch)
		return;
	if (input->not_ahead > 0) {
		input->not_ahead--;
		return;
	}
	for (size_t step = 2; step > 0; step--) {
		const struct perf_queued *queued = perf_order_ahead(&input->order, step * AHEAD);

		if (queued && queued->event &&
		    perf_sample_peek_block(queued->event, &queued->record, &address) &&
		    !prefetch->fetch(prefetch->context, address, step == 1))
			input->not_ahead = NOT_AHEAD;
	}
}

/* True for a repeated record: a thread is not at one instruction twice in a nanosecond. */
static bool is_repeated(const struct perf_input *input, const struct perf_queued *queued)
{
	const struct perf_record *last = &input->last, *record = &queued->record;

	return queued->time_ns == input->stats->latest_ns && last->chunk &&
	       last->header.size == record->header.size &&
	       memcmp(last->bytes, record->bytes, record->header.size) == 0;
}

static void drop_last(struct perf_input *input)
{
	if (input->last.chunk)
		perf_chunk_release(input->last.chunk);
	input->last.chunk = NULL;
}

/* Delivers all records that are due. */
static int deliver_due(struct perf_input *input)
{
	const struct perf_queued *queued;
	int err = 0;

	while (!err && (queued = perf_order_pop(&input->order))) {
		fetch_ahead(input);
		if (is_repeated(input, queued))
			input->stats->repeated++;
		else
			err = perf_delivery_record(&input->delivery, queued);
		drop_last(input);
		input->last = queued->record;
	}
	return err;
}

static bool is_time(uint64_t time_ns)
{
	return time_ns != 0 && time_ns != UINT64_MAX;
}

/*
 * Queues the samples that follow the last queued one both in the file and in time, up to the first
 * that does not. Nearly all samples pass here, and only their time is read.
 */
static void queue_followers(struct perf_input *input)
{
	struct perf_chunks *chunks = input->in_compressed ? &input->decompressed : &input->chunks;
	const size_t place = input->events.sample_time, needed = place + sizeof(uint64_t);
	const uint8_t *at = chunks->next, *end = at + perf_chunks_left(chunks);
	uint64_t last_ns = perf_order_last(&input->order);
	size_t nr = 0;

	while ((size_t)(end - at) >= needed) {
		struct perf_event_header header;
		uint64_t time_ns;

		memcpy(&header, at, sizeof(header));
		memcpy(&time_ns, at + place, sizeof(time_ns));
		if (header.type != PERF_RECORD_SAMPLE || header.size < needed ||
		    header.size > end - at || time_ns < last_ns || time_ns == UINT64_MAX)
			break;
		perf_chunks_fetch_ahead(at, header.size);
		at += header.size;
		last_ns = time_ns;
		nr++;
	}
	if (nr == 0)
		return;
	perf_order_continue(&input->order, nr, (size_t)(at - chunks->next), last_ns);
	perf_chunks_skip(chunks, (size_t)(at - chunks->next));
	input->stats->records += nr;
	input->stats->samples += nr;
}

/* Queues a sample that follows the one before. Does not look up its event. */
static bool continue_queue(struct perf_input *input, const struct perf_record *record)
{
	uint64_t time_ns;

	if (record->header.type != PERF_RECORD_SAMPLE ||
	    !perf_sample_word(record, input->events.sample_time, &time_ns) || !is_time(time_ns) ||
	    !perf_order_continues(&input->order, record, time_ns))
		return false;
	perf_order_continue(&input->order, 1, record->header.size, time_ns);
	queue_followers(input);
	return true;
}

/* Queues a kernel record by its time. A record without one is delivered at once, as in perf. */
static int queue_record(struct perf_input *input, const struct perf_record *record)
{
	struct perf_queued queued = {.record = *record};

	if (continue_queue(input, record))
		return 0;
	queued.event = perf_events_find(&input->events, record);
	if (!queued.event) {
		input->stats->undecodable++;
		return 0;
	}
	queued.time_ns = perf_event_record_time(queued.event, record);
	return is_time(queued.time_ns) ? perf_order_push(&input->order, &queued)
				       : perf_delivery_record(&input->delivery, &queued);
}

static int handle_kernel_record(struct perf_input *input, const struct perf_record *record)
{
	if (record->header.type == PERF_RECORD_SAMPLE) {
		int err = input->events_checked ? 0 : check_events(input);

		input->stats->samples++;
		if (err)
			return err;
	}
	if (record->header.type == PERF_RECORD_LOST_SAMPLES)
		perf_delivery_count_lost(&input->delivery, record);
	return queue_record(input, record);
}

/* HEADER_ATTR: the attribute, of attr.size bytes, then the ids. */
static int handle_attr(struct perf_input *input, const struct perf_record *record)
{
	const uint8_t *attr = record->bytes + sizeof(record->header);
	size_t left = record->header.size - sizeof(record->header);
	uint32_t attr_bytes = 0;
	int err = -EINVAL;

	if (left >= PERF_ATTR_SIZE_VER0)
		memcpy(&attr_bytes, attr + offsetof(struct perf_event_attr, size),
		       sizeof(attr_bytes));
	if (attr_bytes >= PERF_ATTR_SIZE_VER0 && attr_bytes <= left)
		err = perf_events_add(&input->events, attr, attr_bytes, attr + attr_bytes,
				      (left - attr_bytes) / sizeof(uint64_t));
	if (err == -EINVAL)
		diag_error("%s: corrupted attribute at offset %" PRIu64, input->source.name,
			   record->offset);
	else if (!err)
		perf_formats_bind(input->formats, input->source.name, &input->events);
	return err;
}

/*
 * TRACING_DATA: the record has the size of the payload after it. Returns as perf_chunks_payload().
 */
static int handle_tracing_data(struct perf_input *input, const struct perf_record *record)
{
	_cleanup_free_ uint8_t *data = NULL;
	uint32_t size_bytes = 0;
	uint64_t offset = input->chunks.offset;
	int err;

	if (record->header.size >= sizeof(record->header) + sizeof(size_bytes))
		memcpy(&size_bytes, record->bytes + sizeof(record->header), sizeof(size_bytes));
	if (size_bytes == 0 || size_bytes > MAX_TRACING_DATA_BYTES) {
		diag_error("%s: corrupted at offset %" PRIu64 ": tracing data of %" PRIu32 " bytes",
			   input->source.name, record->offset, size_bytes);
		return -EINVAL;
	}
	data = malloc(size_bytes);
	if (!data)
		return -ENOMEM;
	err = perf_chunks_payload(&input->chunks, data, size_bytes);
	if (err <= 0)
		return err;
	err = perf_formats_add(input->formats, input->source.name, offset, data, size_bytes);
	if (err)
		return err;
	perf_formats_bind(input->formats, input->source.name, &input->events);
	return 0;
}

static int skip_auxtrace(struct perf_input *input, const struct perf_record *record)
{
	uint64_t size_bytes = 0;
	int ret;

	if (record->header.size >= sizeof(record->header) + sizeof(size_bytes))
		memcpy(&size_bytes, record->bytes + sizeof(record->header), sizeof(size_bytes));
	ret = perf_chunks_payload(&input->chunks, NULL, size_bytes);
	return ret < 0 ? ret : 0;
}

static int handle_build_id(struct perf_input *input, const struct perf_record *record)
{
	const struct perf_consumer *consumer = input->consumer;
	struct perf_build_id entry;

	if (perf_decode_build_id(record->bytes, record->header.size, &entry) || entry.is_kernel ||
	    !consumer->on_build_id)
		return 0;
	return consumer->on_build_id(consumer->context, entry.path, entry.build_id, entry.size);
}

static void take_command(struct perf_input *input, struct perf_command command)
{
	if (command.recorder != PERF_RECORDER_UNKNOWN)
		input->stats->command = command;
}

/* HEADER_FEATURE: the number of a section, then its contents. */
static void handle_feature(struct perf_input *input, const struct perf_record *record)
{
	const uint8_t *section = record->bytes + sizeof(record->header);
	size_t left = record->header.size - sizeof(record->header);
	uint64_t feature;

	if (left < sizeof(feature))
		return;
	memcpy(&feature, section, sizeof(feature));
	section += sizeof(feature);
	left -= sizeof(feature);
	if (feature == PERF_FEATURE_CMDLINE)
		take_command(input, perf_command_parse(section, left));
	recording_origin_read(&input->stats->origin, feature, section, left);
}

/* Handles a record of the recorder. */
static int handle_user_record(struct perf_input *input, const struct perf_record *record)
{
	switch (record->header.type) {
	case PERF_USER_HEADER_ATTR:
		return handle_attr(input, record);
	case PERF_USER_TRACING_DATA:
		return handle_tracing_data(input, record);
	case PERF_USER_BUILD_ID:
		return handle_build_id(input, record);
	case PERF_USER_HEADER_FEATURE:
		handle_feature(input, record);
		return 0;
	case PERF_USER_AUXTRACE:
		return skip_auxtrace(input, record);
	case PERF_USER_FINISHED_ROUND:
		perf_order_finish_round(&input->order);
		return deliver_due(input);
	default:
		if (record->header.type > PERF_USER_KNOWN_MAX)
			input->stats->unknown_records++;
		return 0;
	}
}

static int handle_record(struct perf_input *input, const struct perf_record *record)
{
	uint32_t type = record->header.type;

	input->stats->records++;
	if (type >= PERF_USER_TYPE_START)
		return handle_user_record(input, record);
	if (type == 0 || type > PERF_KERNEL_KNOWN_MAX) {
		input->stats->unknown_records++;
		return 0;
	}
	return handle_kernel_record(input, record);
}

static bool is_compressed(uint32_t type)
{
	return type == PERF_USER_COMPRESSED || type == PERF_USER_COMPRESSED2;
}

/* Gets the next record from compressed ones. Returns as perf_chunks_next(). */
static int next_decompressed(struct perf_input *input, struct perf_record *ret)
{
	int err = perf_chunks_next(&input->decompressed, ret);
	uint32_t type = err > 0 ? ret->header.type : 0;

	/* A payload after a record would be in the stream, too. No recorder writes that. */
	if (!is_compressed(type) && type != PERF_USER_TRACING_DATA && type != PERF_USER_AUXTRACE)
		return err;
	diag_error("%s: corrupted at offset %" PRIu64 ": a record of type %" PRIu32
		   " in compressed data",
		   input->source.name, input->decompressor.offset, type);
	return -EINVAL;
}

/* Gets the next record, compressed or not. Returns as perf_chunks_next(). */
static int next_record(struct perf_input *input, struct perf_record *ret)
{
	for (;;) {
		int err = input->in_compressed ? next_decompressed(input, ret) : 0;

		if (err)
			return err;
		input->in_compressed = false;
		err = perf_chunks_next(&input->chunks, ret);
		if (err <= 0 || !is_compressed(ret->header.type))
			return err;
		err = perf_decompressor_feed(&input->decompressor, ret->header.type, ret->bytes,
					     ret->header.size, ret->offset);
		if (err)
			return err;
		perf_chunks_resume(&input->decompressed);
		input->in_compressed = true;
	}
}

/* Records between two calls of on_progress(). */
#define PROGRESS_RECORDS 16384

static void tell_progress(struct perf_input *input)
{
	const struct perf_consumer *consumer = input->consumer;

	if (input->stats->records < input->progress_at)
		return;
	input->progress_at = input->stats->records + PROGRESS_RECORDS;
	if (consumer->on_progress && input->source.seekable)
		consumer->on_progress(consumer->context, input->chunks.offset,
				      input->source.size_bytes);
}

static int read_records(struct perf_input *input)
{
	struct perf_record record;
	int ret, err;

	while ((ret = next_record(input, &record)) > 0) {
		ret = handle_record(input, &record);
		if (ret)
			return ret;
		tell_progress(input);
	}
	/* What was read before a corruption is delivered. */
	perf_order_finish(&input->order);
	err = deliver_due(input);
	if (!err)
		err = perf_delivery_lost_rest(&input->delivery);
	return err ? err : ret;
}

/* True if leakrec was killed: it would have written the end of its recording. */
static bool lacks_its_end(const struct perf_input *input)
{
	if (!input->header.is_pipe || input->delivery.has_end)
		return false;
	for (size_t i = 0; i < input->events.nr; i++)
		if (input->events.events[i]->desc.is_bound)
			return true;
	return false;
}

static void report_truncation(struct perf_input *input)
{
	bool is_unfinished = input->header.unfinished || lacks_its_end(input);
	bool cut = input->chunks.truncated || input->decompressed.truncated ||
		   perf_decompressor_is_inside(&input->decompressor);

	if (input->stats->may_grow && is_unfinished) {
		diag_note("%s: its recorder has not finished it; what is there so far was read",
			  input->source.name);
		return;
	}
	input->stats->truncated |= cut || is_unfinished;
	if (cut)
		diag_warn("%s: ends too early, at offset %" PRIu64 "; the part before was read",
			  input->source.name, input->chunks.offset);
	else if (is_unfinished)
		diag_warn("%s: its recorder did not finish it; its records were read",
			  input->source.name);
}

static int read_input(struct perf_input *input)
{
	int err = perf_formats_create(input->consumer->resources, &input->formats);

	if (!err)
		err = perf_header_read(&input->source, &input->events, input->formats,
				       input->consumer, &input->header);
	if (err)
		return err;
	input->stats->has_text |= input->header.is_text;
	if (input->header.is_text)
		return perf_script_text_read(&input->source, input->header.head,
					     input->header.head_bytes, input->consumer,
					     input->stats);
	take_command(input, input->header.command);
	if (!input->stats->origin.day_ns)
		input->stats->origin = input->header.origin; /* of the first file */
	perf_formats_bind(input->formats, input->source.name, &input->events);
	perf_chunks_init(&input->chunks, &input->source, input->header.data_end);
	/* It is completed just now, or its recorder was killed before it wrote the header. */
	input->chunks.is_unfinished = input->header.unfinished;
	perf_decompressor_init(&input->decompressor, input->source.name);
	perf_source_init_compressed(&input->decompressed_source, &input->decompressor);
	perf_chunks_init(&input->decompressed, &input->decompressed_source, UINT64_MAX);
	err = read_records(input);
	if (perf_source_check(&input->source))
		return -EIO;
	if (!err)
		err = check_events(input);
	if (!err)
		report_truncation(input);
	return err;
}

int perf_input_read(int fd, const char *name, const struct perf_consumer *consumer,
		    struct perf_input_stats *ret_stats)
{
	struct perf_input *input = calloc(1, sizeof(*input));
	int err = -ENOMEM;

	if (input) {
		input->consumer = consumer;
		input->stats = ret_stats;
		input->delivery.consumer = consumer;
		input->delivery.stats = ret_stats;
		input->delivery.sequence = ret_stats->probe_samples;
		input->order.events = &input->events;
		perf_source_init(&input->source, fd, name);
		err = read_input(input);
		perf_order_deinit(&input->order);
		drop_last(input);
		perf_chunks_deinit(&input->chunks);
		perf_chunks_deinit(&input->decompressed);
		perf_decompressor_deinit(&input->decompressor);
		perf_events_deinit(&input->events);
		perf_formats_destroy(input->formats);
		perf_source_deinit(&input->source);
		free(input);
	}
	if (err == -ENOMEM)
		diag_error("%s: out of memory", name);
	return err;
}
