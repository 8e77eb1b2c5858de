/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perfdata/perf_header.h"

#include "common/diag.h"
#include "common/scope.h"
#include "common/perf_disk.h"
#include "parser/perfdata/perf_script_text.h"
#include "parser/records/perf_side_records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ATTR_BYTES	  4096u
#define MAX_ATTRS	  65536u
#define MAX_SECTION_BYTES ((uint64_t)256 << 20)

/* The parameters of perf_header_read(), and its state. */
struct header_reader {
	struct perf_source *source;
	struct perf_events *events;
	struct perf_formats *formats;
	const struct perf_consumer *consumer;
	struct perf_disk_header disk;
	uint64_t id_bytes; /* of all attributes so far */
	struct perf_command command;
	struct recording_origin origin;
};

static int not_perf_data(const struct perf_source *source, const char *why)
{
	diag_error("%s: not a perf.data file: %s", source->name, why);
	return -EINVAL;
}

static int check_magic(const struct perf_source *source, const void *head, size_t head_bytes)
{
	uint64_t magic;

	if (head_bytes == 0)
		return not_perf_data(source, "it is empty");
	if (head_bytes >= sizeof(magic)) {
		memcpy(&magic, head, sizeof(magic));
		if (magic == PERF_MAGIC_SWAPPED) {
			diag_error("%s: recorded on a machine of the other byte order, "
				   "which is not supported",
				   source->name);
			return -EINVAL;
		}
		if (magic != PERF_MAGIC)
			return not_perf_data(source, "it does not begin with \"PERFILE2\"");
	}
	if (head_bytes < PERF_PIPE_HEADER_SIZE)
		return not_perf_data(source, "it ends within its header");
	return 0;
}

static int out_of_file(const struct header_reader *reader, const char *what, uint64_t offset,
		       uint64_t size_bytes)
{
	diag_error("%s: corrupted header: %s (%" PRIu64 " bytes at offset %" PRIu64 ") "
		   "lie beyond the end of the file, or are too large",
		   reader->source->name, what, size_bytes, offset);
	return -EINVAL;
}

/* Reads a section into new memory. Returns -ENODATA if it lies outside the file (not reported). */
static int load_section(const struct header_reader *reader, const struct perf_disk_section *section,
			uint8_t **ret)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	int err;

	if (section->size > MAX_SECTION_BYTES ||
	    !perf_source_contains(reader->source, section->offset, section->size))
		return -ENODATA;
	bytes = malloc(section->size ? section->size : 1);
	if (!bytes)
		return -ENOMEM;
	err = perf_source_read_at(reader->source, section->offset, bytes, section->size);
	if (err)
		return err;
	*ret = steal_ptr(bytes);
	return 0;
}

static int read_attr(struct header_reader *reader, uint64_t offset)
{
	size_t attr_bytes = reader->disk.attr_size - sizeof(struct perf_disk_section);
	uint8_t entry[MAX_ATTR_BYTES];
	_cleanup_free_ uint8_t *ids = NULL;
	struct perf_disk_section section;
	int err;

	err = perf_source_read_at(reader->source, offset, entry, reader->disk.attr_size);
	if (err)
		return err == -ENODATA
			       ? out_of_file(reader, "attributes", offset, reader->disk.attr_size)
			       : err;
	memcpy(&section, entry + attr_bytes, sizeof(section));
	reader->id_bytes += section.size;
	/* Sections do not overlap, so the file is large enough for all ids. */
	err = reader->id_bytes > reader->source->size_bytes ? -ENODATA
							    : load_section(reader, &section, &ids);
	if (err == -ENODATA)
		return out_of_file(reader, "event ids", section.offset, section.size);
	if (err)
		return err;
	err = perf_events_add(reader->events, entry, attr_bytes, ids,
			      section.size / sizeof(uint64_t));
	if (err == -EINVAL)
		diag_error("%s: corrupted attribute at offset %" PRIu64, reader->source->name,
			   offset);
	return err;
}

