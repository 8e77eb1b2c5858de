/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions of one segment of x86-64 code, read from its file as they are asked for. */
#ifndef LEAKTOOLS_PROBES_CODE_SEGMENT_H
#define LEAKTOOLS_PROBES_CODE_SEGMENT_H

#include "probes/x86/code_flow.h"
#include "probes/elf/elf_image.h"

#define CODE_SEGMENT_BLOCK_BYTES 4096

struct code_segment {
	const struct elf_image *image;
	uint64_t first, end; /* in the file */
	uint64_t address;    /* of the first byte, as linked */
	int error;	     /* of reading the file */

	uint64_t block_offset;
	size_t block_size;
	uint8_t block[CODE_SEGMENT_BLOCK_BYTES];
};

/* The segment of @image, which must stay, that holds @offset. Returns false if there is none. */
bool code_segment_init(struct code_segment *ret, const struct elf_image *image, uint64_t offset);

/* Decodes at @offset of the file. Returns false if no instruction of the segment is there. */
bool code_segment_decode(struct code_segment *segment, uint64_t offset, struct instruction *ret);

static inline bool code_segment_holds(const struct code_segment *segment, uint64_t offset)
{
	return offset >= segment->first && offset < segment->end;
}

static inline uint64_t code_segment_address(const struct code_segment *segment, uint64_t offset)
{
	return segment->address + (offset - segment->first);
}

/* May be outside of the segment. */
static inline uint64_t code_segment_offset(const struct code_segment *segment, uint64_t address)
{
	return segment->first + (address - segment->address);
}

#endif
