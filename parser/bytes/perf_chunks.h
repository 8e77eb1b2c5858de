/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cuts a recording's stream into records. Bytes are read in large chunks, or mapped in large
 * windows, and records are used in place; a chunk is used again, and a window unmapped, when the
 * reader has moved on and each record held in it was released.
 */
#ifndef LEAKTOOLS_PARSER_PERF_CHUNKS_H
#define LEAKTOOLS_PARSER_PERF_CHUNKS_H

#include "parser/bytes/perf_source.h"

#include <linux/perf_event.h>
#include <string.h>

/* Bytes of its own, or a window of the file, which is not used again. */
struct perf_chunk {
	struct perf_chunks *owner;
	struct perf_chunk *next_spare;
	size_t nr_holders; /* the reader, and who has records held */
	uint8_t *bytes;	   /* own_bytes, or the window's */
	struct file_window window;
	uint8_t own_bytes[] __attribute__((aligned(8)));
};

/* A record where it lies. @bytes, header.size of them, may be misaligned; only @header was checked.
 */
struct perf_record {
	struct perf_event_header header;
	uint8_t *bytes;
	uint64_t offset; /* in the file or stream, for messages */
	struct perf_chunk *chunk;
};

struct perf_chunks {
	struct perf_source *source;
	uint64_t end_offset; /* of the data; UINT64_MAX: wherever the source ends */
	uint64_t offset;     /* of the next record */
	struct perf_chunk *current;
	uint8_t *next;		  /* in @current, where the next record begins */
	size_t available;	  /* bytes from there on */
	struct perf_chunk *spare; /* a list, of @nr_spare */
	size_t nr_spare;
	bool ended;	/* nothing is left to be read */
	bool truncated; /* the source ended before @end_offset, or within a record */
};

/*
 * Reads the @source from its position on, up to @end_offset. Release with _deinit(), when no chunk
 * is held any more.
 */
void perf_chunks_init(struct perf_chunks *chunks, struct perf_source *source, uint64_t end_offset);
void perf_chunks_deinit(struct perf_chunks *chunks);

/* The source has more again (see perf_source.h). */
void perf_chunks_resume(struct perf_chunks *chunks);

int perf_chunks_next_slowly(struct perf_chunks *chunks, struct perf_record *ret);

#define PERF_FETCH_AHEAD_BYTES ((size_t)4096)
#define PERF_LARGE_BYTES       ((size_t)1024) /* what holds a dump is */
#define PERF_CACHE_LINE_BYTES  ((size_t)64)

static inline void perf_chunks_fetch(const uint8_t *bytes, size_t size_bytes)
{
	for (size_t at = 0; at < size_bytes; at += PERF_CACHE_LINE_BYTES)
		__builtin_prefetch(bytes + at);
}

/*
 * Fetches what comes behind a record into the cache, about as much as the record takes, so that
 * what is fetched goes on with what was: the processor's own fetching ends with each page, and
 * where the records of several CPUs are read in turn. Behind a large record that is the next one's
 * beginning; who reads a dump fetches that.
 */
static inline void perf_chunks_fetch_ahead(const uint8_t *bytes, size_t size_bytes)
{
	bytes += size_bytes > PERF_LARGE_BYTES ? size_bytes : PERF_FETCH_AHEAD_BYTES;
	__builtin_prefetch(bytes);
	__builtin_prefetch(bytes + PERF_CACHE_LINE_BYTES);
	if (size_bytes > 2 * PERF_CACHE_LINE_BYTES) {
		__builtin_prefetch(bytes + 2 * PERF_CACHE_LINE_BYTES);
		__builtin_prefetch(bytes + 3 * PERF_CACHE_LINE_BYTES);
	}
}

/* How many bytes of records are there to be looked at before more has to be read. */
static inline size_t perf_chunks_left(const struct perf_chunks *chunks)
{
	uint64_t to_end = chunks->end_offset - chunks->offset;

	return chunks->available < to_end ? chunks->available : (size_t)to_end;
}

/* Goes on behind so many of them. */
static inline void perf_chunks_skip(struct perf_chunks *chunks, size_t size_bytes)
{
	chunks->next += size_bytes;
	chunks->available -= size_bytes;
	chunks->offset += size_bytes;
}

/*
 * The next record; valid until the next call, unless its chunk is held. Returns 1; 0 at the end;
 * -EINVAL (corrupted), -EIO, -ENOMEM: reported.
 */
static inline int perf_chunks_next(struct perf_chunks *chunks, struct perf_record *ret)
{
	size_t size_bytes;

	if (chunks->available < sizeof(ret->header))
		return perf_chunks_next_slowly(chunks, ret);
	memcpy(&ret->header, chunks->next, sizeof(ret->header));
	size_bytes = ret->header.size;
	if (size_bytes < sizeof(ret->header) || size_bytes > chunks->available ||
	    size_bytes > chunks->end_offset - chunks->offset)
		return perf_chunks_next_slowly(chunks, ret);
	perf_chunks_fetch_ahead(chunks->next, size_bytes);
	ret->bytes = chunks->next;
	ret->offset = chunks->offset;
	ret->chunk = chunks->current;
	perf_chunks_skip(chunks, size_bytes);
	return 1;
}

void perf_chunk_give_back(struct perf_chunk *chunk);

/* Keep a record's bytes until the matching release. */
static inline void perf_chunk_hold(struct perf_chunk *chunk)
{
	chunk->nr_holders++;
}

static inline void perf_chunk_release(struct perf_chunk *chunk)
{
	if (--chunk->nr_holders == 0)
		perf_chunk_give_back(chunk);
}

/*
 * Reads the @size_bytes that follow a record without being one (TRACING_DATA, AUXTRACE) into
 * @buffer; NULL: skips them. Returns 1; 0 if the source ended before; or a negative errno,
 * reported.
 */
int perf_chunks_payload(struct perf_chunks *chunks, uint8_t *buffer, uint64_t size_bytes);

#endif
