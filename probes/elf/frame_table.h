/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pieces of code that .eh_frame describes: where each begins and ends, and where exceptions
 * resume in it. A piece has one frame description entry (FDE). It is a function, or the cold part
 * of one. The file is hostile.
 */
#ifndef LEAKTOOLS_PROBES_FRAME_TABLE_H
#define LEAKTOOLS_PROBES_FRAME_TABLE_H

#include "probes/elf/elf_image.h"

#define FRAME_MAX_PADS 256 /* landing pads of one piece */

/* Addresses are as linked. */
struct frame_entry {
	uint64_t first, end; /* of the code */
	uint64_t pads;	     /* of the language-specific data area (LSDA); 0: none */
	uint8_t pads_encoding;
};

struct frame_table {
	struct frame_entry *entries; /* sorted by first */
	size_t nr;
};

/*
 * Reads the table. Returns 0, also if the file has no such information; -ENOTSUP if it has some
 * that cannot be parsed; -E2BIG or -ENOMEM. Release with frame_table_deinit().
 */
int frame_table_init(struct frame_table *ret, const struct elf_image *image);
void frame_table_deinit(struct frame_table *table);

/* The entry whose code holds @address, or NULL. */
const struct frame_entry *frame_table_find(const struct frame_table *table, uint64_t address);

/* True if an exception may resume in the code from @first to before @end. */
bool frame_table_has_pads(const struct frame_table *table, uint64_t first, uint64_t end);

/*
 * Finds the landing pads of the entry: the addresses at which exceptions resume, with duplicates.
 * Returns how many, or -ENOTSUP if they cannot be parsed or are too many.
 */
int frame_entry_read_pads(const struct elf_image *image, const struct frame_entry *entry,
			  uint64_t ret[FRAME_MAX_PADS]);

#endif
