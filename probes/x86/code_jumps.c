/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/x86/code_jumps.h"

#include "probes/elf/analysis_limit.h"

#include "common/scope.h"

#include <errno.h>

#define CHUNK_BYTES    (1u << 20)
#define DISTANCE_BYTES 4 /* after the opcode's last byte */
#define MAX_SEGMENTS   64
#define MAX_CODE_BYTES (1ull << 30) /* of a file; browsers have a quarter of that */

/* True if @code[@at] may be the last byte of an opcode with a 32-bit distance. */
static bool may_be_jump(const uint8_t *code, size_t at)
{
	if (code[at] == 0xe8 || code[at] == 0xe9) /* call, jmp */
		return true;
	return (code[at] & 0xf0) == 0x80 && at > 0 && code[at - 1] == 0x0f; /* jcc */
}

void code_jumps_scan(const uint8_t *code, size_t size_bytes, uint64_t offset,
		     struct code_span *spans, size_t nr)
{
	for (size_t at = 0; at + DISTANCE_BYTES < size_bytes; at++) {
		int32_t distance;
		uint64_t target;

		if (!may_be_jump(code, at))
			continue;
		memcpy(&distance, code + at + 1, DISTANCE_BYTES);
		target = offset + at + 1 + DISTANCE_BYTES + (uint64_t)(int64_t)distance;
		for (size_t i = 0; i < nr; i++)
			if (target >= spans[i].first && target <= spans[i].last &&
			    (offset + at < spans[i].own_begin || offset + at >= spans[i].own_end))
				spans[i].is_entered = true;
	}
}

static int scan_segment(const struct elf_image *image, uint64_t offset, uint64_t size_bytes,
			struct code_span *spans, size_t nr)
{
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK_BYTES);

	if (!chunk)
		return -ENOMEM;
	while (size_bytes > DISTANCE_BYTES) {
		size_t len = size_bytes < CHUNK_BYTES ? size_bytes : CHUNK_BYTES;
		/*
		 * The next chunk begins with the bytes of a jump that may be cut off at the end of
		 * this one.
		 */
		size_t step = len - DISTANCE_BYTES - 1;
		int err = elf_image_read(image, offset, chunk, len);

		if (err || analysis_limit_is_reached(len))
			return err;
		code_jumps_scan(chunk, len, offset, spans, nr);
		if (len == size_bytes)
			break;
		offset += step;
		size_bytes -= step;
	}
	return 0;
}

int code_jumps_find(const struct elf_image *image, struct code_span *spans, size_t nr)
{
	uint64_t offset, size_bytes, left_bytes = MAX_CODE_BYTES;
	int err = 0;

	for (size_t i = 0; !err && elf_image_code_segment(image, i, &offset, &size_bytes); i++) {
		/* A hostile file may claim more: then all spans count as entered. */
		if (i == MAX_SEGMENTS || size_bytes > left_bytes) {
			for (size_t k = 0; k < nr; k++)
				spans[k].is_entered = true;
			break;
		}
		left_bytes -= size_bytes;
		err = scan_segment(image, offset, size_bytes, spans, nr);
	}
	return err;
}
