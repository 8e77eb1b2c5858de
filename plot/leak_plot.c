/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leak_plot.h"

#include "common/diag.h"
#include "common/output_file.h"
#include "common/scope.h"
#include "plot/end_signals.h"
#include "plot/gnuplot.h"
#include "plot/leak_set.h"
#include "plot/plot_output.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#define TITLE_CHARS_MAX 110
#define LABEL_CHARS_MAX 60
#define NAME_BYTES_MAX	40
#define RECURRING_SIZES 8
/* Labels of sizes closer than this part of the axis would cover each other. */
#define LABEL_DISTANCE 0.035
#define FEW_POINTS     300
#define MANY_POINTS    10000
/* Finer than the pixels of a picture, so that it can be zoomed into. */
#define STEPS_ACROSS 5000
/* Lines that the legend may take from a plot of 24 lines. */
#define DUMB_RANKS 3

/* Colours that colour-blind people tell apart (Okabe and Ito), most frequent stack first. */
static const char *const rank_colours[LEAK_SET_RANKS + 1] = {
	"D55E00", "0072B2", "009E73", "CC79A7", "E69F00", "56B4E9", [LEAK_SET_RANKS] = "707070",
};

/* Everything that the parts of the program are written from. */
struct leak_plot {
	const struct leak_plot_options *options;
	struct leak_set set;
	struct leak_axes axes;
	struct plot_output output;
	int nr_ranks; /* stacks with a colour and a line in the legend of their own */
};

static bool is_dumb(const struct leak_plot *plot)
{
	return plot->output.kind == PLOT_OUTPUT_DUMB;
}

/* The stacks beyond those with a colour share one. */
static int shown_rank(const struct leak_plot *plot, const struct leak_group *group)
{
	return group->rank < plot->nr_ranks ? group->rank : LEAK_SET_RANKS;
}

static const char *plural(uint64_t nr)
{
	return nr == 1 ? "" : "s";
}

/* "12 of 340 leaks (size 3072), 36 KiB, in emacs, python3 (PID 4165)" */
static void print_headline(FILE *out, const struct leak_plot *plot)
{
	const struct leak_set *set = &plot->set;
	uint64_t nr_all = set->nr_points + set->nr_outside_range;

	if (nr_all == 0 && set->nr_unknown_size == 0) {
		fputs("Nothing leaked", out);
		return;
	}
	if (plot->options->size_text)
		fprintf(out, "%zu of %" PRIu64 " leak%s (size %s)", set->nr_points, nr_all,
			plural(nr_all), plot->options->size_text);
	else
		fprintf(out, "%zu leak%s", set->nr_points, plural(set->nr_points));
	fprintf(out, ", %s", byte_text_format(set->total_bytes).text);
	for (size_t i = 0; i < set->nr_names; i++)
		fprintf(out, "%s%.*s", i == 0 ? ", in " : ", ", NAME_BYTES_MAX, set->names[i]);
	if (set->more_names)
		fputs(" and others", out);
	if (set->nr_points && !set->several_pids)
		fprintf(out, " (PID %" PRId32 ")", set->pid);
}

/* What makes the picture less than the whole truth; nothing if it is. */
static void print_caveats(FILE *out, const struct leak_plot *plot)
{
	const struct leak_set *set = &plot->set;
	uint64_t lost = set->summary.lost_events;

	if (lost)
		fprintf(out, "%" PRIu64 " event%s lost: some of these blocks may have been freed",
			lost, lost == 1 ? " was" : "s were");
	if (set->summary.is_truncated)
		fprintf(out, "%sthe recording was cut off", lost ? "; " : "");
	if (set->nr_unknown_size)
		fprintf(out, "%s%" PRIu64 " leak%s of unknown size not shown",
			lost || set->summary.is_truncated ? "; " : "", set->nr_unknown_size,
			plural(set->nr_unknown_size));
}

/* What @print prints, as a string that the caller frees; NULL if memory is out. */
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

static void write_title(FILE *program, const struct plot_output *output, const char *headline,
			const char *caveats)
{
	fputs("set title ", program);
	gnuplot_print_string(program, headline, TITLE_CHARS_MAX);
	if (*caveats) {
		fputs(".\"\\n\".", program);
		gnuplot_print_string(program, caveats, TITLE_CHARS_MAX);
	}
	plot_output_print_title_font(output, program);
	fputc('\n', program);
}

