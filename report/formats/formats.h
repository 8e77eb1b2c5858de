/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The formats of this folder; report_formats.h finds one by its name. */
#ifndef LEAKTOOLS_REPORT_FORMATS_H
#define LEAKTOOLS_REPORT_FORMATS_H

#include "report/formats/report_format.h"

extern const struct report_format tree_format;
extern const struct report_format json_format;
extern const struct report_format csv_format;
extern const struct report_format folded_format;
extern const struct report_format gprof2dot_format;
extern const struct report_format callgrind_format;
extern const struct report_format heaptrack_format;
extern const struct report_format massif_format;
extern const struct report_format pprof_format;

#endif
