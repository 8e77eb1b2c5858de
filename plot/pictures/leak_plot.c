/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/pictures/leak_plot.h"

#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "plot/gnuplot/plot_draw.h"
#include "plot/leaks/leak_density.h"
#include "plot/leaks/leak_label.h"
#include "plot/leaks/leak_set.h"
#include "plot/leaks/leak_title.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#define RECURRING_SIZES 8
/* The minimum distance between labels of sizes, as a part of the axis. */
#define LABEL_DISTANCE 0.035
#define FEW_POINTS     300
/* With more points, they would hide each other and make the picture too large. */
#define MANY_POINTS 20000
/* Cells of the map that replaces them; in a PNG they are about three pixels wide. */
#define MAP_COLUMNS	   320
#define MAP_ROWS	   170
#define VECTOR_MAP_COLUMNS 200
#define VECTOR_MAP_ROWS	   110
#define MAP_SHADES	   6
#define MAP_OVERLAP	   0.2
#define CELL_POINT	   5 /* a filled square, like the cells */
/* Lines of the legend on a terminal of 24 lines. */
#define DUMB_RANKS 3

#define MAX_SERIES PLOT_NR_VERDICTS
static_assert(MAX_SERIES > LEAK_SET_RANKS, "a series for each rank, and one for the others");

/* Blocks of a stack or verdict, which share a colour and a line of the legend. */
struct series {
	uint64_t nr_leaks;
	uint32_t colour;
	int point_type;
	char *label;
};

struct leak_plot {
	const struct leak_plot_options *options;
	struct leak_set set;
	struct leak_axes axes;
	struct plot_output output;
	int nr_ranks; /* stacks with a series of their own */
	struct series series[MAX_SERIES];
	char *headline, *reach, *caveats;
	bool is_map;
	struct leak_density density; /* if is_map */
};

static bool is_dumb(const struct leak_plot *plot)
{
	return plot->output.kind == PLOT_OUTPUT_DUMB;
}

static bool is_vector(const struct leak_plot *plot)
{
	return plot->output.kind == PLOT_OUTPUT_SVG || plot->output.kind == PLOT_OUTPUT_PDF;
}

/* The index into plot->series. Stacks without a colour of their own share one. */
static uint32_t series_of(const struct leak_plot *plot, const struct leak_point *point)
{
	if (plot->options->colour == LEAK_COLOUR_VERDICT)
		return point->verdict;
	return (uint32_t)(point->group->rank < plot->nr_ranks ? point->group->rank
							      : LEAK_SET_RANKS);
}

/* "12 of 340 held blocks (size 3072), 36 KiB, 10 look like leaks, in emacs (PID 4165)" */
static void print_headline(FILE *out, const struct leak_plot *plot)
{
	const struct leak_set *set = &plot->set;
	uint64_t nr_all = set->nr_points + set->nr_outside_range;

	if (nr_all == 0 && set->nr_unknown_size == 0) {
		fputs("No block is listed", out);
		return;
	}
	if (plot->options->size_text)
		fprintf(out, "%s of %s held block%s (size %s)", quantity_count(set->nr_points).text,
			quantity_count(nr_all).text, quantity_plural(nr_all),
			plot->options->size_text);
	else
		fprintf(out, "%s held block%s", quantity_count(set->nr_points).text,
			quantity_plural(set->nr_points));
	if (!set->has_no_bytes)
		fprintf(out, ", %s", quantity_size(set->total_bytes).text);
	leak_title_print_leaks(out, set);
	leak_title_print_origin(out, set);
}

static void print_reach(FILE *out, const struct leak_plot *plot)
{
	leak_title_print_reach(out, &plot->set);
}

static void print_caveats(FILE *out, const struct leak_plot *plot)
{
	leak_title_print_caveats(out, &plot->set, true);
}

/* The output of @print, as a string that the caller frees; NULL if memory is exhausted. */
static char *text_of(void (*print)(FILE *out, const struct leak_plot *plot),
		     const struct leak_plot *plot)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	print(out, plot);
	if (fclose(out) != 0)
		return NULL;
	return steal_ptr(text);
}

