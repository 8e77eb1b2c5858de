/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All output formats of leakparse --format, by name. */
#ifndef LEAKTOOLS_REPORT_REPORT_FORMATS_H
#define LEAKTOOLS_REPORT_REPORT_FORMATS_H

#include "report/formats/report_format.h"

/* X(NAME) for each NAME_format, in the order of help texts and completions. */
#define REPORT_FORMATS(X)                                                                          \
	X(tree)                                                                                    \
	X(html) X(json) X(csv) X(folded) X(pprof) X(callgrind) X(massif) X(heaptrack) X(gprof2dot)

/* Returns NULL if there is no such format. */
const struct report_format *report_format_find(const char *name);

/* Writes and flushes the whole report. Returns what format->write() does. */
int report_write(FILE *out, const struct report_format *format, const struct report_input *input);

#endif
