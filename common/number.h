/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers and times as people write them. Sizes are in size_range.h. Nothing is reported. */
#ifndef LEAKTOOLS_COMMON_NUMBER_H
#define LEAKTOOLS_COMMON_NUMBER_H

#include <stdint.h>

/* A whole number: decimal digits and nothing else. Returns 0, or -EINVAL (also if it is too large).
 */
int number_parse(const char *text, uint64_t *ret);

/* A number that may have a fraction: "1.5". Returns 0, or -EINVAL. */
int number_parse_fraction(const char *text, double *ret);

/* "1.5" (seconds), "10ms", "5m", "2h", "1d", in ns; at most 1e9 s. Returns 0, or -EINVAL. */
int number_parse_time(const char *text, uint64_t *ret_ns);

#endif
