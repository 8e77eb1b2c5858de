/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sizes as people give them: "3072", "3k", "1.5M", "64KiB", or a range with both ends included,
 * "1000..2000", "4..8k". Units are powers of 1024, in letters of either case.
 */
#ifndef LEAKTOOLS_COMMON_SIZE_RANGE_H
#define LEAKTOOLS_COMMON_SIZE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct size_range {
	uint64_t min_bytes;
	uint64_t max_bytes;
};

/* One size, in bytes. Returns 0, or -EINVAL if @text is none (nothing is reported). */
int size_parse(const char *text, uint64_t *ret);

/*
 * The lower end, where it has no unit, has that of the upper one, unless it would be above that
 * then: "4..8k" begins at 4 KiB, "100..4k" at 100 bytes. Returns 0, or -EINVAL if @text is no size
 * or range (nothing is reported).
 */
int size_range_parse(const char *text, struct size_range *ret);

static inline bool size_range_has(const struct size_range *range, uint64_t size_bytes)
{
	return size_bytes >= range->min_bytes && size_bytes <= range->max_bytes;
}

#endif
