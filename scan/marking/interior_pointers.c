/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/marking/interior_pointers.h"

#define WORD	     sizeof(uint64_t)
#define STRING_BYTES (3 * WORD)
/* A block may be that much larger than what was asked for: malloc splits off no rest of 16 bytes.
 */
#define ROUNDING  31
#define ALIGNMENT 32 /* malloc aligns to less */

/* The string of an old ABI: length, capacity, reference count, then the text. */
static bool is_string(const struct heap_block_view *block)
{
	uint64_t length = load_word(block->bytes), capacity = load_word(block->bytes + WORD);

	return block->size_bytes > STRING_BYTES && length <= capacity &&
	       capacity < block->size_bytes - STRING_BYTES &&
	       block->size_bytes - STRING_BYTES - 1 - capacity <= ROUNDING;
}

/* The block's size in its first word, as sqlite has it. */
static bool is_length(const struct heap_block_view *block)
{
	uint64_t length = load_word(block->bytes), most = block->size_bytes - WORD;

	return length <= most && most - length <= ROUNDING && length > 0;
}

/* new[] of a type with a destructor: the number of elements, then the elements. */
static bool is_array(const struct heap_block_view *block)
{
	uint64_t nr = load_word(block->bytes), most = block->size_bytes - WORD;

	return nr > 0 && nr <= most && most - most / nr * nr <= ROUNDING;
}

/* A table of virtual functions: in memory of a file that the program cannot write. */
static bool is_vtable(const struct snapshot *snapshot, uint64_t address)
{
	const struct scan_region *region = snapshot_region(snapshot, address);

	return region && region->has_file && !region->is_writable && address % WORD == 0;
}

/* A base class's part of an object: its table says how far it is from the object's start. */
static bool is_base(const struct snapshot *snapshot, const struct heap_block_view *block,
		    uint64_t offset)
{
	uint64_t table, to_top;

	if (offset % WORD || block->size_bytes < offset + WORD ||
	    !is_vtable(snapshot, load_word(block->bytes)))
		return false;
	table = load_word(block->bytes + offset);
	return is_vtable(snapshot, table) && snapshot_word(snapshot, table - 2 * WORD, &to_top) &&
	       to_top == -offset;
}

/*
 * A part with an alignment of its own. To free the block, its start is noted before the part, or in
 * struct dlfo_mappings_segment (elf/dl-find_object.c of glibc 2.35 to 2.42) as its second word.
 */
static bool is_aligned(const struct heap_block_view *block, uint64_t offset)
{
	if ((block->address + offset) % ALIGNMENT)
		return false;
	return load_word(block->bytes + offset - WORD) == block->address ||
	       (offset + 2 * WORD <= block->size_bytes &&
		load_word(block->bytes + offset + WORD) == block->address);
}

bool interior_pointer_is_sure(const struct snapshot *snapshot, const struct heap_block_view *block,
			      uint64_t offset)
{
	if (block->size_bytes < 2 * WORD)
		return false;
	if (offset == STRING_BYTES && is_string(block))
		return true;
	if (offset == WORD && (is_length(block) || is_array(block)))
		return true;
	return is_aligned(block, offset) || is_base(snapshot, block, offset);
}