/* Labels the right-hand axis with the most frequent sizes: "10 x 3072 bytes". */
static int write_recurring_sizes(FILE *program, const struct leak_plot *plot)
{
	struct recurring_size sizes[RECURRING_SIZES];
	double positions[RECURRING_SIZES];
	size_t nr, nr_shown = 0;

	int err = leak_set_recurring_sizes(&plot->set, sizes, RECURRING_SIZES, &nr);
	if (err)
		return err;
	for (size_t i = 0; i < nr; i++) {
		double position = leak_axes_y_position(&plot->axes, sizes[i].size_bytes);
		bool is_covered = false;

		for (size_t j = 0; j < nr_shown; j++)
			is_covered |= fabs(position - positions[j]) < LABEL_DISTANCE;
		if (is_covered)
			continue;
		positions[nr_shown] = position;
		fprintf(program, "%s'%s x %" PRIu64 " byte%s' %.17g",
			nr_shown ? ", " : "set y2tics (", quantity_count(sizes[i].nr_leaks).text,
			sizes[i].size_bytes, quantity_plural(sizes[i].size_bytes),
			leak_axes_y(&plot->axes, sizes[i].size_bytes));
		nr_shown++;
	}
	if (nr_shown)
		fputs(")\n", program);
	return 0;
}

static void write_points(struct plot_script *script, const struct leak_plot *plot, uint32_t series)
{
	const struct leak_set *set = &plot->set;
	char name[16], columns[64];
	FILE *data;

	snprintf(name, sizeof(name), "series%" PRIu32, series);
	snprintf(columns, sizeof(columns), "%s, %s%s",
		 plot->axes.by_event ? "event" : plot->axes.time.unit,
		 plot->axes.counts ? "" : "size in ", plot->axes.size_unit.name);
	data = plot_script_begin_data(script, name, columns);
	for (size_t i = 0; data && i < set->nr_points; i++)
		if (series_of(plot, &set->points[i]) == series)
			fprintf(data, "%.10g %.10g\n", leak_axes_x(&plot->axes, &set->points[i]),
				leak_axes_y(&plot->axes,
					    leak_axes_amount(&plot->axes, &set->points[i])));
	plot_script_end_data(script);
}

static int make_map(struct leak_plot *plot)
{
	const struct leak_set *set = &plot->set;
	double end = leak_axes_x_end(&plot->axes);
	int err = leak_density_init(&plot->density,
				    is_vector(plot) ? VECTOR_MAP_COLUMNS : MAP_COLUMNS,
				    is_vector(plot) ? VECTOR_MAP_ROWS : MAP_ROWS, MAX_SERIES);

	for (size_t i = 0; !err && i < set->nr_points; i++)
		leak_density_add(
			&plot->density, leak_axes_x(&plot->axes, &set->points[i]) / end,
			leak_axes_y_position(&plot->axes,
					     leak_axes_amount(&plot->axes, &set->points[i])),
			series_of(plot, &set->points[i]));
	plot->is_map = !err;
	return err;
}

/*
 * Draws each cell as a box in the colour of the series with most of its blocks; more blocks are
 * darker. Boxes overlap a little, because anti-aliased edges would leave pale lines between them.
 */
static void write_map(struct plot_script *script, const struct leak_plot *plot)
{
	const struct leak_density *map = &plot->density;
	uint64_t max = leak_density_max(map);
	double width = leak_axes_x_end(&plot->axes) / map->columns;
	FILE *data = plot_script_begin_data(
		script, "map",
		"x y left right bottom top colour blocks (the middle of a cell, ...)");

	for (uint32_t row = 0; data && row < map->rows; row++) {
		double bottom = leak_axes_y_at(&plot->axes, (double)row / map->rows);
		double top = leak_axes_y_at(&plot->axes, (row + 1 + MAP_OVERLAP) / map->rows);
		double middle = leak_axes_y_at(&plot->axes, (row + 0.5) / map->rows);

		for (uint32_t column = 0; column < map->columns; column++) {
			struct leak_density_cell cell = leak_density_cell(map, column, row);

			if (cell.nr)
				fprintf(data,
					"%.6g %.6g %.6g %.6g %.6g %.6g %" PRIu32 " %" PRIu64 "\n",
					(column + 0.5) * width, middle, column * width,
					(column + 1 + MAP_OVERLAP) * width, bottom, top,
					plot_shade(plot->series[cell.series].colour,
						   leak_density_step(cell.nr, max, MAP_SHADES),
						   MAP_SHADES),
					cell.nr);
		}
	}
	plot_script_end_data(script);
}

/* gnuplot draws points larger in SVG and PDF than in PNG: makes them look the same. */
static double point_size(const struct leak_plot *plot, double size)
{
	return is_vector(plot) ? size * 0.65 : size;
}

/* A text terminal draws a different letter for each type of point. */
static int point_type(const struct leak_plot *plot, uint32_t series)
{
	if (plot->is_map)
		return CELL_POINT;
	return is_dumb(plot) ? (int)series + 1 : plot->series[series].point_type;
}

