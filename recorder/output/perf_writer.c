/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/output/perf_writer.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/output_file.h"
#include "common/scope.h"
#include "recorder/output/perf_features.h"
#include "recorder/output/write_queue.h"

#include <errno.h>

/* Feature COMPRESSED: its version, perf's number for zstd, the offset of the ratio. */
#define COMPRESSED_VERSION	1
#define COMPRESSED_ZSTD		1
#define COMPRESSED_RATIO_OFFSET 12

/* How long records may wait for a live reader. A shorter delay would cost the targets time. */
#define FLUSH_NS 20000000

/* A change of the output, until the thread has come to it. */
struct output_change {
	struct perf_next_output next;
	struct compressor *compressor;
	struct byte_buffer ids; /* build-ids, for the end of the old file */
};

/* An entry of the attributes' section. */
struct file_attr {
	struct perf_event_attr attr;
	struct perf_disk_section ids;
};

struct perf_writer {
	int fd;
	const char *name;
	bool pipe_format;
	int compression_level; /* 0: none */
	int signal_fd;
	uint64_t *left_out;		/* of a writer that never waits: samples; else NULL */
	bool needs_mirror, lost_mirror; /* @lost_mirror: that is needed */
	struct perf_writer *mirror;	/* or NULL */
	struct write_queue *queue;	/* from perf_writer_begin() on */
	struct compressor *compressor;	/* the queue's; NULL: none */
	uint64_t flushed_ns;		/* CLOCK_MONOTONIC */
	uint64_t size_bytes;		/* of the finished recording */
	uint64_t data_start;		/* file offset of the first record */
	uint64_t before_file;		/* what write_queue_written() was at the file's beginning */
	void (*note_side)(void *context, const struct perf_event_header *record); /* or NULL */
	void *note_context;
	bool keeps_head;
	struct byte_buffer head;     /* all before the first record, with @keeps_head */
	struct output_change change; /* waits for the thread, if next.done is set */
	int change_err;		     /* the failure to complete an earlier file */
	struct perf_disk_header header;
	struct perf_disk_section table[PERF_FEATURES_MAX]; /* by feature; size 0: absent */
};

int perf_writer_create(int fd, const char *name, bool pipe_format, int compression_level,
		       int signal_fd, struct perf_writer **ret)
{
	struct perf_writer *writer = calloc(1, sizeof(*writer));

	if (!writer) {
		diag_error("cannot write %s: out of memory", name);
		close(fd);
		return -ENOMEM;
	}
	writer->fd = fd;
	writer->name = name;
	writer->pipe_format = pipe_format;
	writer->compression_level = compression_level;
	writer->signal_fd = signal_fd;
	*ret = writer;
	return 0;
}

void perf_writer_mirror(struct perf_writer *writer, struct perf_writer *mirror, bool is_needed)
{
	writer->mirror = mirror;
	writer->needs_mirror = is_needed;
}

void perf_writer_never_wait(struct perf_writer *writer, uint64_t *left_out)
{
	writer->left_out = left_out;
}

/* Handles the result of a step of the mirror. */
static void mirrored(struct perf_writer *writer, int err)
{
	if (!err)
		return;
	if (writer->mirror->left_out)
		diag_warn("there are no live reports any more: the recording %s",
			  writer->needs_mirror ? "ends, too" : "goes on without them");
	writer->lost_mirror |= writer->needs_mirror;
	perf_writer_destroy(writer->mirror);
	writer->mirror = NULL;
}

bool perf_writer_interrupted(const struct perf_writer *writer)
{
	return writer->lost_mirror || (writer->queue && write_queue_interrupted(writer->queue)) ||
	       (writer->mirror && perf_writer_interrupted(writer->mirror));
}

int perf_writer_flush(struct perf_writer *writer)
{
	uint64_t now_ns = clock_now_ns();

	if (writer->mirror)
		mirrored(writer, perf_writer_flush(writer->mirror));
	if (now_ns - writer->flushed_ns < FLUSH_NS)
		return write_queue_error(writer->queue);
	writer->flushed_ns = now_ns;
	return write_queue_flush(writer->queue);
}