/* On the right-hand side, the sizes that recur most, with how often: "10 x 3072 bytes". */
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
		fprintf(program, "%s'%" PRIu64 " x %" PRIu64 " byte%s' %.17g",
			nr_shown ? ", " : "set y2tics (", sizes[i].nr_leaks, sizes[i].size_bytes,
			plural(sizes[i].size_bytes), leak_axes_y(&plot->axes, sizes[i].size_bytes));
		nr_shown++;
	}
	if (nr_shown)
		fputs(")\n", program);
	return 0;
}

/*
 * The points of one rank, as a data block of numbers. In a picture of many points, one that would
 * cover the one before is left out: rows of the same size make files too large for a viewer.
 */
static void write_points(FILE *program, const struct leak_plot *plot, int rank)
{
	const struct leak_set *set = &plot->set;
	bool is_thinned = plot_output_is_file(&plot->output) && set->nr_points > MANY_POINTS;
	double step = is_thinned ? plot->axes.x_max / STEPS_ACROSS : 0;
	const struct leak_point *before = NULL;

	fprintf(program, "$rank%d << END\n", rank);
	for (size_t i = 0; i < set->nr_points; i++) {
		const struct leak_point *point = &set->points[i];
		double x = leak_axes_x(&plot->axes, point);

		if (shown_rank(plot, point->group) != rank)
			continue;
		if (before && before->size_bytes == point->size_bytes &&
		    fabs(x - leak_axes_x(&plot->axes, before)) < step)
			continue;
		fprintf(program, "%.17g %.17g\n", x, leak_axes_y(&plot->axes, point->size_bytes));
		before = point;
	}
	fputs("END\n", program);
}

/* Text terminals draw a letter for each type of point; elsewhere a filled circle shows best. */
static int point_type(const struct leak_plot *plot, int rank)
{
	return is_dumb(plot) ? rank + 1 : 7;
}

/* The same to the eye everywhere: gnuplot's SVG and PDF draw points larger than its PNG does. */
static double point_size(const struct leak_plot *plot, double size)
{
	bool is_vector =
		plot->output.kind == PLOT_OUTPUT_SVG || plot->output.kind == PLOT_OUTPUT_PDF;

	return is_vector ? size * 0.65 : size;
}

/* Few points are large and solid; many are small and show through each other (#AARRGGBB). */
static void draw_points(FILE *program, const struct leak_plot *plot, int rank)
{
	size_t nr = plot->set.nr_points;
	bool few = nr <= FEW_POINTS, many = nr > MANY_POINTS;

	fprintf(program,
		", $rank%d using 1:2 with points pointtype %d pointsize %g linecolor rgb '#%s%s' "
		"notitle",
		rank, point_type(plot, rank),
		point_size(plot, few	? 1.2
				 : many ? 0.4
					: 0.7),
		few    ? "10"
		: many ? "A0"
		       : "60",
		rank_colours[rank % (int)ARRAY_SIZE(rank_colours)]);
}

static void draw_legend(FILE *program, const struct leak_plot *plot, int rank, const char *text)
{
	fprintf(program,
		", keyentry with points pointtype %d pointsize %g linecolor rgb '#%s' title ",
		point_type(plot, rank), point_size(plot, 1.2), rank_colours[rank]);
	gnuplot_print_string(program, text, LABEL_CHARS_MAX);
}

/* A line of the legend: "10 x 3 KiB: _XQueryFont <- XQueryFont" */
static void draw_group_legend(FILE *program, const struct leak_plot *plot,
			      const struct leak_group *group)
{
	_cleanup_free_ char *text = NULL;

	if (asprintf(&text, "%" PRIu64 " x %s%s: %s", group->nr_leaks,
		     group->same_size ? "" : "about ",
		     byte_text_format(group->total_bytes / group->nr_leaks).text,
		     *group->label ? group->label : "no stack") < 0)
		text = NULL;
	draw_legend(program, plot, group->rank, text ? text : "");
}

static void write_plot_command(FILE *program, const struct leak_plot *plot)
{
	const struct leak_set *set = &plot->set;
	uint64_t nr_other = set->nr_points;

	for (int i = 0; i < plot->nr_ranks; i++)
		nr_other -= set->ranked[i]->nr_leaks;

	/* Something to plot, so that axes appear even when nothing leaked. */
	fputs("plot NaN notitle", program);
	/* The most frequent last: it is drawn over the others. */
	if (nr_other)
		draw_points(program, plot, LEAK_SET_RANKS);
	for (int i = plot->nr_ranks - 1; i >= 0; i--)
		draw_points(program, plot, i);
	for (int i = 0; i < plot->nr_ranks; i++)
		draw_group_legend(program, plot, set->ranked[i]);
	if (nr_other) {
		char text[64];

		snprintf(text, sizeof(text), "%" PRIu64 " from other stacks", nr_other);
		draw_legend(program, plot, LEAK_SET_RANKS, text);
	}
	fputc('\n', program);
}

