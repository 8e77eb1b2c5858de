/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is in use, by size and type. */
#ifndef LEAKTOOLS_SCAN_CENSUS_H
#define LEAKTOOLS_SCAN_CENSUS_H

#include "scan/report/holder_text.h"

/* Blocks of one size and type, and how many of them nothing holds. */
struct census_row {
	uint64_t size_bytes;
	const char *type; /* untrusted; NULL: not known */
	uint64_t nr;
	uint64_t nr_lost; /* lost, in a cycle, or lost through another block */
};

struct census {
	struct census_row *rows; /* the most bytes first */
	size_t nr;
};

/* Returns 0 or -ENOMEM. Release with census_deinit() in either case. */
int census_init(struct census *ret, struct scan_report *report);
void census_deinit(struct census *census);

#endif