int perf_writer_add(struct perf_writer *writer, const char *bytes, size_t size, const char *more,
		    size_t more_size)
{
	char *to;

	if (writer->mirror)
		mirrored(writer, perf_writer_add(writer->mirror, bytes, size, more, more_size));
	to = write_queue_reserve(writer->queue, size + more_size);
	if (!to)
		return write_queue_error(writer->queue);
	memcpy(to, bytes, size);
	if (more_size)
		memcpy(to + size, more, more_size);
	return 0;
}

void perf_writer_watch_side(struct perf_writer *writer,
			    void (*note)(void *context, const struct perf_event_header *record),
			    void *context)
{
	writer->note_side = note;
	writer->note_context = context;
}

int perf_writer_add_side(struct perf_writer *writer, const struct perf_event_header *record)
{
	if (writer->note_side)
		writer->note_side(writer->note_context, record);
	return perf_writer_add_record(writer, record);
}

int perf_writer_add_sample(struct perf_writer *writer, const struct perf_event_header *record)
{
	char *to;

	if (writer->mirror)
		mirrored(writer, perf_writer_add_sample(writer->mirror, record));
	to = write_queue_offer(writer->queue, record->size);
	if (to)
		memcpy(to, record, record->size);
	else if (writer->left_out && !write_queue_error(writer->queue))
		__atomic_fetch_add(writer->left_out, 1, __ATOMIC_RELAXED);
	return write_queue_error(writer->queue);
}

uint64_t perf_writer_size_bytes(const struct perf_writer *writer)
{
	if (writer->size_bytes || !writer->queue)
		return writer->size_bytes;
	return write_queue_written(writer->queue);
}

static void add_attr(struct byte_buffer *out, const struct record_event *event,
		     struct perf_disk_section ids)
{
	struct file_attr attr = {.attr = event->attr, .ids = ids};

	byte_buffer_add(out, &attr, sizeof(attr));
}

/* Lays out everything before the data, in file order. */
static void lay_out_file(struct perf_writer *writer, struct byte_buffer *out,
			 const struct record_events *events, const struct perf_features *features)
{
	const struct record_group *groups[] = {&events->side, &events->probes};
	size_t nr_events = events->side.nr_events + events->probes.nr_events;
	uint64_t ids_at = sizeof(writer->header);

	byte_buffer_add_zeros(out, sizeof(writer->header));
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++)
		for (size_t i = 0; i < groups[g]->nr_events; i++)
			byte_buffer_add(out, groups[g]->events[i].ids,
					groups[g]->events[i].nr_ids * sizeof(uint64_t));

	writer->header.attrs.offset = out->size;
	writer->header.attrs.size = nr_events * sizeof(struct file_attr);
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		for (size_t i = 0; i < groups[g]->nr_events; i++) {
			const struct record_event *event = &groups[g]->events[i];
			uint64_t size = event->nr_ids * sizeof(uint64_t);

			add_attr(out, event, (struct perf_disk_section){ids_at, size});
			ids_at += size;
		}
	}

	for (size_t i = 0; i < PERF_FEATURES_MAX; i++) {
		const struct byte_buffer *section = &features->sections[i];

		if (!section->size)
			continue;
		writer->table[i] = (struct perf_disk_section){out->size, section->size};
		writer->header.features[0] |= 1ULL << i;
		byte_buffer_add(out, section->bytes, section->size);
	}
	byte_buffer_align(out, 8);

	writer->header.magic = PERF_MAGIC;
	writer->header.size = sizeof(writer->header);
	writer->header.attr_size = sizeof(struct file_attr);
	writer->header.data.offset = out->size;
	for (size_t i = 0; i < PERF_FEATURES_MAX; i++)
		if (writer->table[i].size)
			byte_buffer_add(out, &writer->table[i], sizeof(writer->table[i]));
	writer->data_start = out->size;
	if (!out->failed)
		memcpy(out->bytes, &writer->header, sizeof(writer->header));
}

static void add_header_record(struct byte_buffer *out, uint32_t type, size_t payload)
{
	struct perf_event_header header = {
		.type = type,
		.size = (uint16_t)(sizeof(header) + payload),
	};

	byte_buffer_add(out, &header, sizeof(header));
}

/* A record's size is 16 bits: an event of many threads gets several attribute records. */
static void add_attributes(struct byte_buffer *out, const struct record_event *event)
{
	const size_t max_ids =
		(UINT16_MAX - sizeof(struct perf_event_header) - sizeof(event->attr)) / 8;
	size_t first = 0;

	do {
		size_t left = event->nr_ids - first, nr = left < max_ids ? left : max_ids;

		add_header_record(out, PERF_USER_HEADER_ATTR, sizeof(event->attr) + nr * 8);
		byte_buffer_add(out, &event->attr, sizeof(event->attr));
		byte_buffer_add(out, event->ids + first, nr * 8);
		first += nr;
	} while (first < event->nr_ids);
}

