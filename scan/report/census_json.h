/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a heap holds, as JSON (docs/json-format.md). */
#ifndef LEAKTOOLS_SCAN_CENSUS_JSON_H
#define LEAKTOOLS_SCAN_CENSUS_JSON_H

#include "scan/report/holder_text.h"

/* Writes one object, with a line for each row and lost block. Returns 0 or -ENOMEM. */
int census_json_write(FILE *out, struct scan_report *report);

#endif
