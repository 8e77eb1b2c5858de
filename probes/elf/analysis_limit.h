/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A limit for looking into one file, which may be made to take for ever, or all memory. What works
 * through a file asks on its way whether the limit is reached, and gives up then with what it has;
 * whoever set the limit throws that away. Each thread has its own.
 */
#ifndef LEAKTOOLS_PROBES_ANALYSIS_LIMIT_H
#define LEAKTOOLS_PROBES_ANALYSIS_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* The largest debug files of Debian 12 take a tenth of it. */
#define ANALYSIS_LIMIT_NS 2000000000ULL

/* From here on. @cpu_ns: of this thread's time; waiting for a disk may take some times as long. */
void analysis_limit_begin(uint64_t cpu_ns);

/* True if the limit was reached; no limit is left. */
bool analysis_limit_end(void);

/* True if the limit is reached, after @steps more, of about a nanosecond each. It stays so. */
bool analysis_limit_is_reached(uint64_t steps);

/* The file has a table that is too large, or is not as linkers make it. */
void analysis_limit_reach(void);

#endif
