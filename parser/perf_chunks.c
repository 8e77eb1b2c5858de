/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perf_chunks.h"

#include "common/diag.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES  ((size_t)1 << 20) /* much more than a record's 65535 bytes */
#define WINDOW_BYTES ((size_t)2 << 20)

#define MAX_SPARE    16 /* chunks kept to be used again */

/* Bytes of its own, or a window of the file, which is not used again. */
struct perf_chunk {
	struct perf_chunks *owner;
	struct perf_chunk *next_spare;
	size_t nr_holders; /* the reader, and each record held */
	size_t next;	   /* where the next record begins */
	size_t filled;
	uint8_t *bytes; /* own_bytes, or the window's */
	struct file_window window;
	uint8_t own_bytes[] __attribute__((aligned(8)));
};

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

void perf_chunk_hold(struct perf_chunk *chunk)
{
	chunk->nr_holders++;
}

void perf_chunk_release(struct perf_chunk *chunk)
{
	struct perf_chunks *owner = chunk->owner;

	if (--chunk->nr_holders > 0)
		return;
	file_window_unmap(&chunk->window);
	if (chunk->bytes != chunk->own_bytes || owner->nr_spare == MAX_SPARE) {
		free(chunk);
		return;
	}
	chunk->next_spare = owner->spare;
	owner->spare = chunk;
	owner->nr_spare++;
}

/* With room for @size_bytes of its own. NULL: out of memory. */
static struct perf_chunk *new_chunk(struct perf_chunks *chunks, size_t size_bytes)
{
	struct perf_chunk *chunk = malloc(sizeof(*chunk) + size_bytes);

	if (!chunk)
		return NULL;
	*chunk = (struct perf_chunk){.owner = chunks, .nr_holders = 1};
	chunk->bytes = chunk->own_bytes;
	return chunk;
}

/* A chunk that the reader holds; NULL: out of memory. */
static struct perf_chunk *take_chunk(struct perf_chunks *chunks)
{
	struct perf_chunk *chunk = chunks->spare;

	if (!chunk)
		return new_chunk(chunks, CHUNK_BYTES);
	chunks->spare = chunk->next_spare;
	chunks->nr_spare--;
	chunk->nr_holders = 1;
	return chunk;
}

/* Makes room behind what is read: the unread rest moves to the start of a chunk nobody holds. */
static int make_room(struct perf_chunks *chunks)
{
	struct perf_chunk *old = chunks->current, *chunk = old;
	size_t rest = old ? old->filled - old->next : 0;

	if (!old || old->nr_holders > 1 || old->window.bytes) {
		chunk = take_chunk(chunks);
		if (!chunk)
			return -ENOMEM;
	}
	if (rest > 0)
		memmove(chunk->bytes, old->bytes + old->next, rest);
	if (old && old != chunk)
		perf_chunk_release(old);
	chunk->next = 0;
	chunk->filled = rest;
	chunks->current = chunk;
	return 0;
}

/*
 * Goes on with a window that begins at the next record. Returns 1; 0 if that is to be read, or
 * nothing more is there; or -ENOMEM.
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
	chunk->filled = chunk->window.size_bytes;
	chunk->next = chunks->offset - chunk->window.offset;
	if (chunks->current)
		perf_chunk_release(chunks->current);
	chunks->current = chunk;
	return 1;
}

/* Reads some more behind the bytes that are there; @needed of them must fit. */
static int fill(struct perf_chunks *chunks, size_t needed)
{
	struct perf_chunk *chunk = chunks->current;
	size_t room;
	ssize_t got;

	if (chunks->source->mappable) {
		int ret = fill_by_mapping(chunks);

		if (ret)
			return ret < 0 ? ret : 0;
	}
	if (!chunk || chunk->window.bytes || chunk->next + needed > CHUNK_BYTES) {
		int err = make_room(chunks);

		if (err)
			return err;
		chunk = chunks->current;
	}
	room = CHUNK_BYTES - chunk->filled;
	if (room > chunks->end_offset - chunks->source->position)
		room = (size_t)(chunks->end_offset - chunks->source->position);
	got = room ? perf_source_read(chunks->source, chunk->bytes + chunk->filled, room) : 0;
	if (got < 0)
		return (int)got;
	if (got == 0)
		chunks->ended = true;
	chunk->filled += (size_t)got;
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

int perf_chunks_next(struct perf_chunks *chunks, struct perf_record *ret)
{
	for (;;) {
		struct perf_chunk *chunk = chunks->current;
		size_t available = chunk ? chunk->filled - chunk->next : 0;
		size_t needed = sizeof(ret->header);
		int err;

		if (available >= needed) {
			memcpy(&ret->header, chunk->bytes + chunk->next, sizeof(ret->header));
			needed = ret->header.size;
			if (needed < sizeof(ret->header) ||
			    needed > chunks->end_offset - chunks->offset)
				return corrupted(chunks, &ret->header);
		}
		if (available >= needed) {
			ret->bytes = chunk->bytes + chunk->next;
			ret->offset = chunks->offset;
			ret->chunk = chunk;
			chunk->next += needed;
			chunks->offset += needed;
			return 1;
		}
		if (chunks->ended) {
			chunks->truncated = available > 0 || (chunks->end_offset != UINT64_MAX &&
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
		struct perf_chunk *chunk = chunks->current;
		size_t part = chunk ? chunk->filled - chunk->next : 0;

		if (part > size_bytes)
			part = (size_t)size_bytes;
		if (part > 0) {
			if (buffer) {
				memcpy(buffer, chunk->bytes + chunk->next, part);
				buffer += part;
			}
			chunk->next += part;
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
