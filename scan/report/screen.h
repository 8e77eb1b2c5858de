/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first screen: what is in the heap, what nothing points to. */
#ifndef LEAKTOOLS_SCAN_SCREEN_H
#define LEAKTOOLS_SCAN_SCREEN_H

#include "scan/report/holder_text.h"

/* Of a table, unless all rows are asked for. */
#define SCREEN_ROWS 10

/* Writes a line that names the process. Returns false, and says so, if its heap is not known. */
bool screen_begin(FILE *out, const struct scan *scan);

/* Says why no block may be called lost; or where a pointer may be that was not seen. */
void screen_write_limits(FILE *out, const struct scan *scan);

/* Writes one screen, or with @all every row of it. Returns 0 or -ENOMEM. */
int screen_write(FILE *out, struct scan_report *report, bool all);

#endif
