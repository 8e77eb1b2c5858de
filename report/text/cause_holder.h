/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What leads to blocks that are still reachable, by a scan: to each, and to the largest part of a
 * stack's or a cause's. In `leaks`, a line gives each a number.
 */
#ifndef LEAKTOOLS_REPORT_CAUSE_HOLDER_H
#define LEAKTOOLS_REPORT_CAUSE_HOLDER_H

#include "parser/verdicts/leak_report.h"

#include <stdio.h>

struct cause_holder {
	uint32_t holder; /* reach.h; HOLDER_NOT_KNOWN: none that has a name has a quarter of them */
	const char *name; /* untrusted; NULL: the same */
	bool has_others;  /* they have more than a tenth of the bytes */
};

/* Of the listed blocks of the @nr @sites. Without memory for the count, none is known. */
struct cause_holder cause_holder_find(const struct leak_report *report,
				      const struct leak_site *sites, size_t nr);

/* The same for people, to whom it matters only if most of the bytes are still reachable. */
struct cause_holder cause_holder_of_most(const struct leak_report *report,
					 const struct leak_site *sites, size_t nr);

/* Writes the lines "holder NR NAME..." of `leaks`. */
void cause_holder_define(FILE *out, const struct leak_report *report);

/* Writes " holder=NR" if @holder has a name. */
void cause_holder_write_key(FILE *out, uint32_t holder);

#endif
