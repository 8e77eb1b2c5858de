/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/perf_writer.h"

#include "common/diag.h"
#include "common/scope.h"
#include "recorder/perf_features.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>

#define BUFFER_BYTES (1 << 20)

/* An entry of the attributes' section. */
struct file_attr {
	struct perf_event_attr attr;
	struct perf_disk_section ids;
};

struct perf_writer {
	int fd;
	const char *name;
	bool pipe_format;
	int signal_fd;
	bool interrupted;
	int error;	     /* the first failure; nothing is written after it */
	uint64_t written;    /* bytes the kernel has taken */
	uint64_t data_start; /* file offset of the first record */
	struct perf_disk_header header;
	struct perf_disk_section table[PERF_FEATURES_MAX]; /* by feature; size 0: absent */
	size_t buffered;
	char buffer[BUFFER_BYTES];
};

int perf_writer_create(int fd, const char *name, bool pipe_format, int signal_fd,
		       struct perf_writer **ret)
{
	struct perf_writer *writer = malloc(sizeof(*writer));

	if (!writer) {
		diag_error("cannot write %s: out of memory", name);
		close(fd);
		return -ENOMEM;
	}
	memset(writer, 0, offsetof(struct perf_writer, buffer));
	writer->fd = fd;
	writer->name = name;
	writer->pipe_format = pipe_format;
	writer->signal_fd = signal_fd;
	*ret = writer;
	return 0;
}

static int write_failed(struct perf_writer *writer, int err)
{
	static const char *const advice[] = {
		[EINTR] = "; what its reader has not taken is dropped",
		[EPIPE] = "; its reader is gone",
		[ENOSPC] = "; what was recorded so far is kept",
	};
	const char *hint = (size_t)err < ARRAY_SIZE(advice) && advice[err] ? advice[err] : "";

	diag_error("cannot write %s: %s%s", writer->name, strerror(err), hint);
	writer->error = -err;
	return -err;
}

bool perf_writer_interrupted(const struct perf_writer *writer)
{
	return writer->interrupted;
}

/* The pipe is full. Waits until it takes more; a signal ends the recording, a second one the
 * waiting. */
static int wait_for_reader(struct perf_writer *writer)
{
	struct pollfd fds[] = {
		{.fd = writer->fd, .events = POLLOUT},
		{.fd = writer->signal_fd, .events = POLLIN},
	};
	struct signalfd_siginfo signal;

	if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
		return write_failed(writer, errno);
	if (!(fds[1].revents & POLLIN) ||
	    read(writer->signal_fd, &signal, sizeof(signal)) != sizeof(signal))
		return 0;
	if (writer->interrupted)
		return write_failed(writer, EINTR);
	writer->interrupted = true;
	diag_note("ending; what is recorded waits for the reader of the pipe, Ctrl-C drops it");
	return 0;
}

