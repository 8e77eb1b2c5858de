/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses sizes as people write them: "3072", "3k", "1.5M", "64KiB", or a range that includes
 * both ends, "1000..2000", "4..8k". Units are powers of 1024, in letters of either case.
 */
#ifndef LEAKTOOLS_COMMON_SIZE_RANGE_H
#define LEAKTOOLS_COMMON_SIZE_RANGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct size_range {
	uint64_t min_bytes;
	uint64_t max_bytes;
};

/* Parses one size, in bytes. Returns 0, or -EINVAL if @text is not a size (not reported). */
int size_parse(const char *text, uint64_t *ret);

/*
 * Parses a size or a range. A lower end without a unit has the unit of the upper end, unless that
 * would make it larger than the upper end: "4..8k" begins at 4 KiB, "100..4k" at 100 bytes. Returns
 * 0, or -EINVAL if @text is neither a size nor a range (not reported).
 */
int size_range_parse(const char *text, struct size_range *ret);

/* "3072", "1000..2000" */
void size_range_write(FILE *out, const struct size_range *range);

static inline bool size_range_has(const struct size_range *range, uint64_t size_bytes)
{
	return size_bytes >= range->min_bytes && size_bytes <= range->max_bytes;
}

#endif
