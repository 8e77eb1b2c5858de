/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes and counts as text: "3 KiB", "1.5 GiB". Units are powers of 1024. */
#ifndef LEAKTOOLS_PLOT_BYTE_TEXT_H
#define LEAKTOOLS_PLOT_BYTE_TEXT_H

#include <stdint.h>

#define BYTE_TEXT_SIZE 28

struct byte_text {
	char text[BYTE_TEXT_SIZE];
};

/* A unit: its name and its size. */
struct byte_unit {
	const char *name;
	double bytes;
};

/* The largest unit that is not larger than @size_bytes. */
struct byte_unit byte_unit_for(uint64_t size_bytes);

/* @size_bytes in that unit, with one decimal unless it is a whole number. */
struct byte_text byte_text_format(uint64_t size_bytes);

/* @count, from 10,000 with a comma between each three digits. */
struct byte_text count_text_format(uint64_t count);

#endif
