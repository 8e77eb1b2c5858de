/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histogram of the lifetimes of freed blocks and, in front of it, of the ages of held ones, with
 * two bars per doubling. Both axes are logarithmic: lifetimes range from microseconds to days, and
 * counts from one, which may be the leak, to millions.
 */
#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "plot/leaks/leak_title.h"
#include "plot/pictures/history_plot.h"

#include <errno.h>
#include <inttypes.h>

/* Two per doubling: bars begin at 2^n and 1.5 * 2^n nanoseconds. */
#define BARS 128

struct lifetime_plot {
	const struct leak_set *set;
	uint64_t freed[BARS], held[BARS];
	uint64_t nr_freed, nr_held, oldest_ns;
};

static unsigned int bar_of(uint64_t ns)
{
	unsigned int octave;

	if (ns < 2)
		return 0;
	octave = 63 - (unsigned int)__builtin_clzll(ns);
	return 2 * octave + (unsigned int)(ns >> (octave - 1) & 1);
}

/* The beginning of bar @i, in seconds. */
static double bar_begin_s(unsigned int i)
{
	return (double)(UINT64_C(1) << (i / 2)) * (i % 2 ? 1.5 : 1) / 1e9;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return __builtin_add_overflow(a, b, &a) ? UINT64_MAX : a;
}

static void count(struct lifetime_plot *plot)
{
	const struct leak_set *set = plot->set;
	const struct stack_history *all = &set->histories.all;

	for (size_t i = 0; i < all->nr_lifetimes; i++) {
		uint64_t *bar = &plot->freed[bar_of(all->lifetimes[i].ns)];

		*bar = add(*bar, all->lifetimes[i].nr_blocks);
		plot->nr_freed = add(plot->nr_freed, all->lifetimes[i].nr_blocks);
	}
	for (size_t i = 0; i < set->nr_points; i++) {
		uint64_t age_ns = set->points[i].age_ns;

		plot->held[bar_of(age_ns)]++;
		plot->nr_held++;
		if (age_ns > plot->oldest_ns)
			plot->oldest_ns = age_ns;
	}
}

/* The end of the bar in which the median is. */
static double median_s(const struct lifetime_plot *plot)
{
	uint64_t seen = 0;
	unsigned int i = 0;

	for (; i + 1 < BARS; i++) {
		seen = add(seen, plot->freed[i]);
		if (seen > plot->nr_freed / 2)
			break;
	}
	return i + 1 < BARS ? bar_begin_s(i + 1) : bar_begin_s(i);
}

static char *make_headline(const struct lifetime_plot *plot)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%s blocks freed", quantity_count(plot->nr_freed).text);
	if (plot->nr_freed) {
		fputs(", half within ", out);
		fputs(quantity_duration(median_s(plot)).text, out);
	}
	fprintf(out, "; %s held", quantity_count(plot->nr_held).text);
	if (plot->nr_held) {
		fputs(", the oldest for ", out);
		fputs(quantity_duration((double)plot->oldest_ns / 1e9).text, out);
	}
	return fclose(out) == 0 ? text : NULL;
}

/* The second line of the title. */
static char *make_origin(const struct lifetime_plot *plot)
{
	_cleanup_free_ char *caveats = leak_title_caveats(plot->set, true), *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs("lifetimes and ages", out);
	leak_title_print_origin(out, plot->set);
	if (caveats && *caveats)
		fprintf(out, "; %s", caveats);
	return fclose(out) == 0 ? steal_ptr(text) : NULL;
}

static void write_bars(struct plot_script *script, const struct lifetime_plot *plot,
		       unsigned int first, unsigned int last)
{
	FILE *data = plot_script_begin_data(
		script, "bars",
		"middle, begin and end of a bar in seconds, freed blocks, held blocks");

	for (unsigned int i = first; data && i <= last; i++)
		fprintf(data, "%.10g %.10g %.10g %" PRIu64 " %" PRIu64 "\n",
			(bar_begin_s(i) + bar_begin_s(i + 1)) / 2, bar_begin_s(i),
			bar_begin_s(i + 1), plot->freed[i], plot->held[i]);
	plot_script_end_data(script);
}

static void write_axes(FILE *program, double min_s, double max_s, uint64_t most)
{
	fprintf(program,
		"set logscale xy 10\nset xrange [%.10g:%.10g]\nset yrange [0.6:%.10g]\n"
		"set xtics ('1 us' 1e-6, '10 us' 1e-5, '100 us' 1e-4, '1 ms' 1e-3, '10 ms' 1e-2, "
		"'100 ms' 0.1, '1 s' 1, '10 s' 10, '1 min' 60, '10 min' 600, '1 h' 3600, "
		"'10 h' 36000, '1 day' 86400, '10 days' 864000)\n"
		"set format y '%%.0f'\n"
		"set xlabel 'lifetime of freed blocks, age of held blocks'\n",
		min_s, max_s, (double)most * 2);
}

static void write_plot_command(struct plot_script *script, const struct lifetime_plot *plot)
{
	FILE *program = script->program;
	bool is_dumb = script->output->kind == PLOT_OUTPUT_DUMB;
	char title[64];

	fputs("plot ", program);
	plot_script_print_data(script, "bars");
	snprintf(title, sizeof(title), "%s freed, by lifetime",
		 quantity_count(plot->nr_freed).text);
	if (is_dumb)
		fprintf(program, " using 1:4 with points pointtype 6 title '%s', ", title);
	else
		/* 0 has no logarithm. */
		fprintf(program,
			" using 1:($4 > 0 ? $4 : NaN):2:3:(0.6):4 with boxxyerror linecolor rgb "
			"'#56b4e9' title '%s', ",
			title);
	plot_script_print_data(script, "bars");
	snprintf(title, sizeof(title), "%s still held, by age", quantity_count(plot->nr_held).text);
	if (is_dumb)
		fprintf(program, " using 1:5 with points pointtype 8 title '%s'\n", title);
	else
		/* Narrower, so that the bar behind it is visible. */
		fprintf(program,
			" using 1:($5 > 0 ? $5 : NaN):($2 + ($3 - $2) * 0.25):($3 - ($3 - $2) * 0.25)"
			":(0.6):5 with boxxyerror linecolor rgb '#d55e00' title '%s'\n",
			title);
}

int lifetime_plot_write(struct plot_script *script, const void *context)
{
	struct lifetime_plot plot = {.set = context};
	unsigned int first = BARS - 2, last = 0;
	_cleanup_free_ char *headline = NULL, *origin = NULL;
	uint64_t most = 1;

	count(&plot);
	headline = make_headline(&plot);
	origin = make_origin(&plot);
	if (!headline || !origin) {
		diag_error("cannot draw the plot: out of memory");
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < BARS - 1; i++) {
		if (!plot.freed[i] && !plot.held[i])
			continue;
		first = i < first ? i : first;
		last = i;
		most = plot.freed[i] > most ? plot.freed[i] : most;
		most = plot.held[i] > most ? plot.held[i] : most;
	}
	/* Without any block, the axis is from 1 us to 1 s. */
	if (first > last)
		first = bar_of(1000), last = bar_of(1000000000);
	plot_output_begin(script->output, script->program, headline);
	leak_title_write(script, headline, "", origin);
	plot_output_write_style(script->output, script->program);
	write_axes(script->program, bar_begin_s(first) / 2, bar_begin_s(last + 1) * 2, most);
	plot_output_write_ylabel(script->output, script->program, "blocks");
	write_bars(script, &plot, first, last);
	write_plot_command(script, &plot);
	return 0;
}
