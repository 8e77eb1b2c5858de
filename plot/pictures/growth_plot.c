/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Growth by cause: a panel per stack or joint cause with its own axis, so that a slow leak is
 * visible beside a fast one. Growing stacks come first, the fastest first, then those that hold
 * most.
 */
#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "plot/labels/time_axis.h"
#include "plot/leaks/leak_label.h"
#include "plot/leaks/leak_title.h"
#include "plot/pictures/history_plot.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#define PANELS_MAX	 PLOT_RANKS
#define PANEL_CHARS_MAX	 100
#define NARROW_CHARS_MAX 64
#define BYTES_ROOM	 1.12

struct growth_plot {
	const struct leak_set *set;
	const struct stack_history *panels[PANELS_MAX];
	size_t nr;
	struct time_axis axis;
	uint64_t nr_growing, nr_growing_causes; /* the latter of several stacks */
	double per_s;				/* their sum, in bytes or blocks */
};

/* The order of panels. */
static bool is_before(const struct history_set *set, const struct stack_history *a,
		      const struct stack_history *b)
{
	uint64_t a_bytes = stack_history_end(set, a), b_bytes;

	if (a->verdict.has_rate != b->verdict.has_rate)
		return a->verdict.has_rate;
	if (a->verdict.has_rate)
		return stack_verdict_rate(set, &a->verdict) > stack_verdict_rate(set, &b->verdict);
	b_bytes = stack_history_end(set, b);
	return a_bytes > b_bytes;
}

static void choose_panels(struct growth_plot *plot)
{
	const struct history_set *set = &plot->set->histories;

	for (size_t i = 0; i < set->nr; i++) {
		const struct stack_history *history = &set->stacks[i];
		size_t k = plot->nr;

		if (!stack_history_end(set, history))
			continue;
		while (k > 0 && is_before(set, history, plot->panels[k - 1]))
			k--;
		if (k == PANELS_MAX)
			continue;
		plot->nr += plot->nr < PANELS_MAX;
		for (size_t j = plot->nr - 1; j > k; j--)
			plot->panels[j] = plot->panels[j - 1];
		plot->panels[k] = history;
	}
	for (size_t i = 0; i < set->nr_verdicts; i++) {
		/* The rate of a cause is that of its stacks. */
		if (!set->verdicts[i].has_rate || set->verdicts[i].is_part)
			continue;
		plot->nr_growing_causes += set->verdicts[i].is_cause;
		plot->nr_growing++;
		plot->per_s += stack_verdict_rate(set, &set->verdicts[i]);
	}
}

/* "+183 KiB/s", "+1.5 blocks/s"; of slow growth "+26 bytes/min" */
static void print_rate(FILE *out, const struct growth_plot *plot, double per_s)
{
	bool in_blocks = history_set_counts_blocks(&plot->set->histories);
	double size = per_s < 0 ? -per_s : per_s;
	struct quantity_period period = quantity_period_for(in_blocks ? size / 0.1 : size);

	size *= period.length_s;
	if (in_blocks)
		fprintf(out, "%+.3g blocks/%s", per_s * period.length_s, period.name);
	else
		fprintf(out, "%c%s/%s", per_s < 0 ? '-' : '+',
			quantity_size(size < 1e18 ? (uint64_t)(size + 0.5) : UINT64_MAX).text,
			period.name);
}

static void print_headline(FILE *out, const struct growth_plot *plot)
{
	if (plot->nr_growing) {
		fprintf(out, "%" PRIu64 " %s%s grow%s: ", plot->nr_growing,
			plot->nr_growing_causes ? "cause" : "stack",
			quantity_plural(plot->nr_growing),
			quantity_word(plot->nr_growing, "s", ""));
		print_rate(out, plot, plot->per_s);
		if (plot->nr_growing > 1)
			fputs(" together", out);
	} else {
		fputs("no stack grows", out);
	}
	leak_title_print_origin(out, plot->set);
}

static char *text_of(void (*print)(FILE *out, const struct growth_plot *plot),
		     const struct growth_plot *plot)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	print(out, plot);
	return fclose(out) == 0 ? text : NULL;
}

static void write_panel_data(struct plot_script *script, const struct growth_plot *plot, size_t i)
{
	const struct stack_history *history = plot->panels[i];
	const struct history_set *histories = &plot->set->histories;
	uint64_t largest = stack_history_most(histories, history);
	struct quantity_unit unit = history_set_unit(histories, largest);
	char name[24], columns[64];
	FILE *data;

	snprintf(name, sizeof(name), "panel%zu", i);
	snprintf(columns, sizeof(columns), "%s, held in %s, blocks", plot->axis.unit, unit.name);
	data = plot_script_begin_data(script, name, columns);
	if (data)
		fputs("0 0 0\n", data);
	for (size_t k = 0; data && k < plot->set->histories.periods.nr; k++)
		fprintf(data, "%.10g %.10g %" PRIu64 "\n",
			history_plot_period_end(plot->set, &plot->axis, k),
			(double)stack_history_amounts(histories, history)[k] / unit.bytes,
			history->held_blocks[k]);
	plot_script_end_data(script);
}

