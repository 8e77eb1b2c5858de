/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A growing array of bytes. After a failed allocation, additions do nothing. */
#ifndef LEAKTOOLS_RECORDER_BYTE_BUFFER_H
#define LEAKTOOLS_RECORDER_BYTE_BUFFER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct byte_buffer {
	char *bytes;
	size_t size;
	size_t capacity;
	bool failed;
};

/* Appends @size uninitialised bytes and returns them, or NULL if out of memory. */
static inline char *byte_buffer_reserve(struct byte_buffer *buffer, size_t size)
{
	if (buffer->capacity - buffer->size < size) {
		size_t capacity = (buffer->size + size) * 2;
		char *bytes = buffer->failed ? NULL : realloc(buffer->bytes, capacity);

		if (!bytes) {
			buffer->failed = true;
			return NULL;
		}
		buffer->bytes = bytes;
		buffer->capacity = capacity;
	}
	buffer->size += size;
	return buffer->bytes + buffer->size - size;
}

static inline void byte_buffer_add(struct byte_buffer *buffer, const void *bytes, size_t size)
{
	char *to = byte_buffer_reserve(buffer, size);

	if (to && size)
		memcpy(to, bytes, size);
}

static inline void byte_buffer_add_zeros(struct byte_buffer *buffer, size_t size)
{
	char *to = byte_buffer_reserve(buffer, size);

	if (to)
		memset(to, 0, size);
}

static inline void byte_buffer_add_u32(struct byte_buffer *buffer, uint32_t value)
{
	byte_buffer_add(buffer, &value, sizeof(value));
}

static inline void byte_buffer_add_u64(struct byte_buffer *buffer, uint64_t value)
{
	byte_buffer_add(buffer, &value, sizeof(value));
}

static inline void byte_buffer_align(struct byte_buffer *buffer, size_t alignment)
{
	byte_buffer_add_zeros(buffer, (alignment - buffer->size % alignment) % alignment);
}

static inline void byte_buffer_deinit(struct byte_buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct byte_buffer){0};
}

#endif
