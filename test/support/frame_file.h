/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes small ELF files that have nothing but a segment of code and its call frame information: one
 * entry, for addresses that are offsets in the file. Some entries are hostile.
 */
#ifndef LEAKTOOLS_TEST_SUPPORT_FRAME_FILE_H
#define LEAKTOOLS_TEST_SUPPORT_FRAME_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_FILE_MAX	  1024
#define FRAME_FILE_INSIDE 0x110 /* an address of the code */
#define FRAME_NR_ENTRIES  13

struct frame_entry {
	const char *name;
	bool is_arm64, is_signal_frame;
	uint8_t nr;
	uint8_t instructions[24];
};

extern const struct frame_entry frame_entries[FRAME_NR_ENTRIES];

/* Returns the file's size. */
size_t frame_file_make(const struct frame_entry *entry, uint8_t ret[static FRAME_FILE_MAX]);

#endif