/* Lays out the same contents as records of the pipe format. */
static void lay_out_pipe(struct byte_buffer *out, const struct record_events *events,
			 const struct perf_features *features)
{
	const struct record_group *groups[] = {&events->side, &events->probes};

	byte_buffer_add_u64(out, PERF_MAGIC);
	byte_buffer_add_u64(out, PERF_PIPE_HEADER_SIZE);
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++)
		for (size_t i = 0; i < groups[g]->nr_events; i++)
			add_attributes(out, &groups[g]->events[i]);
	for (uint64_t i = 0; i < PERF_FEATURES_MAX; i++) {
		const struct byte_buffer *section = &features->sections[i];
		size_t padded = (section->size + 7) / 8 * 8;

		if (!section->size || i == PERF_FEATURE_TRACING_DATA || padded > UINT16_MAX - 16)
			continue;
		add_header_record(out, PERF_USER_HEADER_FEATURE, 8 + padded);
		byte_buffer_add_u64(out, i);
		byte_buffer_add(out, section->bytes, section->size);
		byte_buffer_add_zeros(out, padded - section->size);
	}

	const struct byte_buffer *tracing = &features->sections[PERF_FEATURE_TRACING_DATA];
	size_t padded = (tracing->size + 7) / 8 * 8;
	add_header_record(out, PERF_USER_TRACING_DATA, 4);
	byte_buffer_add_u32(out, (uint32_t)padded);
	byte_buffer_add(out, tracing->bytes, tracing->size);
	byte_buffer_add_zeros(out, padded - tracing->size);
}

/* perf must know the maximum contents before the first compressed record. */
static void add_compression(struct byte_buffer *section, int level)
{
	byte_buffer_add_u32(section, COMPRESSED_VERSION);
	byte_buffer_add_u32(section, COMPRESSED_ZSTD);
	byte_buffer_add_u32(section, (uint32_t)level);
	byte_buffer_add_u32(section, 1); /* the ratio: set at the end */
	byte_buffer_add_u32(section, COMPRESSOR_MAX_CONTENT_BYTES);
}

/* Starts the writing thread. */
static int start_queue(struct perf_writer *writer)
{
	int err = 0;

	if (writer->compression_level)
		err = compressor_create(writer->compression_level, &writer->compressor);
	if (err) {
		diag_error("cannot compress %s: %s", writer->name, strerror(-err));
		return err;
	}
	err = write_queue_create(writer->fd, writer->name, writer->signal_fd, writer->compressor,
				 &writer->queue);
	if (err)
		writer->compressor = NULL;
	else if (writer->left_out)
		write_queue_never_wait(writer->queue);
	return err;
}

int perf_writer_begin(struct perf_writer *writer, const struct record_events *events, int argc,
		      char *const *argv)
{
	struct perf_features features;
	struct byte_buffer out = {0};
	int err = perf_features_collect(&features, events, argc, argv);

	if (writer->compression_level)
		add_compression(&features.sections[PERF_FEATURE_COMPRESSED],
				writer->compression_level);
	if (!err && writer->pipe_format)
		lay_out_pipe(&out, events, &features);
	else if (!err)
		lay_out_file(writer, &out, events, &features);
	if (!err && (out.failed || features.sections[PERF_FEATURE_COMPRESSED].failed))
		err = -ENOMEM;
	if (err == -ENOMEM)
		diag_error("cannot write %s: out of memory", writer->name);
	if (!err && !writer->pipe_format)
		err = output_file_begin(writer->fd, writer->name);
	if (!err)
		err = start_queue(writer);
	if (!err) {
		err = write_queue_add(writer->queue, out.bytes, out.size);
		write_queue_set_compressed(writer->queue, true);
	}
	if (writer->keeps_head)
		writer->head = out;
	else
		byte_buffer_deinit(&out);
	perf_features_deinit(&features);
	if (!err && writer->mirror)
		err = perf_writer_begin(writer->mirror, events, argc, argv);
	return err;
}

