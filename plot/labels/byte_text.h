/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes and counts for people: "3 KiB", "1.5 GiB"; units are powers of 1024. */
#ifndef LEAKTOOLS_PLOT_BYTE_TEXT_H
#define LEAKTOOLS_PLOT_BYTE_TEXT_H

#include <stdint.h>

#define BYTE_TEXT_SIZE 28

struct byte_text {
	char text[BYTE_TEXT_SIZE];
};

/* A unit of size: its name, and how many bytes it is. */
struct byte_unit {
	const char *name;
	double bytes;
};

/* The largest unit of which @size_bytes holds at least one. */
struct byte_unit byte_unit_for(uint64_t size_bytes);

/* @size_bytes in that unit, with one decimal where it does not come out even. */
struct byte_text byte_text_format(uint64_t size_bytes);

/* @count as one reads it: from 10,000 on with a comma for each three digits. */
struct byte_text count_text_format(uint64_t count);

#endif
