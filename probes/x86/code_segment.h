/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instructions of one segment of x86-64 code, read from the file on demand. */
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

/*
 * Finds the segment of @image, which must stay, that holds @offset. Returns false if there is none.
 */
bool code_segment_init(struct code_segment *ret, const struct elf_image *image, uint64_t offset);

/*
 * Decodes at @offset of the file. Returns false if there is no valid instruction of the segment, or
 * with @segment->error set.
 */
bool code_segment_decode(struct code_segment *segment, uint64_t offset, struct instruction *ret);

static inline bool code_segment_holds(const struct code_segment *segment, uint64_t offset)
{
	return offset >= segment->first && offset < segment->end;
}

static inline uint64_t code_segment_address(const struct code_segment *segment, uint64_t offset)
{
	return segment->address + (offset - segment->first);
}

/* The result may be outside the segment. */
static inline uint64_t code_segment_offset(const struct code_segment *segment, uint64_t address)
{
	return segment->first + (address - segment->address);
}

#endif
