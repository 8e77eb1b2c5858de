/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/memory/memory_chart.h"

#include "common/quantity.h"
#include "common/scope.h"
#include "plot/labels/time_axis.h"

/* Margin above and below the curves: a part of their span, at least a part of the largest value. */
#define ROOM_OF_SPAN	0.1
#define ROOM_OF_LARGEST 0.02

void memory_chart_begin(const struct plot_output *output, FILE *program)
{
	plot_output_begin(output, program, "leakplot --mem");
	plot_output_write_style(output, program);
	/* Without this, the next drawing would open a closed window again. */
	if (output->kind == PLOT_OUTPUT_WINDOW)
		fputs("bind all 'Close' 'exit gnuplot'\nset xrange [0:*]\n"
		      "set offsets graph 0, 0, 0.1, 0.1\n",
		      program);
}

/* The change since the first sample, signed. */
static void print_growth(FILE *out, const char *what, uint64_t first_bytes, uint64_t last_bytes)
{
	bool grew = last_bytes >= first_bytes;
	uint64_t change = grew ? last_bytes - first_bytes : first_bytes - last_bytes;

	fprintf(out, "%s %s", what, quantity_size(last_bytes).text);
	if (change)
		fprintf(out, " (%c%s)", grew ? '+' : '-', quantity_size(change).text);
}

/* "emacs (PID 4165): RSS 34.5 MiB (+1.2 MiB), heap 20 MiB (+1.1 MiB)" */
static void write_title(const struct plot_output *output, const struct memory_history *history,
			const char *name, pid_t pid, FILE *program)
{
	_cleanup_free_ char *title = NULL;
	size_t size;
	FILE *out = open_memstream(&title, &size);

	if (!out)
		return;
	fprintf(out, "%s (PID %d): ", name, pid);
	print_growth(out, "RSS", history->first.rss_bytes, history->last.rss_bytes);
	fputs(", ", out);
	print_growth(out, "heap", history->first.heap_bytes, history->last.heap_bytes);
	if (fclose(out) != 0)
		return;
	fputs("set title ", program);
	plot_output_print_string(output, program, title, plot_output_title_chars(output));
	plot_output_end_title(output, program);
	fputc('\n', program);
}

struct span {
	uint64_t min_bytes;
	uint64_t max_bytes;
};

static struct span find_span(const struct memory_history *history)
{
	struct span span = {UINT64_MAX, 0};

	for (size_t i = 0; i < history->nr; i++) {
		const uint64_t values[] = {history->samples[i].rss_bytes,
					   history->samples[i].heap_bytes};

		for (size_t j = 0; j < ARRAY_SIZE(values); j++) {
			if (values[j] < span.min_bytes)
				span.min_bytes = values[j];
			if (values[j] > span.max_bytes)
				span.max_bytes = values[j];
		}
	}
	return span;
}

/*
 * The curves fill the axis, so that a slow leak is visible, but the margin keeps changes of less
 * than a few percent small.
 */
static void write_ranges(const struct span *span, const struct quantity_unit *unit, double end,
			 FILE *program)
{
	double min = (double)span->min_bytes / unit->bytes;
	double max = (double)span->max_bytes / unit->bytes;
	double room = (max - min) * ROOM_OF_SPAN;

	if (room < max * ROOM_OF_LARGEST)
		room = max * ROOM_OF_LARGEST;
	fprintf(program, "set xrange [0:%.17g]\nset yrange [%.17g:%.17g]\n", end > 0 ? end : 1,
		min > room ? min - room : 0, max > 0 ? max + room : 1);
}

static void write_samples(struct plot_script *script, const struct memory_history *history,
			  const struct time_axis *axis, const struct quantity_unit *unit)
{
	FILE *data = plot_script_begin_data(script, "memory", "time RSS heap");

	for (size_t i = 0; data && i < history->nr; i++) {
		const struct memory_sample *sample = &history->samples[i];

		fprintf(data, "%.9g %.9g %.9g\n", time_axis_value(axis, sample->time_ns),
			(double)sample->rss_bytes / unit->bytes,
			(double)sample->heap_bytes / unit->bytes);
	}
	plot_script_end_data(script);
}

void memory_chart_draw(struct plot_script *script, const struct memory_history *history,
		       const char *name, pid_t pid)
{
	struct time_axis axis = time_axis_make(history->first.time_ns, history->last.time_ns);
	bool is_dumb = script->output->kind == PLOT_OUTPUT_DUMB;
	const char *style = is_dumb ? "points pointtype" : "lines linewidth 2 dashtype";
	double end = time_axis_value(&axis, history->last.time_ns);
	struct span span = find_span(history);
	struct quantity_unit unit = quantity_unit_for(span.max_bytes);
	FILE *program = script->program;

	write_title(script->output, history, name, pid, program);
	fprintf(program, "set xlabel 'time watched (%s)'\n", axis.unit);
	plot_output_write_ylabel(script->output, program, "memory (%s)", unit.name);
	/* In a window, gnuplot adapts the ranges to the data unless the user has zoomed in. */
	if (script->output->kind != PLOT_OUTPUT_WINDOW)
		write_ranges(&span, &unit, end, program);
	write_samples(script, history, &axis, &unit);
	fputs("plot ", program);
	plot_script_print_data(script, "memory");
	fprintf(program,
		" using 1:2 with %s 1 linecolor rgb '#0072B2' title 'RSS: all resident memory', ",
		style);
	plot_script_print_data(script, "memory");
	fprintf(program,
		" using 1:3 with %s %d linecolor rgb '#D55E00' title "
		"'heap: private anonymous memory, swapped out included'\n",
		style, is_dumb ? 2 : 1);
}