static int write_program(FILE *program, const struct leak_plot *plot, const char *headline,
			 const char *caveats)
{
	plot_output_begin(&plot->output, program, headline);
	write_title(program, &plot->output, headline, caveats);
	leak_axes_write(&plot->axes, &plot->set.summary, program);
	for (int rank = 0; rank <= LEAK_SET_RANKS; rank++)
		write_points(program, plot, rank);
	if (is_dumb(plot)) {
		fputs("set key below left Left reverse maxcols 1\n", program);
	} else {
		fputs("set key below left Left reverse maxcols 2 samplen 1 width 2 height 1\nset border 11\n"
		      "set grid xtics ytics linetype 1 linewidth 1 linecolor rgb '#e4e4e4'\n",
		      program);
		int err = write_recurring_sizes(program, plot);
		if (err)
			return err;
	}
	if (plot->set.nr_points == 0)
		fprintf(program, "set label 'nothing leaked' at graph 0.5,0.5 center%s\n",
			is_dumb(plot) ? "" : " font ',20'");
	write_plot_command(program, plot);
	return 0;
}

/* Draws in a window, until that is closed or a signal ends us. */
static int draw_in_window(const struct leak_plot *plot, const char *headline, const char *caveats)
{
	_cleanup_close_ int signal_fd = end_signals_open();
	struct gnuplot gnuplot = {0};

	if (signal_fd < 0)
		return signal_fd;
	int err = gnuplot_start(&gnuplot, true);
	if (err)
		return err;
	err = write_program(gnuplot.program, plot, headline, caveats);
	if (err) {
		gnuplot_stop(&gnuplot);
		return err;
	}
	return gnuplot_finish_window(&gnuplot, signal_fd);
}

/* Draws, and copies what gnuplot wrote to @output_fd. */
static int draw_to_file(const struct leak_plot *plot, const char *headline, const char *caveats,
			int output_fd)
{
	struct gnuplot gnuplot = {0};

	int err = gnuplot_start(&gnuplot, false);
	if (err)
		return err;
	err = write_program(gnuplot.program, plot, headline, caveats);
	if (err) {
		gnuplot_stop(&gnuplot);
		return err;
	}
	return gnuplot_finish(&gnuplot, output_fd);
}

/* Draws to where the output goes. */
static int draw(const struct leak_plot *plot)
{
	_cleanup_free_ char *headline = text_of(print_headline, plot);
	_cleanup_free_ char *caveats = text_of(print_caveats, plot);
	_cleanup_close_ int file_fd = -1;

	if (!headline || !caveats) {
		diag_error("cannot draw the plot: out of memory");
		return -ENOMEM;
	}
	if (plot->output.kind == PLOT_OUTPUT_WINDOW)
		return draw_in_window(plot, headline, caveats);
	if (is_dumb(plot))
		return draw_to_file(plot, headline, caveats, STDOUT_FILENO);
	file_fd = output_file_open(plot->output.path);
	if (file_fd < 0)
		return file_fd;
	return draw_to_file(plot, headline, caveats, file_fd);
}

static int choose_nr_ranks(const struct leak_plot *plot)
{
	int max = is_dumb(plot) ? DUMB_RANKS : LEAK_SET_RANKS, nr = 0;

	while (nr < max && plot->set.ranked[nr])
		nr++;
	return nr;
}

int leak_plot_run(const struct leak_plot_options *options)
{
	struct leak_plot plot = {.options = options};

	int err = leak_set_init(&plot.set, options->input,
				options->size_text ? &options->size : NULL);
	if (err)
		return err;
	err = plot_output_choose(options->output, options->term, &plot.output);
	if (!err && plot.set.nr_points == 0) {
		_cleanup_free_ char *headline = text_of(print_headline, &plot);

		diag_note("%s", headline ? headline : "nothing to plot");
		if (!plot_output_is_file(&plot.output))
			goto out;
	}
	if (!err && plot.output.kind == PLOT_OUTPUT_NONE) {
		diag_error("there is no display and standard output is no terminal; write a "
			   "picture with -o FILE.png, or use --term dumb");
		err = -ENODEV;
	}
	if (!err) {
		plot.axes = leak_axes_choose(&plot.set, options->scale, options->by_event);
		plot.nr_ranks = choose_nr_ranks(&plot);
		err = draw(&plot);
	}
out:
	leak_set_deinit(&plot.set);
	return err;
}
