/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/labels/time_axis.h"

#include "common/scope.h"

static const struct time_unit {
	const char *name;
	double seconds;
	double longest; /* the longest axis in this unit, in seconds; no limit for the last unit */
} units[] = {
	{"seconds", 1, 600},
	{"minutes", 60, 3 * 3600},
	{"hours", 3600, 3 * 86400},
	{"days", 86400, 0},
};

struct time_axis time_axis_make(uint64_t start_ns, uint64_t end_ns)
{
	double length = (double)(end_ns - start_ns) / 1e9;
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(units) && length > units[i].longest)
		i++;
	return (struct time_axis){start_ns, units[i].name, units[i].seconds * 1e9};
}

double time_axis_value(const struct time_axis *axis, uint64_t time_ns)
{
	/* Subtract first: a double does not hold nanoseconds since boot exactly. */
	if (time_ns < axis->start_ns)
		return -((double)(axis->start_ns - time_ns) / axis->unit_ns);
	return (double)(time_ns - axis->start_ns) / axis->unit_ns;
}
