/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A time axis from 0, in a unit that suits its length. */
#ifndef LEAKTOOLS_PLOT_TIME_AXIS_H
#define LEAKTOOLS_PLOT_TIME_AXIS_H

#include <stdint.h>

struct time_axis {
	uint64_t start_ns;
	const char *unit; /* "seconds", "minutes", "hours", "days" */
	double unit_ns;
};

/* An axis from @start_ns to @end_ns. */
struct time_axis time_axis_make(uint64_t start_ns, uint64_t end_ns);

/* The position of @time_ns on @axis, in its unit; negative before the start. */
double time_axis_value(const struct time_axis *axis, uint64_t time_ns);

#endif
