/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The `leaks` text, version 1 (docs/leaks-format.md): what leakparse writes, and leakplot and awk
 * read. leakfollow's lines have the same columns behind a refcount.
 */
#ifndef LEAKTOOLS_PARSER_LEAKS_WRITER_H
#define LEAKTOOLS_PARSER_LEAKS_WRITER_H

#include "common/size_range.h"
#include "parser/analysis.h"

#include <stdio.h>

struct leaks_options {
	bool list_unknown; /* list frees of unknown blocks too; they are always counted */
	const struct size_range *size; /* of leaks and unexpected operations; NULL: all sizes */
};

/* What of a finished analysis is of the wanted size; unknown sizes are none. */
struct leaks_totals {
	uint64_t held_blocks, held_bytes;
	uint64_t anomalies[ANOMALY_NR_KINDS];
};

/* Returns 0 or -ENOMEM. */
int leaks_count(const struct analysis *analysis, const struct leaks_options *options,
		struct leaks_totals *ret);

/* Prints "0.100000000..0.250000000", in seconds since the recording's first event. */
void leaks_write_window(FILE *out, const struct analysis *analysis,
			const struct loss_window *window);

/* Prints "3072" or "1000..2000". */
void leaks_write_size(FILE *out, const struct size_range *size);

/*
 * Writes a finished analysis, whose @totals leaks_count() told. Returns 0 or the error of @out (not
 * reported: only the caller knows what @out is).
 */
int leaks_write(FILE *out, const struct analysis *analysis, const struct leaks_options *options,
		const struct leaks_totals *totals);

/* "SIZE ADDRESS TIME EVENT PID TID COMM FUNCTION STACK" and a newline. */
void leaks_write_columns(FILE *out, const struct analysis *analysis, const struct heap_block *block,
			 const struct heap_op *op);

/* The frames of a stack, a line each behind a tab. */
void leaks_write_stack(FILE *out, const struct analysis *analysis, uint32_t stack_id);

#endif
