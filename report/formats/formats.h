/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The formats' functions, for report.c's table only. Each is report_format.write(). */
#ifndef LEAKTOOLS_REPORT_FORMATS_H
#define LEAKTOOLS_REPORT_FORMATS_H

#include "report/formats/report.h"

int tree_format_write(FILE *out, const struct report_input *input);
int folded_format_write(FILE *out, const struct report_input *input);
int html_format_write(FILE *out, const struct report_input *input);
int json_format_write(FILE *out, const struct report_input *input);
int csv_format_write(FILE *out, const struct report_input *input);
int callgrind_format_write(FILE *out, const struct report_input *input);
int heaptrack_format_write(FILE *out, const struct report_input *input);
int massif_format_write(FILE *out, const struct report_input *input);
int pprof_format_write(FILE *out, const struct report_input *input);
int gprof2dot_format_write(FILE *out, const struct report_input *input);

#endif