static int write_bytes(struct perf_writer *writer, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(writer->fd, bytes, size);

		if (n < 0 && errno == EAGAIN) {
			int err = wait_for_reader(writer);

			if (err)
				return err;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return write_failed(writer, errno);
		writer->written += (uint64_t)n;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

int perf_writer_flush(struct perf_writer *writer)
{
	if (!writer->error)
		write_bytes(writer, writer->buffer, writer->buffered);
	writer->buffered = 0;
	return writer->error;
}

int perf_writer_add(struct perf_writer *writer, const char *bytes, size_t size, const char *more,
		    size_t more_size)
{
	/* A record is never larger than the buffer: its size is 16 bits. */
	if (size + more_size > BUFFER_BYTES - writer->buffered)
		perf_writer_flush(writer);
	if (writer->error)
		return writer->error;
	memcpy(writer->buffer + writer->buffered, bytes, size);
	if (more_size)
		memcpy(writer->buffer + writer->buffered + size, more, more_size);
	writer->buffered += size + more_size;
	return 0;
}

uint64_t perf_writer_size_bytes(const struct perf_writer *writer)
{
	return writer->written;
}

static void add_attr(struct byte_buffer *out, const struct record_event *event,
		     struct perf_disk_section ids)
{
	struct file_attr attr = {.attr = event->attr, .ids = ids};

	byte_buffer_add(out, &attr, sizeof(attr));
}

/* Everything in front of the data, as it lies in the file. */
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

/* The same contents as records of the pipe format. */
static void lay_out_pipe(struct byte_buffer *out, const struct record_events *events,
			 const struct perf_features *features)
{
	const struct record_group *groups[] = {&events->side, &events->probes};
	/* A record's size is 16 bits: an event of many threads gets several attribute records. */
	const size_t max_ids =
		(UINT16_MAX - sizeof(struct perf_event_header) - sizeof(struct perf_event_attr)) /
		8;

	byte_buffer_add_u64(out, PERF_MAGIC);
	byte_buffer_add_u64(out, PERF_PIPE_HEADER_SIZE);
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		for (size_t i = 0; i < groups[g]->nr_events; i++) {
			const struct record_event *event = &groups[g]->events[i];

			size_t nr_ids = event->nr_ids < max_ids ? event->nr_ids : max_ids;
			add_header_record(out, PERF_USER_HEADER_ATTR,
					  sizeof(struct perf_event_attr) + nr_ids * 8);
			byte_buffer_add(out, &event->attr,
					sizeof(struct perf_event_attr));
			byte_buffer_add(out, event->ids, nr_ids * 8);
		}
	}
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

int perf_writer_begin(struct perf_writer *writer, const struct record_events *events, int argc,
		      char *const *argv)
{
	struct perf_features features;
	struct byte_buffer out = {0};
	int err = perf_features_collect(&features, events, argc, argv);

	if (!err && writer->pipe_format)
		lay_out_pipe(&out, events, &features);
	else if (!err)
		lay_out_file(writer, &out, events, &features);
	if (!err && out.failed)
		err = -ENOMEM;
	if (err == -ENOMEM)
		diag_error("cannot write %s: out of memory", writer->name);
	if (!err)
		err = write_bytes(writer, out.bytes, out.size);
	byte_buffer_deinit(&out);
	perf_features_deinit(&features);
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
 * After a failed write: the whole records among the bytes that reached the file from @from on. The
 * partial one goes, and so much more that the table has room on a full disk.
 */
static uint64_t end_of_whole_records(struct perf_writer *writer)
{
	const uint64_t room = sizeof(writer->table) + 4096;
	uint64_t at = writer->data_start, end = writer->written > room ? writer->written - room : 0;
	struct perf_event_header header;

	while (at + sizeof(header) <= end &&
	       pread(writer->fd, &header, sizeof(header), (off_t)at) == sizeof(header) &&
	       header.size >= sizeof(header) && at + header.size <= end)
		at += header.size;
	return at;
}

static int finish_file(struct perf_writer *writer, const struct build_ids *build_ids)
{
	struct byte_buffer out = {0}, ids = {0};
	uint64_t end = writer->written;
	int err = 0;

	if (writer->error) {
		end = end_of_whole_records(writer);
		if (ftruncate(writer->fd, (off_t)end) < 0)
			return -errno;
	} else {
		add_build_ids(&ids, build_ids);
	}
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
		writer->written = end + out.size;
	byte_buffer_deinit(&out);
	byte_buffer_deinit(&ids);
	return err;
}

int perf_writer_finish(struct perf_writer *writer, const struct build_ids *build_ids)
{
	struct byte_buffer ids = {0};

	perf_writer_flush(writer);
	if (!writer->pipe_format) {
		int err = finish_file(writer, build_ids);

		return writer->error ? writer->error : err;
	}
	add_build_ids(&ids, build_ids);
	if (!writer->error && !ids.failed)
		write_bytes(writer, ids.bytes, ids.size);
	byte_buffer_deinit(&ids);
	return writer->error;
}

void perf_writer_destroy(struct perf_writer *writer)
{
	if (!writer)
		return;
	close(writer->fd);
	free(writer);
}
