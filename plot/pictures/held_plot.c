/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Held amounts over time: a layer for each of the largest stacks, above one for all others. */
#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "plot/labels/time_axis.h"
#include "plot/leaks/leak_label.h"
#include "plot/leaks/leak_title.h"
#include "plot/pictures/history_plot.h"

#include <errno.h>
#include <inttypes.h>

/* Margin above the sum. */
#define BYTES_ROOM 1.08
/* Lines of the legend on a terminal of 24 lines. */
#define DUMB_RANKS 3
/* A row of the data that is not the end of a period, but the peak between two. */
#define AT_PEAK SIZE_MAX
/* A layer of a smaller part of the sum would not be seen. */
#define VISIBLE_SHARE 500

struct held_plot {
	const struct leak_set *set;
	size_t nr_ranks; /* stacks with a layer of their own: the file's first ones */
	struct time_axis axis;
	struct quantity_unit unit;
};

static uint64_t amount_of(const struct held_plot *plot, const struct stack_history *history,
			  size_t period)
{
	const struct history_set *histories = &plot->set->histories;

	return period == AT_PEAK ? stack_history_at_peak(histories, history)
				 : stack_history_amounts(histories, history)[period];
}

static uint64_t of_rank(const struct held_plot *plot, size_t rank, size_t period)
{
	return amount_of(plot, &plot->set->histories.stacks[rank], period);
}

/* What the other stacks held. The file is untrusted, so the sum may be too small. */
static uint64_t of_others(const struct held_plot *plot, size_t period)
{
	uint64_t rest = amount_of(plot, &plot->set->histories.all, period);

	for (size_t i = 0; i < plot->nr_ranks; i++) {
		uint64_t part = of_rank(plot, i, period);

		rest -= part < rest ? part : rest;
	}
	return rest;
}

/* Writes the time @at and, for that moment, the top of each layer, the lowest first. */
static void write_row(FILE *data, const struct held_plot *plot, double at, size_t period)
{
	double sum = (double)of_others(plot, period) / plot->unit.bytes;

	fprintf(data, "%.10g %.10g", at, sum);
	for (size_t rank = plot->nr_ranks; rank-- > 0;) {
		sum += (double)of_rank(plot, rank, period) / plot->unit.bytes;
		fprintf(data, " %.10g", sum);
	}
	fputc('\n', data);
}

/* Writes a row for the end of each period, and one for the peak, which no period's end may show. */
static void write_layers(struct plot_script *script, const struct held_plot *plot)
{
	const struct leaks_periods *periods = &plot->set->histories.periods;
	double peak = time_axis_value(&plot->axis, periods->peak_ns), begin = 0;
	FILE *data;

	data = plot_script_begin_data(
		script, "layers",
		"time, then the top of each layer: other stacks, the last stack "
		"of the legend, ..., the first one");
	for (size_t i = 0; data && i < periods->nr; i++) {
		double end = history_plot_period_end(plot->set, &plot->axis, i);

		/* The recording began with nothing held. */
		if (i == 0)
			for (size_t k = 0; k <= plot->nr_ranks + 1; k++)
				fputs(k <= plot->nr_ranks ? "0 " : "0\n", data);
		if (periods->peak_ns && peak >= begin && peak < end)
			write_row(data, plot, peak, AT_PEAK);
		write_row(data, plot, end, i);
		begin = end;
	}
	plot_script_end_data(script);
}

/* "2 MiB at most, 1.9 MiB at the end (plateau): " */
static void print_amounts(FILE *out, const struct held_plot *plot,
			  const struct stack_history *history)
{
	const struct history_set *histories = &plot->set->histories;
	uint64_t most = stack_history_most(histories, history);
	uint64_t end = stack_history_end(histories, history);

	if (most != end)
		fprintf(out, "%s at most, ", history_set_text(histories, most).text);
	fprintf(out, "%s at the end", end ? history_set_text(histories, end).text : "none");
	if (history->verdict.verdict != PLOT_NO_VERDICT && end)
		fprintf(out, " (%s)", plot_verdict_look(history->verdict.verdict)->name);
	fputs(": ", out);
}

static char *rank_label(const struct plot_script *script, const struct held_plot *plot, size_t rank)
{
	const struct history_set *histories = &plot->set->histories;
	const struct leak_group *legend[PLOT_RANKS];
	size_t max_chars = plot_output_legend_chars(script->output), size;
	_cleanup_free_ char *stack = NULL, *label = NULL;
	FILE *out = open_memstream(&label, &size);

	if (!out)
		return NULL;
	print_amounts(out, plot, &histories->stacks[rank]);
	fflush(out);
	for (size_t i = 0; i < plot->nr_ranks; i++)
		legend[i] = histories->stacks[i].group;
	stack = leak_label_text(legend[rank], legend, plot->nr_ranks,
				max_chars > size ? max_chars - size : 0);
	fputs(stack ? stack : "", out);
	return fclose(out) == 0 ? steal_ptr(label) : NULL;
}