static int read_attrs(struct header_reader *reader)
{
	const struct perf_disk_section *attrs = &reader->disk.attrs;
	uint64_t attr_size = reader->disk.attr_size;

	if (attr_size < PERF_ATTR_SIZE_VER0 + sizeof(struct perf_disk_section) ||
	    attr_size > MAX_ATTR_BYTES) {
		diag_error("%s: corrupted header: attributes of %" PRIu64 " bytes each",
			   reader->source->name, attr_size);
		return -EINVAL;
	}
	if (!perf_source_contains(reader->source, attrs->offset, attrs->size) ||
	    attrs->size / attr_size > MAX_ATTRS)
		return out_of_file(reader, "attributes", attrs->offset, attrs->size);
	for (uint64_t i = 0; i < attrs->size / attr_size; i++) {
		int err = read_attr(reader, attrs->offset + i * attr_size);

		if (err)
			return err;
	}
	return 0;
}

static int read_build_ids(struct header_reader *reader, const struct perf_disk_section *section)
{
	const struct perf_consumer *consumer = reader->consumer;
	_cleanup_free_ uint8_t *bytes = NULL;
	struct perf_build_id entry;
	uint64_t offset = 0;
	int err = load_section(reader, section, &bytes);

	while (!err && section->size - offset >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;

		memcpy(&header, bytes + offset, sizeof(header));
		if (header.size < sizeof(header) || header.size > section->size - offset)
			break;
		if (!perf_decode_build_id(bytes + offset, header.size, &entry) &&
		    !entry.is_kernel && consumer->on_build_id)
			err = consumer->on_build_id(consumer->context, entry.path, entry.build_id,
						    entry.size);
		offset += header.size;
	}
	return err == -ENODATA ? 0 : err;
}

static int read_feature(struct header_reader *reader, unsigned int feature,
			const struct perf_disk_section *section)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	int err;

	if (feature == PERF_FEATURE_BUILD_ID)
		return read_build_ids(reader, section);
	if (feature != PERF_FEATURE_TRACING_DATA && feature != PERF_FEATURE_CMDLINE &&
	    feature != PERF_FEATURE_HOSTNAME && feature != PERF_FEATURE_CLOCK_DATA)
		return 0;
	err = load_section(reader, section, &bytes);
	if (err == -ENODATA)
		return feature == PERF_FEATURE_TRACING_DATA
			       ? out_of_file(reader, "tracing data", section->offset, section->size)
			       : 0;
	if (err)
		return err;
	if (feature == PERF_FEATURE_TRACING_DATA)
		return perf_formats_add(reader->formats, reader->source->name, section->offset,
					bytes, section->size);
	if (feature == PERF_FEATURE_CMDLINE)
		reader->command = perf_command_parse(bytes, section->size);
	recording_origin_read(&reader->origin, feature, bytes, section->size);
	return 0;
}

static bool has_feature(const struct header_reader *reader, unsigned int feature)
{
	return reader->disk.features[feature / 64] >> (feature % 64) & 1;
}

static size_t count_features(const struct header_reader *reader)
{
	size_t nr = 0;

	for (unsigned int i = 0; i < PERF_NR_FEATURES; i++)
		nr += has_feature(reader, i);
	return nr;
}

/*
 * Reads the table of sections at @offset. Returns 1; 0 if there is none or a section goes beyond
 * @end; or a negative errno.
 */
static int load_table(const struct header_reader *reader, uint64_t offset, uint64_t end,
		      struct perf_disk_section *ret)
{
	size_t nr = count_features(reader);
	int err;

	if (nr == 0 || !perf_source_contains(reader->source, offset, nr * sizeof(*ret)))
		return 0;
	err = perf_source_read_at(reader->source, offset, ret, nr * sizeof(*ret));
	if (err)
		return err == -ENODATA ? 0 : err;
	for (size_t i = 0; i < nr; i++)
		if (ret[i].offset > end || ret[i].size > end - ret[i].offset)
			return 0;
	return 1;
}

/*
 * Reads the table of a file whose data.size is 0: its recorder was killed, or recorded nothing.
 * Records in the place of the table cannot pass for one: the size is in the top bits of a record's
 * first 8 bytes, so that they make an offset beyond all files.
 */
static int load_early_table(const struct header_reader *reader, struct perf_header *header,
			    struct perf_disk_section *ret)
{
	size_t nr = count_features(reader);
	uint64_t table_end = header->data_offset + nr * sizeof(*ret);
	int found = load_table(reader, header->data_offset, reader->source->size_bytes, ret);

