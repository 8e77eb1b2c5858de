/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/bytes/perf_chunks.h"

#include "common/diag.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES  ((size_t)1 << 20) /* much more than a record's 65535 bytes */
#define WINDOW_BYTES ((size_t)2 << 20)

#define MAX_SPARE    16 /* spare chunks */

void perf_chunks_init(struct perf_chunks *chunks, struct perf_source *source, uint64_t end_offset)
{
	*chunks = (struct perf_chunks){
		.source = source,
		.end_offset = end_offset,
		.offset = source->position,
	};
}

void perf_chunks_deinit(struct perf_chunks *chunks)
{
	if (chunks->current)
		perf_chunk_release(chunks->current);
	chunks->current = NULL;
	while (chunks->spare) {
		struct perf_chunk *chunk = chunks->spare;

		chunks->spare = chunk->next_spare;
		free(chunk);
	}
	chunks->nr_spare = 0;
}

void perf_chunks_resume(struct perf_chunks *chunks)
{
	chunks->ended = chunks->truncated = false;
}

/* The last holder has released it. */
void perf_chunk_give_back(struct perf_chunk *chunk)
{
	struct perf_chunks *owner = chunk->owner;

	file_window_unmap(&chunk->window);
	if (chunk->bytes != chunk->own_bytes || owner->nr_spare == MAX_SPARE) {
		free(chunk);
		return;
	}
	chunk->next_spare = owner->spare;
	owner->spare = chunk;
	owner->nr_spare++;
}

/* A chunk with @size_bytes of its own. NULL: out of memory. */
static struct perf_chunk *new_chunk(struct perf_chunks *chunks, size_t size_bytes)
{
	struct perf_chunk *chunk = malloc(sizeof(*chunk) + size_bytes);

	if (!chunk)
		return NULL;
	*chunk = (struct perf_chunk){.owner = chunks, .nr_holders = 1};
	chunk->bytes = chunk->own_bytes;
	return chunk;
}

/* A chunk for the reader. NULL: out of memory. */
static struct perf_chunk *acquire_chunk(struct perf_chunks *chunks)
{
	struct perf_chunk *chunk = chunks->spare;

	if (!chunk)
		return new_chunk(chunks, CHUNK_BYTES);
	chunks->spare = chunk->next_spare;
	chunks->nr_spare--;
	chunk->nr_holders = 1;
	return chunk;
}

/*
 * Makes room after the unread bytes: moves them to the start of a chunk that has no other holder.
 */
static int make_room(struct perf_chunks *chunks)
{
	struct perf_chunk *old = chunks->current, *chunk = old;

	if (!old || old->nr_holders > 1 || old->window.bytes) {
		chunk = acquire_chunk(chunks);
		if (!chunk)
			return -ENOMEM;
	}
	if (chunks->available > 0)
		memmove(chunk->bytes, chunks->next, chunks->available);
	if (old && old != chunk)
		perf_chunk_release(old);
	chunks->next = chunk->bytes;
	chunks->current = chunk;
	return 0;
}

/*
 * Maps a window that begins at the next record. Returns 1; 0 if the source must be read instead, or
 * has ended; or -ENOMEM.
 */
static int fill_by_mapping(struct perf_chunks *chunks)
{
	struct perf_chunk *chunk = new_chunk(chunks, 0);

	if (!chunk)
		return -ENOMEM;
	if (!perf_source_map(chunks->source, chunks->offset, chunks->end_offset, WINDOW_BYTES,
			     &chunk->window)) {
		free(chunk);
		return 0;
	}
	chunk->bytes = chunk->window.bytes;
	if (chunks->current)
		perf_chunk_release(chunks->current);
	chunks->current = chunk;
	chunks->next = chunk->bytes + (chunks->offset - chunk->window.offset);
	chunks->available = chunk->window.size_bytes - (chunks->offset - chunk->window.offset);
	return 1;
}

/* Reads more bytes. There is room for at least @needed. */
static int fill(struct perf_chunks *chunks, size_t needed)
{
	const struct perf_chunk *chunk = chunks->current;
	size_t room;
	ssize_t got;

	if (chunks->source->mappable) {
		int ret = fill_by_mapping(chunks);

		if (ret)
			return ret < 0 ? ret : 0;
	}
	if (!chunk || chunk->window.bytes ||
	    (size_t)(chunks->next - chunk->bytes) + needed > CHUNK_BYTES) {
		int err = make_room(chunks);

		if (err)
			return err;
		chunk = chunks->current;
	}
	room = CHUNK_BYTES - (size_t)(chunks->next - chunk->bytes) - chunks->available;
	if (room > chunks->end_offset - chunks->source->position)
		room = (size_t)(chunks->end_offset - chunks->source->position);
	got = room ? perf_source_read(chunks->source, chunks->next + chunks->available, room) : 0;
	if (got < 0)
		return (int)got;
	if (got == 0)
		chunks->ended = true;
	chunks->available += (size_t)got;
	return 0;
}

static int corrupted(const struct perf_chunks *chunks, const struct perf_event_header *header)
{
	diag_error("%s: corrupted at offset %" PRIu64 "%s: a record of type %" PRIu32
		   " and size %u%s",
		   chunks->source->name, chunks->offset,
		   chunks->source->decompressor ? " of the decompressed data" : "", header->type,
		   header->size,
		   header->size < sizeof(*header) ? "" : " runs past the end of the data");
	return -EINVAL;
}

/* As perf_chunks_next(), for when the next record is not complete in memory. */
int perf_chunks_next_slowly(struct perf_chunks *chunks, struct perf_record *ret)
{
	for (;;) {
		size_t needed = sizeof(ret->header);
		int err;

		if (chunks->available >= needed) {
			memcpy(&ret->header, chunks->next, sizeof(ret->header));
			needed = ret->header.size;
			/* The table begins with an offset, of which the upper half is 0. */
			if (chunks->is_unfinished && !needed && !ret->header.misc)
				return 0;
			if (needed < sizeof(ret->header) ||
			    needed > chunks->end_offset - chunks->offset)
				return corrupted(chunks, &ret->header);
		}
		if (chunks->available >= needed)
			return perf_chunks_next(chunks, ret);
		if (chunks->ended) {
			chunks->truncated =
				chunks->available > 0 || (chunks->end_offset != UINT64_MAX &&
							  chunks->offset < chunks->end_offset);
			return 0;
		}
		err = fill(chunks, needed);
		if (err)
			return err;
	}
}

int perf_chunks_payload(struct perf_chunks *chunks, uint8_t *buffer, uint64_t size_bytes)
{
	while (size_bytes > 0) {
		size_t part = chunks->available;

		if (part > size_bytes)
			part = (size_t)size_bytes;
		if (part > 0) {
			if (buffer) {
				memcpy(buffer, chunks->next, part);
				buffer += part;
			}
			chunks->next += part;
			chunks->available -= part;
			chunks->offset += part;
			size_bytes -= part;
		} else if (chunks->ended) {
			chunks->truncated = true;
			return 0;
		} else {
			int err = fill(chunks, 1);

			if (err)
				return err;
		}
	}
	return 1;
}