/* Layer 0 is that of the other stacks, the highest that of the first rank. */
static void draw_layer(struct plot_script *script, const struct held_plot *plot, size_t layer)
{
	size_t rank = plot->nr_ranks - layer;
	uint32_t colour = layer ? plot_rank_colour(rank) : PLOT_COLOUR_OTHERS;

	fputs(layer ? ", " : "plot ", script->program);
	plot_script_print_data(script, "layers");
	if (script->output->kind == PLOT_OUTPUT_DUMB)
		fprintf(script->program, " using 1:%zu with points pointtype %zu notitle",
			layer + 2, layer ? rank + 1 : plot->nr_ranks + 1);
	else if (layer)
		fprintf(script->program,
			" using 1:%zu:%zu with filledcurves linecolor rgb '#%06" PRIx32 "' notitle",
			layer + 1, layer + 2, colour);
	else
		fprintf(script->program,
			" using 1:2 with filledcurves x1 linecolor rgb '#%06" PRIx32 "' notitle",
			colour);
}

static void draw_legend(struct plot_script *script, const struct held_plot *plot, size_t rank,
			const char *text)
{
	if (script->output->kind == PLOT_OUTPUT_DUMB)
		fprintf(script->program, ", keyentry with points pointtype %zu title ", rank + 1);
	else
		fprintf(script->program,
			", keyentry with boxes linecolor rgb '#%06" PRIx32 "' title ",
			rank < plot->nr_ranks ? plot_rank_colour(rank) : PLOT_COLOUR_OTHERS);
	plot_output_print_escaped(script->output, script->program, text,
				  plot_output_legend_chars(script->output));
}

static void write_plot_command(struct plot_script *script, const struct held_plot *plot)
{
	const struct history_set *histories = &plot->set->histories;
	uint64_t visible = stack_history_most(histories, &histories->all) / VISIBLE_SHARE;
	bool has_others = false;

	for (size_t i = 0; i < histories->periods.nr; i++)
		has_others |= of_others(plot, i) > visible;
	for (size_t layer = 0; layer <= plot->nr_ranks; layer++)
		draw_layer(script, plot, layer);
	for (size_t rank = 0; rank < plot->nr_ranks; rank++) {
		_cleanup_free_ char *label = rank_label(script, plot, rank);

		draw_legend(script, plot, rank, label ? label : "");
	}
	if (has_others)
		draw_legend(script, plot, plot->nr_ranks, "all other stacks");
	fputc('\n', script->program);
}

static char *headline(const struct leak_set *set)
{
	const struct history_set *histories = &set->histories;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "held: %s at the end, ",
		history_set_text(histories, stack_history_end(histories, &histories->all)).text);
	fprintf(out, "%s at most",
		history_set_text(histories, stack_history_most(histories, &histories->all)).text);
	leak_title_print_origin(out, set);
	return fclose(out) == 0 ? text : NULL;
}

int held_plot_write(struct plot_script *script, const void *context)
{
	const struct leak_set *set = context;
	const struct history_set *histories = &set->histories;
	bool is_dumb = script->output->kind == PLOT_OUTPUT_DUMB;
	struct held_plot plot = {
		.set = set,
		.axis = history_plot_time_axis(set),
		.unit = history_set_unit(histories, histories->all.most_bytes),
	};
	uint64_t most = stack_history_most(histories, &histories->all);
	_cleanup_free_ char *title = headline(set);
	_cleanup_free_ char *caveats = leak_title_caveats(set, false);
	FILE *program = script->program;

	if (!title || !caveats) {
		diag_error("cannot draw the plot: out of memory");
		return -ENOMEM;
	}
	while (plot.nr_ranks < (is_dumb ? DUMB_RANKS : PLOT_RANKS) &&
	       plot.nr_ranks < histories->nr &&
	       stack_history_most(histories, &histories->stacks[plot.nr_ranks]))
		plot.nr_ranks++;
	plot_output_begin(script->output, program, title);
	leak_title_write(script, title, "", caveats);
	plot_output_write_style(script->output, program);
	fprintf(program,
		"set xrange [0:%.10g]\nset yrange [0:%.10g]\n"
		"set xlabel 'time since the recording began (%s)'\n",
		history_plot_period_end(set, &plot.axis, histories->periods.nr - 1),
		most ? (double)most / plot.unit.bytes * BYTES_ROOM : 1, plot.axis.unit);
	plot_output_write_ylabel(script->output, program, "held (%s)", plot.unit.name);
	write_layers(script, &plot);
	write_plot_command(script, &plot);
	return 0;
}