/* The functions; below them "growth, +433 KiB/s, 999 KiB held, 300 proven lost; stack 9". */
static void write_panel_title(const struct plot_script *script, const struct growth_plot *plot,
			      size_t i)
{
	const struct history_set *histories = &plot->set->histories;
	const struct stack_history *history = plot->panels[i];
	const struct leak_group *legend[PANELS_MAX];
	_cleanup_free_ char *stack = NULL, *words = NULL;
	size_t size, max_chars = plot->nr > 2 ? NARROW_CHARS_MAX : PANEL_CHARS_MAX;
	FILE *out = open_memstream(&words, &size);

	if (!out)
		return;
	for (size_t k = 0; k < plot->nr; k++)
		legend[k] = plot->panels[k]->group;
	stack = leak_label_text(history->group, legend, plot->nr, max_chars);
	fprintf(out, "%s, ", plot_verdict_look(history->verdict.verdict)->name);
	if (history->verdict.has_rate) {
		print_rate(out, plot, stack_verdict_rate(histories, &history->verdict));
		fputs(", ", out);
	}
	fprintf(out, "%s held",
		history_set_text(histories, stack_history_end(histories, history)).text);
	leak_title_print_lost(out, history->group->nr_lost, history->group->nr_without_holder);
	/* The number identifies the stack in the leaks text. */
	fprintf(out, "; %s %" PRIu32, history->group->is_cause ? "cause" : "stack", history->stack);
	if (fclose(out) != 0)
		return;
	fputs("set title ", script->program);
	plot_output_print_escaped(script->output, script->program, stack ? stack : "", max_chars);
	fputs(".\"\\n\".", script->program);
	plot_output_print_string(script->output, script->program, words, max_chars);
	if (script->output->kind == PLOT_OUTPUT_DUMB)
		plot_output_end_title(script->output, script->program);
	fputc('\n', script->program);
}

/* 1, 2 or 5 times a power of ten, so that an axis up to @most has at most five tics. */
static double tic_step(double most)
{
	double step = pow(10, floor(log10(most)));
	static const double parts[] = {0.2, 0.5, 1};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (most / (step * parts[i]) <= 5)
			return step * parts[i];
	return step * 2;
}

static void draw_panel(struct plot_script *script, const struct growth_plot *plot, size_t i)
{
	const struct stack_history *history = plot->panels[i];
	uint32_t colour = plot_verdict_look(history->verdict.verdict)->colour;
	const struct history_set *histories = &plot->set->histories;
	uint64_t largest = stack_history_most(histories, history);
	struct quantity_unit unit = history_set_unit(histories, largest);
	double most = (double)largest / unit.bytes;
	FILE *program = script->program;
	char name[24];

	snprintf(name, sizeof(name), "panel%zu", i);
	write_panel_title(script, plot, i);
	fprintf(program, "set yrange [0:%.10g]\nset ytics %.10g\n", most * BYTES_ROOM,
		tic_step(most));
	plot_output_write_ylabel(script->output, program, "held (%s)", unit.name);
	fputs("plot ", program);
	plot_script_print_data(script, name);
	if (script->output->kind == PLOT_OUTPUT_DUMB) {
		fputs(" using 1:2 with points pointtype 1 notitle\n", program);
		return;
	}
	fprintf(program,
		" using 1:2 with filledcurves x1 fillstyle solid 0.25 linecolor rgb '#%06" PRIx32
		"' notitle, ",
		colour);
	plot_script_print_data(script, name);
	fprintf(program,
		" using 1:2 with lines linewidth 2 linecolor rgb '#%06" PRIx32 "' notitle\n",
		colour);
}

static void write_nothing(struct plot_script *script, const char *headline, const char *caveats)
{
	leak_title_write(script, headline, "", caveats);
	fputs("set xrange [0:1]\nset yrange [0:1]\nunset tics\n"
	      "set label 'nothing is held' at graph 0.5,0.5 center\nplot NaN notitle\n",
	      script->program);
}

int growth_plot_write(struct plot_script *script, const void *context)
{
	const struct leak_set *set = context;
	struct growth_plot plot = {.set = set, .axis = history_plot_time_axis(set)};
	_cleanup_free_ char *headline = NULL, *caveats = leak_title_caveats(set, false);
	FILE *program = script->program;
	size_t columns;

	choose_panels(&plot);
	/* A terminal has room for one panel. */
	if (script->output->kind == PLOT_OUTPUT_DUMB && plot.nr > 1)
		plot.nr = 1;
	headline = text_of(print_headline, &plot);
	if (!headline || !caveats) {
		diag_error("cannot draw the plot: out of memory");
		return -ENOMEM;
	}
	plot_output_begin(script->output, program, headline);
	plot_output_write_style(script->output, program);
	if (!plot.nr) {
		write_nothing(script, headline, caveats);
		return 0;
	}
	for (size_t i = 0; i < plot.nr; i++)
		write_panel_data(script, &plot, i);
	columns = plot.nr <= 3 ? 1 : 2;
	fprintf(program, "set multiplot layout %zu,%zu title ", (plot.nr + columns - 1) / columns,
		columns);
	plot_output_print_string(script->output, program, headline,
				 plot_output_title_chars(script->output));
	if (*caveats) {
		fputs(".\"\\n\".", program);
		plot_output_print_string(script->output, program, caveats,
					 plot_output_title_chars(script->output));
	}
	plot_output_end_title(script->output, program);
	fprintf(program, "\nset xrange [0:%.10g]\n%s",
		history_plot_period_end(set, &plot.axis, set->histories.periods.nr - 1),
		/* A fixed margin aligns the time axes of the panels. */
		script->output->kind == PLOT_OUTPUT_DUMB ? "" : "set lmargin 11\n");
	for (size_t i = 0; i < plot.nr; i++) {
		/* Only the lowest panels have a label below the time axis. */
		if (i + columns >= plot.nr)
			fprintf(program, "set xlabel 'time since the recording began (%s)'\n",
				plot.axis.unit);
		draw_panel(script, &plot, i);
	}
	fputs("unset multiplot\n", program);
	return 0;
}