	header->unfinished = true;
	if (found <= 0)
		return found;
	for (size_t i = 0; i < nr; i++)
		if (ret[i].size > 0 && ret[i].offset >= table_end)
			header->unfinished = false;
	if (header->unfinished)
		header->data_offset = table_end; /* provisional; the data follows */
	return 1;
}

/*
 * Reads the table of a file that ends before its table. leakrec's files have a provisional one,
 * without build-ids, before the data.
 */
static int load_earlier_table(struct header_reader *reader, const struct perf_header *header,
			      struct perf_disk_section *ret)
{
	uint64_t offset, table_bytes;

	reader->disk.features[0] &= ~(1ULL << PERF_FEATURE_BUILD_ID);
	table_bytes = count_features(reader) * sizeof(*ret);
	if (table_bytes > header->data_offset || !has_feature(reader, PERF_FEATURE_TRACING_DATA))
		return 0;
	offset = header->data_offset - table_bytes;
	return load_table(reader, offset, offset, ret);
}

/* The table of sections follows the data. If it does not, there may be one before the data. */
static int read_features(struct header_reader *reader, struct perf_header *header)
{
	struct perf_disk_section table[PERF_NR_FEATURES];
	size_t next = 0;
	int found;

	if (header->data_end == header->data_offset)
		found = load_early_table(reader, header, table);
	else if (perf_source_contains(reader->source, header->data_end, 0))
		found = load_table(reader, header->data_end, UINT64_MAX, table);
	else
		found = load_earlier_table(reader, header, table);
	for (unsigned int i = 0; found > 0 && i < PERF_NR_FEATURES; i++) {
		int err = has_feature(reader, i) ? read_feature(reader, i, &table[next++]) : 0;

		if (err)
			return err;
	}
	return found < 0 ? found : 0;
}

static int read_file_header(struct header_reader *reader, struct perf_header *header)
{
	const struct perf_disk_header *disk = &reader->disk;
	struct perf_source *source = reader->source;
	size_t header_bytes = sizeof(*disk);
	int err;

	/* Before Linux 2.6.33 the header had no feature bits. */
	if (disk->size == offsetof(struct perf_disk_header, features))
		header_bytes = disk->size;
	else if (disk->size != sizeof(*disk))
		return not_perf_data(source, "its header has an unknown size");
	err = perf_source_read_at(source, 0, &reader->disk, header_bytes);
	if (err)
		return err == -ENODATA ? not_perf_data(source, "it ends within its header") : err;
	header->data_offset = disk->data.offset;
	header->data_end = disk->data.offset + disk->data.size;
	if (header->data_end < header->data_offset ||
	    !perf_source_contains(source, header->data_offset, 0))
		return out_of_file(reader, "data", disk->data.offset, disk->data.size);
	err = read_attrs(reader);
	if (!err)
		err = read_features(reader, header);
	header->command = reader->command;
	header->origin = reader->origin;
	if (header->unfinished)
		header->data_end = UINT64_MAX;
	source->position = header->data_offset;
	return err;
}

int perf_header_read(struct perf_source *source, struct perf_events *events,
		     struct perf_formats *formats, const struct perf_consumer *consumer,
		     struct perf_header *ret)
{
	struct header_reader reader = {
		.source = source,
		.events = events,
		.formats = formats,
		.consumer = consumer,
	};
	ssize_t got = perf_source_read_full(source, &reader.disk, PERF_PIPE_HEADER_SIZE);
	int err;

	*ret = (struct perf_header){.data_end = UINT64_MAX};
	if (got < 0)
		return (int)got;
	memcpy(ret->head, &reader.disk, (size_t)got);
	ret->head_bytes = (size_t)got;
	ret->is_text = memcmp(ret->head, "PERFILE2", 8) != 0 &&
		       memcmp(ret->head, "2ELIFREP", 8) != 0 &&
		       perf_script_text_begins(ret->head, ret->head_bytes);
	err = ret->is_text ? 0 : check_magic(source, &reader.disk, (size_t)got);
	if (err || ret->is_text)
		return err;
	if (reader.disk.size == PERF_PIPE_HEADER_SIZE) {
		ret->is_pipe = true;
		ret->data_offset = PERF_PIPE_HEADER_SIZE;
		return 0;
	}
	if (!source->seekable)
		err = perf_source_spool(source, &reader.disk, PERF_PIPE_HEADER_SIZE);
	return err ? err : read_file_header(&reader, ret);
}