static void add_build_ids(struct byte_buffer *out, const struct build_ids *ids)
{
	for (size_t i = 0; i < ids->nr_entries; i++) {
		const struct build_id_entry *entry = &ids->entries[i];
		size_t len = strlen(entry->path) + 1;
		size_t size = (sizeof(struct perf_disk_build_id) + len + 7) / 8 * 8;
		struct perf_disk_build_id record = {
			.header.type = PERF_USER_BUILD_ID,
			.header.misc = PERF_RECORD_MISC_USER | PERF_MISC_BUILD_ID_SIZE,
			.header.size = (uint16_t)size,
			.pid = -1,
			.size = entry->id.size,
		};

		memcpy(record.build_id, entry->id.bytes, entry->id.size);
		byte_buffer_add(out, &record, sizeof(record));
		byte_buffer_add(out, entry->path, len);
		byte_buffer_add_zeros(out, size - sizeof(record) - len);
	}
}

/*
 * After a failed write: where the whole records in the file end. The partial record after them is
 * dropped and, on a full disk, as many whole ones as the table needs room for.
 */
static uint64_t end_of_whole_records(const struct perf_writer *writer, uint64_t written)
{
	const uint64_t room = sizeof(writer->table) + 4096;
	uint64_t at = writer->data_start, end = written > room ? written - room : 0;
	struct perf_event_header header;

	while (at + sizeof(header) <= end &&
	       pread(writer->fd, &header, sizeof(header), (off_t)at) == sizeof(header) &&
	       header.size >= sizeof(header) && at + header.size <= end)
		at += header.size;
	return at;
}

/* Finds where the data ends and the table goes. Returns 0, or a negative errno if there is none. */
static int find_end(const struct perf_writer *writer, uint64_t *ret)
{
	*ret = write_queue_written(writer->queue) - writer->before_file;
	if (!write_queue_error(writer->queue))
		return 0;
	if (*ret < writer->data_start)
		return write_queue_error(writer->queue); /* nothing to complete */
	*ret = end_of_whole_records(writer, *ret);
	return ftruncate(writer->fd, (off_t)*ret) < 0 ? -errno : 0;
}

/* The compression ratio is known only at the end. A file without it is readable, too. */
static void write_ratio(const struct perf_writer *writer)
{
	uint32_t ratio = writer->compressor ? compressor_ratio(writer->compressor) : 0;
	uint64_t at = writer->table[PERF_FEATURE_COMPRESSED].offset + COMPRESSED_RATIO_OFFSET;

	if (ratio && pwrite(writer->fd, &ratio, sizeof(ratio), (off_t)at) < 0)
		diag_warn("cannot complete %s: %s", writer->name, strerror(errno));
}

/*
 * Completes a file: writes the table of sections and the build-ids after the data, then the header
 * that points to them.
 */
static int finish_file(struct perf_writer *writer, const struct byte_buffer *build_ids,
		       uint64_t *ret_size)
{
	const struct byte_buffer none = {0};
	const struct byte_buffer ids = write_queue_error(writer->queue) ? none : *build_ids;
	struct byte_buffer out = {0};
	uint64_t end;
	int err = find_end(writer, &end);

	if (err)
		return err;
	write_ratio(writer);
	writer->header.data.offset = writer->data_start;
	writer->header.data.size = end - writer->data_start;
	if (ids.size)
		writer->header.features[0] |= 1ULL << PERF_FEATURE_BUILD_ID;

	uint64_t after_table = end + (uint64_t)__builtin_popcountll(writer->header.features[0]) *
					     sizeof(struct perf_disk_section);
	writer->table[PERF_FEATURE_BUILD_ID] = (struct perf_disk_section){after_table, ids.size};
	for (size_t i = 0; i < PERF_FEATURES_MAX; i++)
		if (writer->header.features[0] & (1ULL << i))
			byte_buffer_add(&out, &writer->table[i], sizeof(writer->table[i]));
	byte_buffer_add(&out, ids.bytes, ids.size);

	if (out.failed || ids.failed)
		err = -ENOMEM;
	else if (pwrite(writer->fd, out.bytes, out.size, (off_t)end) != (ssize_t)out.size ||
		 pwrite(writer->fd, &writer->header, sizeof(writer->header), 0) !=
			 (ssize_t)sizeof(writer->header))
		err = errno ? -errno : -EIO;
	if (err)
		diag_error("cannot complete %s: %s", writer->name, strerror(-err));
	else
		*ret_size = end + out.size;
	byte_buffer_deinit(&out);
	return err;
}