/* Few points are large and opaque; many are small and translucent (#AARRGGBB). */
static void draw_points(struct plot_script *script, const struct leak_plot *plot, uint32_t series)
{
	bool few = plot->set.nr_points <= FEW_POINTS;
	char name[16];

	snprintf(name, sizeof(name), "series%" PRIu32, series);
	fputs(", ", script->program);
	plot_script_print_data(script, name);
	fprintf(script->program,
		" using 1:2 with points pointtype %d pointsize %g linecolor rgb '#%s%06" PRIx32
		"' notitle",
		point_type(plot, series), point_size(plot, few ? 1.2 : 0.7), few ? "10" : "60",
		plot->series[series].colour);
}

static void draw_legend(const struct leak_plot *plot, FILE *program, int type, double size,
			uint32_t colour, const char *text)
{
	fprintf(program,
		", keyentry with points pointtype %d pointsize %g linecolor rgb '#%06" PRIx32
		"' title ",
		type, size, colour);
	plot_output_print_escaped(&plot->output, program, text,
				  plot_output_legend_chars(&plot->output));
}

/* Explains the shades of a map, in grey. */
static void draw_shades(const struct leak_plot *plot, FILE *program)
{
	uint64_t max = leak_density_max(&plot->density);
	char text[64];

	draw_legend(plot, program, CELL_POINT, point_size(plot, 1.4),
		    plot_shade(0x707070, 0, MAP_SHADES), "one block in one place");
	snprintf(text, sizeof(text), "%s blocks in one place", quantity_count(max).text);
	if (max > 1)
		draw_legend(plot, program, CELL_POINT, point_size(plot, 1.4),
			    plot_shade(0x707070, MAP_SHADES - 1, MAP_SHADES), text);
}

static void write_plot_command(struct plot_script *script, const struct leak_plot *plot)
{
	/* Draws the axes even if nothing is listed. */
	fputs("plot NaN notitle", script->program);
	if (plot->is_map) {
		fputs(", ", script->program);
		plot_script_print_data(script, "map");
		fputs(" using 1:2:3:4:5:6:7 with boxxyerror linecolor rgb variable notitle",
		      script->program);
	}
	/* The first series comes last, so that it is drawn over the others. */
	for (uint32_t i = 1; !plot->is_map && i <= MAX_SERIES; i++)
		if (plot->series[MAX_SERIES - i].nr_leaks)
			draw_points(script, plot, MAX_SERIES - i);
	for (uint32_t i = 0; i < MAX_SERIES; i++)
		if (plot->series[i].nr_leaks)
			draw_legend(plot, script->program, point_type(plot, i),
				    point_size(plot, 1.2), plot->series[i].colour,
				    plot->series[i].label ? plot->series[i].label : "");
	if (plot->is_map)
		draw_shades(plot, script->program);
	fputc('\n', script->program);
}

static int write_program(struct plot_script *script, const void *context)
{
	const struct leak_plot *plot = context;
	FILE *program = script->program;

	plot_output_begin(script->output, program, plot->headline);
	leak_title_write(script, plot->headline, plot->reach, plot->caveats);
	leak_axes_write(&plot->axes, &plot->set.summary, script->output, program);
	if (plot->is_map)
		write_map(script, plot);
	for (uint32_t i = 0; !plot->is_map && i < MAX_SERIES; i++)
		if (plot->series[i].nr_leaks)
			write_points(script, plot, i);
	plot_output_write_style(script->output, program);
	if (!is_dumb(plot) && !plot->axes.counts) {
		/* The right-hand axis shows sizes. */
		fputs("set border 11\n", program);
		int err = write_recurring_sizes(program, plot);
		if (err)
			return err;
	}
	if (plot->set.nr_points == 0)
		fprintf(program, "set label 'no block is listed' at graph 0.5,0.5 center%s\n",
			is_dumb(plot) ? "" : " font ',20'");
	write_plot_command(script, plot);
	return 0;
}

/* "30 KiB, 10 x 3 KiB, 8 proven lost: _XQueryFont <- XQueryFont" */
static char *group_label(const struct leak_plot *plot, const struct leak_group *group,
			 const struct leak_group *const *legend, size_t nr)
{
	size_t max_chars = plot_output_legend_chars(&plot->output), size;
	_cleanup_free_ char *stack = NULL, *label = NULL;
	FILE *out = open_memstream(&label, &size);

	if (!out)
		return NULL;
	if (group->nr_leaks > 1 && !plot->set.has_no_bytes)
		fprintf(out, "%s, ", quantity_size(group->total_bytes).text);
	fprintf(out, "%s x ", quantity_count(group->nr_leaks).text);
	if (!plot->set.has_no_bytes) {
		fprintf(out, "%s%s", group->same_size ? "" : "about ",
			quantity_size(group->total_bytes / group->nr_leaks).text);
		leak_title_print_lost(out, group->nr_lost, group->nr_without_holder);
		fputs(": ", out);
	}
	fflush(out);
	stack = leak_label_text(group, legend, nr, max_chars > size ? max_chars - size : 0);
	fputs(stack ? stack : "", out);
	return fclose(out) == 0 ? steal_ptr(label) : NULL;
}

