/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Binary search. */
#ifndef LEAKTOOLS_COMMON_PARTITION_POINT_H
#define LEAKTOOLS_COMMON_PARTITION_POINT_H

#include <stddef.h>

/*
 * For how many of the first @nr elements of a sorted array @holds is true: an expression of @i, an
 * element's index. Where it holds for one, it has to hold for all before that.
 */
#define partition_point(nr, i, holds)                                                              \
	({                                                                                         \
		size_t partition_low = 0, partition_high = (nr);                                   \
		while (partition_low < partition_high) {                                           \
			size_t i = partition_low + (partition_high - partition_low) / 2;           \
			if (holds)                                                                 \
				partition_low = (i) + 1;                                           \
			else                                                                       \
				partition_high = (i);                                              \
		}                                                                                  \
		partition_low;                                                                     \
	})

#endif