void perf_writer_keep_head(struct perf_writer *writer)
{
	writer->keeps_head = true;
}

const char *perf_writer_head(const struct perf_writer *writer, size_t *ret_size)
{
	*ret_size = writer->head.size;
	return writer->head.bytes;
}

/* In the writing thread: completes the old file, and goes on with the new one. */
static void change_output(void *context)
{
	struct perf_writer *writer = context;
	struct output_change change = writer->change;
	int old_fd = writer->fd, err = write_queue_error(writer->queue);
	uint64_t size;

	writer->change = (struct output_change){0};
	if (err) {
		close(change.next.fd);
		compressor_destroy(change.compressor);
	} else {
		err = finish_file(writer, &change.ids, &size);
		if (err && !writer->change_err)
			writer->change_err = err;
		memcpy(&writer->header, writer->head.bytes, sizeof(writer->header));
		writer->table[PERF_FEATURE_BUILD_ID] = (struct perf_disk_section){0};
		writer->fd = change.next.fd;
		writer->name = change.next.name;
		writer->compressor = change.compressor;
		writer->before_file = write_queue_written(writer->queue) - writer->head.size;
		write_queue_set_output(writer->queue, writer->fd, writer->name, change.compressor);
		change.next.done(change.next.context, old_fd);
	}
	byte_buffer_deinit(&change.ids);
}

int perf_writer_change(struct perf_writer *writer, const struct perf_next_output *next,
		       const struct build_ids *build_ids)
{
	struct output_change *change = &writer->change;
	int err = 0;

	*change = (struct output_change){.next = *next};
	add_build_ids(&change->ids, build_ids);
	if (writer->compression_level)
		err = compressor_create(writer->compression_level, &change->compressor);
	if (change->ids.failed)
		err = -ENOMEM;
	if (!err)
		err = write_queue_call(writer->queue, change_output, writer);
	if (!err)
		return 0;
	if (err == -ENOMEM)
		diag_error("cannot write %s: out of memory", next->name);
	close(next->fd);
	compressor_destroy(change->compressor);
	byte_buffer_deinit(&change->ids);
	*change = (struct output_change){0};
	return err;
}

int perf_writer_error(const struct perf_writer *writer)
{
	return write_queue_error(writer->queue);
}

int perf_writer_call(struct perf_writer *writer, void (*call)(void *context), void *context)
{
	return write_queue_call(writer->queue, call, context);
}

static int finish(struct perf_writer *writer, const struct build_ids *build_ids)
{
	struct byte_buffer ids = {0};
	int err = write_queue_drain(writer->queue);

	add_build_ids(&ids, build_ids);
	if (!writer->pipe_format) {
		uint64_t size = 0;
		int finish_err = finish_file(writer, &ids, &size);

		if (size)
			writer->size_bytes = writer->before_file + size;
		byte_buffer_deinit(&ids);
		if (!finish_err)
			finish_err = writer->change_err;
		return err ? err : finish_err;
	}
	if (err) {
		byte_buffer_deinit(&ids);
		return err;
	}
	write_queue_set_compressed(writer->queue, false);
	if (!ids.failed)
		write_queue_add(writer->queue, ids.bytes, ids.size);
	byte_buffer_deinit(&ids);
	return write_queue_drain(writer->queue);
}

/* The file first: the mirror's reader may be slow. */
int perf_writer_finish(struct perf_writer *writer, const struct build_ids *build_ids)
{
	int err = finish(writer, build_ids);

	if (writer->mirror)
		mirrored(writer, perf_writer_finish(writer->mirror, build_ids));
	return err;
}

void perf_writer_destroy(struct perf_writer *writer)
{
	if (!writer)
		return;
	perf_writer_destroy(writer->mirror);
	write_queue_destroy(writer->queue);
	if (writer->change.next.done) { /* a failure came first */
		close(writer->change.next.fd);
		compressor_destroy(writer->change.compressor);
		byte_buffer_deinit(&writer->change.ids);
	}
	/* Segments have names of their own in messages, and remove what is empty themselves. */
	if (!writer->pipe_format)
		output_file_drop_empty(writer->fd, writer->name);
	close(writer->fd);
	byte_buffer_deinit(&writer->head);
	free(writer);
}
