/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks/leak_axes.h"

#include "common/quantity.h"

#include <inttypes.h>
#include <math.h>

/* The value of a block of 0 bytes on a logarithmic axis. */
#define LOG_ZERO_BYTES 0.5
/* Sizes with a larger ratio get a logarithmic axis. */
#define LOG_SPAN 100
/* Room above the largest size on a linear axis. */
/* A linear axis has at least so many units. */
#define LINEAR_UNITS 2
#define LINEAR_ROOM  1.15
#define TIME_ROOM    1.02

/* The range of sizes. */
struct size_span {
	uint64_t min_bytes; /* the smallest above 0; 0 if there is none */
	uint64_t max_bytes;
	bool has_zero_bytes;
};

static struct size_span find_size_span(const struct leak_axes *axes, const struct leak_set *set)
{
	struct size_span span = {0};

	for (size_t i = 0; i < set->nr_points; i++) {
		uint64_t size = leak_axes_amount(axes, &set->points[i]);

		span.has_zero_bytes |= size == 0;
		if (size && (!span.min_bytes || size < span.min_bytes))
			span.min_bytes = size;
		if (size > span.max_bytes)
			span.max_bytes = size;
	}
	return span;
}

static void choose_size_axis(struct leak_axes *axes, const struct leak_set *set,
			     enum leak_size_scale scale)
{
	struct size_span span = find_size_span(axes, set);

	if (axes->counts) {
		axes->size_unit = (struct quantity_unit){"blocks", 1};
		axes->size_max = (double)span.max_bytes * LINEAR_ROOM;
		return;
	}
	/* 0 has no logarithm. */
	axes->log = span.max_bytes &&
		    (scale == LEAK_SIZE_LOG ||
		     (scale == LEAK_SIZE_AUTO && span.max_bytes / span.min_bytes > LOG_SPAN));
	if (axes->log) {
		axes->has_zero_bytes = span.has_zero_bytes;
		axes->size_unit = quantity_unit_for(1);
		axes->size_min =
			span.has_zero_bytes ? LOG_ZERO_BYTES / 2 : (double)span.min_bytes / 2;
		axes->size_max = (double)span.max_bytes * 2;
		return;
	}
	/* Up to 1 KiB, numbers of bytes are easier to read than 0.2 KiB. */
	axes->size_unit = quantity_unit_for(span.max_bytes / LINEAR_UNITS);
	axes->size_max =
		span.max_bytes ? (double)span.max_bytes / axes->size_unit.bytes * LINEAR_ROOM : 1;
}

static void choose_time_axis(struct leak_axes *axes, const struct leak_set *set)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < set->nr_points; i++) {
		uint64_t time = set->points[i].time_ns;

		if (time < first)
			first = time;
		if (time > last)
			last = time;
	}
	/* A hostile file may have leaks outside the recording. */
	if (set->summary.has_start && set->summary.start_ns < first)
		first = set->summary.start_ns;
	if (set->summary.has_end && set->summary.end_ns > last)
		last = set->summary.end_ns;
	if (first > last)
		first = last;
	axes->time = time_axis_make(first, last);
	axes->x_max = time_axis_value(&axes->time, last);
}

static void choose_event_axis(struct leak_axes *axes, const struct leak_set *set)
{
	uint64_t last = set->summary.has_events ? set->summary.events : 0;

	for (size_t i = 0; i < set->nr_points; i++)
		if (set->points[i].event > last)
			last = set->points[i].event;
	axes->x_max = (double)last;
}

struct leak_axes leak_axes_choose(const struct leak_set *set, enum leak_size_scale scale,
				  bool by_event)
{
	struct leak_axes axes = {.by_event = by_event, .counts = set->has_no_bytes};

	choose_size_axis(&axes, set, scale);
	if (by_event)
		choose_event_axis(&axes, set);
	else
		choose_time_axis(&axes, set);
	return axes;
}

double leak_axes_x(const struct leak_axes *axes, const struct leak_point *point)
{
	return axes->by_event ? (double)point->event : time_axis_value(&axes->time, point->time_ns);
}

uint64_t leak_axes_amount(const struct leak_axes *axes, const struct leak_point *point)
{
	return axes->counts ? point->nth : point->size_bytes;
}

double leak_axes_y(const struct leak_axes *axes, uint64_t amount)
{
	if (axes->log && amount == 0)
		return LOG_ZERO_BYTES;
	return (double)amount / axes->size_unit.bytes;
}

double leak_axes_y_position(const struct leak_axes *axes, uint64_t amount)
{
	double y = leak_axes_y(axes, amount);

	if (axes->log)
		return log(y / axes->size_min) / log(axes->size_max / axes->size_min);
	return (y - axes->size_min) / (axes->size_max - axes->size_min);
}

double leak_axes_y_at(const struct leak_axes *axes, double position)
{
	if (axes->log)
		return axes->size_min * pow(axes->size_max / axes->size_min, position);
	return axes->size_min + position * (axes->size_max - axes->size_min);
}

double leak_axes_x_end(const struct leak_axes *axes)
{
	return axes->x_max > 0 ? axes->x_max * TIME_ROOM : 1;
}

/* Tics at powers of two, about ten of them labelled. */
static void write_log_tics(const struct leak_axes *axes, FILE *program)
{
	int step = 1;

	double span = axes->size_max / axes->size_min;

	while (span > 1024) {
		span /= 1024;
		step++;
	}
	fputs("set logscale yy2 2\nset ytics nomirror (", program);
	if (axes->has_zero_bytes)
		fprintf(program, "'0 bytes' %g, ", LOG_ZERO_BYTES);
	for (int power = 0; power < 64; power++) {
		uint64_t size_bytes = UINT64_C(1) << power;
		bool is_minor = power % step != 0;

		fprintf(program, "%s'%s' %.17g %d", power ? ", " : "",
			is_minor ? "" : quantity_size(size_bytes).text, (double)size_bytes,
			is_minor);
	}
	fputs(")\n", program);
}

void leak_axes_write(const struct leak_axes *axes, const struct leaks_summary *summary,
		     const struct plot_output *output, FILE *program)
{
	/* y2, on the right, is the same axis with other labels ("set link" takes no log). */
	fprintf(program, "set xrange [0:%.17g]\nset xtics nomirror\n", leak_axes_x_end(axes));
	fprintf(program, "set yrange [%.17g:%.17g]\nset y2range [%.17g:%.17g]\n", axes->size_min,
		axes->size_max, axes->size_min, axes->size_max);
	if (axes->by_event)
		fputs("set xlabel 'event number, in time order'\nset format x '%.0f'\n", program);
	else
		fprintf(program, "set xlabel 'time since %s (%s)'\n",
			summary->has_start ? "the recording began" : "the first block",
			axes->time.unit);
	if (axes->log) {
		plot_output_write_ylabel(output, program, "size of the held block");
		write_log_tics(axes, program);
	} else if (axes->counts) {
		plot_output_write_ylabel(output, program, "held blocks of the stack so far");
		fputs("set ytics nomirror\n", program);
	} else {
		plot_output_write_ylabel(output, program, "size of the held block (%s)",
					 axes->size_unit.name);
		fputs("set ytics nomirror\n", program);
	}
}
