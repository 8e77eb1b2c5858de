/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/pictures/history_plot.h"

#include "common/diag.h"
#include "plot/gnuplot/plot_draw.h"
#include "plot/labels/time_axis.h"

#include <errno.h>

static uint64_t start_of(const struct leak_set *set)
{
	const struct leaks_periods *periods = &set->histories.periods;

	/* In a hostile file, the periods may begin before the recording. */
	if (set->summary.has_start && set->summary.start_ns < periods->begin_ns)
		return set->summary.start_ns;
	return periods->begin_ns;
}

static uint64_t end_of(const struct leak_set *set)
{
	const struct leaks_periods *periods = &set->histories.periods;
	uint64_t end_ns = periods->begin_ns + periods->nr * periods->length_ns;

	/* The last period may end after the recording. */
	if (set->summary.has_end && set->summary.end_ns > periods->begin_ns &&
	    set->summary.end_ns < end_ns)
		return set->summary.end_ns;
	return end_ns;
}

struct time_axis history_plot_time_axis(const struct leak_set *set)
{
	return time_axis_make(start_of(set), end_of(set));
}

double history_plot_period_end(const struct leak_set *set, const struct time_axis *axis, size_t i)
{
	const struct leaks_periods *periods = &set->histories.periods;
	uint64_t end_ns = periods->begin_ns + (i + 1) * periods->length_ns;

	return time_axis_value(axis, end_ns < end_of(set) ? end_ns : end_of(set));
}

static const struct {
	const char *name;
	int (*write)(struct plot_script *script, const void *context);
} kinds[] = {
	[HISTORY_HELD] = {"held", held_plot_write},
	[HISTORY_GROWTH] = {"growth", growth_plot_write},
	[HISTORY_LIFETIMES] = {"lifetimes", lifetime_plot_write},
};

const char *history_plot_name(enum history_plot_kind kind)
{
	return kinds[kind].name;
}

static int draw(const struct history_plot_options *options, const struct plot_output *output,
		const struct leak_set *set)
{
	const struct plot_drawing drawing = {
		.name = kinds[options->kind].name,
		.save = options->save,
		.output = output,
		.write = kinds[options->kind].write,
		.context = set,
	};

	return plot_draw(&drawing);
}

int history_plot_run(const struct history_plot_options *options, const struct plot_output *output)
{
	struct leak_set set;

	int err = leak_set_init(&set, options->input, NULL);
	if (err)
		return err;
	if (set.histories.has_all) {
		err = draw(options, output, &set);
	} else if (set.summary.observed > 0) {
		diag_error(
			"the recording is in windows: what was held over time, and lifetimes, are "
			"not known; leakparse --summary estimates what is held, and lifetimes, for each cause");
		err = -ENODATA;
	} else {
		diag_error(
			"the leaks file has no histories: nothing was allocated while recording, or it "
			"is of an older leakparse, or of one with --order time or options that select "
			"blocks (--size, --stack, ...); run leakparse again without these");
		err = -ENODATA;
	}
	leak_set_deinit(&set);
	return err;
}
