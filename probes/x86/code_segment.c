/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/x86/code_segment.h"

#include "probes/x86/placement.h"

bool code_segment_init(struct code_segment *ret, const struct elf_image *image, uint64_t offset)
{
	uint64_t first, size_bytes;

	*ret = (struct code_segment){.image = image};
	for (size_t i = 0; elf_image_code_segment(image, i, &first, &size_bytes); i++) {
		if (offset < first || offset - first >= size_bytes)
			continue;
		ret->first = first;
		ret->end = first + size_bytes;
		return elf_image_address(image, first, &ret->address);
	}
	return false;
}

/* Reads the block that holds an instruction at @offset, or what the segment has of it. */
static bool read_block(struct code_segment *segment, uint64_t offset)
{
	uint64_t end = segment->block_offset + segment->block_size;
	uint64_t size = segment->end - offset;

	if (offset >= segment->block_offset && offset < end &&
	    (end - offset >= PLACEMENT_MAX_INSTRUCTION_BYTES || end == segment->end))
		return true;
	if (size > sizeof(segment->block))
		size = sizeof(segment->block);
	segment->block_size = 0;
	segment->error = elf_image_read(segment->image, offset, segment->block, size);
	if (segment->error)
		return false;
	segment->block_offset = offset;
	segment->block_size = size;
	return true;
}

bool code_segment_decode(struct code_segment *segment, uint64_t offset, struct instruction *ret)
{
	return code_segment_holds(segment, offset) && read_block(segment, offset) &&
	       instruction_decode(ret, segment->block + (offset - segment->block_offset),
				  segment->block_offset + segment->block_size - offset);
}
