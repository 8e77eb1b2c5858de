/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The axes of a plot of leaks: their meaning, scale and range, and the position of a leak. */
#ifndef LEAKTOOLS_PLOT_LEAK_AXES_H
#define LEAKTOOLS_PLOT_LEAK_AXES_H

#include "common/quantity.h"
#include "plot/gnuplot/plot_output.h"
#include "plot/labels/time_axis.h"
#include "plot/leaks/leak_set.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum leak_size_scale {
	LEAK_SIZE_AUTO, /* logarithmic if sizes span more than two decades */
	LEAK_SIZE_LINEAR,
	LEAK_SIZE_LOG,
};

/* Values for gnuplot are in size_unit, and in the unit of time or as event numbers. */
struct leak_axes {
	bool by_event;
	bool counts; /* the upright axis shows leak_point.nth instead of sizes */
	bool log;
	bool has_zero_bytes;		/* a block of 0 bytes on a logarithmic axis */
	struct quantity_unit size_unit; /* of a linear axis; a logarithmic one is in bytes */
	double size_min, size_max;
	struct time_axis time; /* if !by_event */
	double x_max;
};

/* Chooses the axes that show all of @set. */
struct leak_axes leak_axes_choose(const struct leak_set *set, enum leak_size_scale scale,
				  bool by_event);

double leak_axes_x(const struct leak_axes *axes, const struct leak_point *point);

/* The value on the upright axis: the size or, if counts, the number. */
uint64_t leak_axes_amount(const struct leak_axes *axes, const struct leak_point *point);
double leak_axes_y(const struct leak_axes *axes, uint64_t amount);

/* The relative position of an amount: 0 at the lower end of the axis, 1 at the upper. */
double leak_axes_y_position(const struct leak_axes *axes, uint64_t amount);

/* The inverse: the value at @position, for gnuplot. */
double leak_axes_y_at(const struct leak_axes *axes, double position);

/* The upper end of the time axis, or of event numbers, for gnuplot. */
double leak_axes_x_end(const struct leak_axes *axes);

/* Writes gnuplot commands for the ranges, scales and labels of both axes. */
void leak_axes_write(const struct leak_axes *axes, const struct leaks_summary *summary,
		     const struct plot_output *output, FILE *program);

#endif