static void make_stack_series(struct leak_plot *plot)
{
	struct series *others = &plot->series[LEAK_SET_RANKS];
	int max = is_dumb(plot) ? DUMB_RANKS : LEAK_SET_RANKS;
	const struct leak_group *const *legend = (const struct leak_group *const *)plot->set.ranked;

	while (plot->nr_ranks < max && plot->set.ranked[plot->nr_ranks])
		plot->nr_ranks++;
	*others = (struct series){plot->set.nr_points, PLOT_COLOUR_OTHERS, PLOT_POINT_OTHERS, NULL};
	for (int i = 0; i < plot->nr_ranks; i++) {
		const struct leak_group *group = plot->set.ranked[i];

		plot->series[i] = (struct series){
			group->nr_leaks, plot_rank_colour((size_t)i), plot_rank_point((size_t)i),
			group_label(plot, group, legend, (size_t)plot->nr_ranks)};
		others->nr_leaks -= group->nr_leaks;
	}
	if (asprintf(&others->label, "%s from all other stacks",
		     quantity_count(others->nr_leaks).text) < 0)
		others->label = NULL;
}

/* "growth: 300 blocks, 900 KiB, 200 proven lost (keep accumulating)" */
static char *verdict_label(const struct leak_plot *plot, enum plot_verdict verdict)
{
	const struct plot_verdict_look *look = plot_verdict_look(verdict);
	const struct leak_verdict_sum *sum = &plot->set.verdicts[verdict];
	_cleanup_free_ char *label = NULL;
	size_t size;
	FILE *out = open_memstream(&label, &size);

	if (!out)
		return NULL;
	fprintf(out, "%s: %s block%s", look->name, quantity_count(sum->nr_leaks).text,
		quantity_plural(sum->nr_leaks));
	if (!plot->set.has_no_bytes)
		fprintf(out, ", %s", quantity_size(sum->total_bytes).text);
	leak_title_print_lost(out, sum->nr_lost, sum->nr_without_holder);
	if (*look->meaning)
		fprintf(out, " (%s)", look->meaning);
	return fclose(out) == 0 ? steal_ptr(label) : NULL;
}

static void make_verdict_series(struct leak_plot *plot)
{
	for (enum plot_verdict verdict = 0; verdict < PLOT_NR_VERDICTS; verdict++) {
		const struct plot_verdict_look *look = plot_verdict_look(verdict);

		plot->series[verdict] =
			(struct series){plot->set.verdicts[verdict].nr_leaks, look->colour,
					look->point_type, verdict_label(plot, verdict)};
	}
}

static int draw(struct leak_plot *plot)
{
	const struct plot_drawing drawing = {
		.name = LEAK_PLOT_NAME,
		.save = plot->options->save,
		.output = &plot->output,
		.write = write_program,
		.context = plot,
	};

	plot->headline = text_of(print_headline, plot);
	plot->reach = text_of(print_reach, plot);
	plot->caveats = text_of(print_caveats, plot);
	if (!plot->headline || !plot->reach || !plot->caveats) {
		diag_error("cannot draw the plot: out of memory");
		return -ENOMEM;
	}
	if (plot->set.nr_points == 0) {
		diag_note("%s", plot->headline);
		if (!plot_output_is_file(&plot->output) && !plot->options->save)
			return 0;
	}
	plot->axes = leak_axes_choose(&plot->set, plot->options->scale, plot->options->by_event);
	if (plot->options->colour == LEAK_COLOUR_VERDICT)
		make_verdict_series(plot);
	else
		make_stack_series(plot);
	if (plot->set.nr_points > MANY_POINTS && !is_dumb(plot)) {
		int err = make_map(plot);

		if (err)
			return err;
	}
	return plot_draw(&drawing);
}

static void deinit(struct leak_plot *plot)
{
	for (uint32_t i = 0; i < MAX_SERIES; i++)
		free(plot->series[i].label);
	free(plot->headline);
	free(plot->reach);
	free(plot->caveats);
	leak_density_deinit(&plot->density);
	leak_set_deinit(&plot->set);
}

int leak_plot_run(const struct leak_plot_options *options, const struct plot_output *output)
{
	struct leak_plot plot = {.options = options, .output = *output};

	int err = leak_set_init(&plot.set, options->input,
				options->size_text ? &options->size : NULL);
	if (err)
		return err;
	err = draw(&plot);
	deinit(&plot);
	return err;
}
