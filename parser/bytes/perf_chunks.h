/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cuts a recording's stream into records. Bytes are read in large chunks, or mapped in large
 * windows, and records are used in place. When the reader has moved on and all records held in it
 * were released, a chunk is reused, and a window unmapped.
 */
#ifndef LEAKTOOLS_PARSER_PERF_CHUNKS_H
#define LEAKTOOLS_PARSER_PERF_CHUNKS_H

#include "parser/bytes/perf_source.h"

#include <linux/perf_event.h>
#include <string.h>

/* Bytes of its own, or a window of the file. A window is not reused. */
struct perf_chunk {
	struct perf_chunks *owner;
	struct perf_chunk *next_spare;
	size_t nr_holders; /* the reader, and one for each record held */
	uint8_t *bytes;	   /* own_bytes, or the window's */
	struct file_window window;
	uint8_t own_bytes[] __attribute__((aligned(8)));
};

/* A record in place. @bytes, header.size of them, may be misaligned. Only @header was checked. */
struct perf_record {
	struct perf_event_header header;
	uint8_t *bytes;
	uint64_t offset; /* in the file or stream, for messages */
	struct perf_chunk *chunk;
};

struct perf_chunks {
	struct perf_source *source;
	uint64_t end_offset; /* of the data; UINT64_MAX: the end of the source */
	uint64_t offset;     /* of the next record */
	struct perf_chunk *current;
	uint8_t *next;		  /* start of the next record, in @current */
	size_t available;	  /* bytes from @next on */
	struct perf_chunk *spare; /* a list, of @nr_spare */
	size_t nr_spare;
	bool ended;	    /* nothing is left to read */
	bool is_unfinished; /* set by the caller: leakrec's table of sections may follow the data */
	bool truncated;	    /* the source ended before @end_offset, or within a record */
};

/*
 * Reads @source from its position up to @end_offset. Call _deinit() when no chunk is held any more.
 */
void perf_chunks_init(struct perf_chunks *chunks, struct perf_source *source, uint64_t end_offset);
void perf_chunks_deinit(struct perf_chunks *chunks);

/* The source has more data again (perf_source.h). */
void perf_chunks_resume(struct perf_chunks *chunks);

int perf_chunks_next_slowly(struct perf_chunks *chunks, struct perf_record *ret);

#define PERF_FETCH_AHEAD_BYTES ((size_t)4096)
#define PERF_LARGE_BYTES       ((size_t)1024) /* records with a dump are larger */
#define PERF_CACHE_LINE_BYTES  ((size_t)64)

static inline void perf_chunks_fetch(const uint8_t *bytes, size_t size_bytes)
{
	for (size_t at = 0; at < size_bytes; at += PERF_CACHE_LINE_BYTES)
		__builtin_prefetch(bytes + at);
}

/*
 * Prefetches as many bytes after a record as the record has, so that prefetching continues without
 * gaps. The CPU's own prefetching ends at each page, and wherever the records of another CPU are
 * read next. After a large record only the start of the next one is prefetched; the unwinder
 * prefetches dumps.
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

/* The number of bytes available without reading more. */
static inline size_t perf_chunks_left(const struct perf_chunks *chunks)
{
	uint64_t to_end = chunks->end_offset - chunks->offset;

	return chunks->available < to_end ? chunks->available : (size_t)to_end;
}

/* Skips @size_bytes of them. */
static inline void perf_chunks_skip(struct perf_chunks *chunks, size_t size_bytes)
{
	chunks->next += size_bytes;
	chunks->available -= size_bytes;
	chunks->offset += size_bytes;
}

/*
 * Gets the next record; valid until the next call, unless its chunk is held. Returns 1; 0 at the
 * end; or -EINVAL (corrupted), -EIO, -ENOMEM, all reported.
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

/* Keeps a record's bytes until the matching release. */
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
