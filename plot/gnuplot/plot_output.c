/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/gnuplot/plot_output.h"

#include "common/diag.h"
#include "common/scope.h"
#include "plot/gnuplot/gnuplot.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#define PICTURE_WIDTH  1280
#define PICTURE_HEIGHT 760
#define DUMB_COLUMNS   80
#define DUMB_ROWS      24
#define DUMB_SIDE_MIN  20
#define DUMB_SIDE_MAX  400
#define TITLE_CHARS    110
#define LEGEND_CHARS   120
/*
 * The columns to the left of a line of the legend, with the labels of tics; and the line's minimum
 * width.
 */
#define DUMB_LEGEND_BEGIN 24
#define DUMB_LEGEND_MIN	  8

static const struct picture_kind {
	const char *suffix;
	enum plot_output_kind kind;
	const char *terminal;
} picture_kinds[] = {
	{".png", PLOT_OUTPUT_PNG, "pngcairo"},
	{".svg", PLOT_OUTPUT_SVG, "svg"},
	{".pdf", PLOT_OUTPUT_PDF, "pdfcairo"},
};

/* In order of preference. */
static const char *const window_terminals[] = {"qt", "wxt", "x11"};

/* The x11 terminal has only X core fonts, and fails if one is missing. */
static bool has_x_fonts(const struct plot_output *output)
{
	return strcmp(output->terminal, "x11") == 0;
}

static const struct picture_kind *find_picture_kind(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(picture_kinds); i++) {
		size_t suffix_len = strlen(picture_kinds[i].suffix);

		if (len > suffix_len &&
		    strcasecmp(path + len - suffix_len, picture_kinds[i].suffix) == 0)
			return &picture_kinds[i];
	}
	return NULL;
}

bool plot_output_knows_suffix(const char *path)
{
	return find_picture_kind(path) != NULL;
}

const char *plot_output_suffix(const struct plot_output *output)
{
	for (size_t i = 0; i < ARRAY_SIZE(picture_kinds); i++)
		if (picture_kinds[i].kind == output->kind)
			return picture_kinds[i].suffix;
	return NULL;
}

static bool has_terminal(const char *terminals, const char *name)
{
	char word[32];

	snprintf(word, sizeof(word), " %s ", name);
	return strstr(terminals, word) != NULL;
}

static bool has_display(void)
{
	const char *x11 = getenv("DISPLAY");
	const char *wayland = getenv("WAYLAND_DISPLAY");

	return (x11 && *x11) || (wayland && *wayland);
}

/* The output without -o and --term. */
static struct plot_output choose_default(const char *terminals)
{
	struct plot_output output = {.kind = PLOT_OUTPUT_NONE};

	if (has_display()) {
		for (size_t i = 0; i < ARRAY_SIZE(window_terminals); i++)
			if (has_terminal(terminals, window_terminals[i]))
				return (struct plot_output){.kind = PLOT_OUTPUT_WINDOW,
							    .terminal = window_terminals[i]};
		diag_note(
			"this gnuplot cannot open windows; install one that can: apt-get install gnuplot-qt");
	}
	if (isatty(STDOUT_FILENO))
		output = (struct plot_output){.kind = PLOT_OUTPUT_DUMB, .terminal = "dumb"};
	return output;
}

int plot_output_choose(const char *path, const char *term, struct plot_output *ret)
{
	_cleanup_free_ char *terminals = NULL;
	struct plot_output output;

	int err = gnuplot_terminals(&terminals);
	if (err)
		return err;
	if (path) {
		const struct picture_kind *picture = find_picture_kind(path);

		if (!picture) {
			diag_error("cannot tell the format of picture %s; use a name that ends in "
				   ".png, .svg or .pdf",
				   path);
			return -EINVAL;
		}
		output = (struct plot_output){picture->kind, path, picture->terminal};
	} else if (term && strcmp(term, "dumb") == 0) {
		output = (struct plot_output){.kind = PLOT_OUTPUT_DUMB, .terminal = "dumb"};
	} else if (term) {
		output = (struct plot_output){.kind = PLOT_OUTPUT_WINDOW, .terminal = term};
	} else {
		output = choose_default(terminals);
	}
	if (output.terminal && !has_terminal(terminals, output.terminal)) {
		diag_error("this gnuplot has no terminal %s; apt-get install %s", output.terminal,
			   output.kind == PLOT_OUTPUT_WINDOW ? "gnuplot-qt or gnuplot-x11"
							     : "gnuplot-nox");
		return -ENODEV;
	}
	*ret = output;
	return 0;
}

static int bounded_side(unsigned int side)
{
	if (side < DUMB_SIDE_MIN)
		return DUMB_SIDE_MIN;
	return side > DUMB_SIDE_MAX ? DUMB_SIDE_MAX : (int)side;
}

/* The size of the terminal, less the line of the shell's prompt. */
static void dumb_size(int *ret_columns, int *ret_rows)
{
	struct winsize size;

	*ret_columns = DUMB_COLUMNS;
	*ret_rows = DUMB_ROWS;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && size.ws_row > 2) {
		*ret_columns = bounded_side(size.ws_col - 1u);
		*ret_rows = bounded_side(size.ws_row - 2u);
	}
}

void plot_output_print_escaped(const struct plot_output *output, FILE *program, const char *text,
			       size_t max_chars)
{
	size_t chars = 0;

	fputc('"', program);
	for (const char *c = text; *c; c++) {
		/* In UTF-8, bytes 10xxxxxx continue a character. */
		if (((unsigned char)*c & 0xc0) != 0x80 && ++chars > max_chars) {
			fputs("...", program);
			break;
		}
		/* gnuplot expands commands and macros in strings before escapes. */
		if (*c == '`' || *c == '@')
			fprintf(program, "\\%o", (unsigned int)*c);
		else if (output->kind == PLOT_OUTPUT_SVG && strncmp(c, "&#x", 3) == 0)
			fputs("&#x26;", program);
		else
			fprintf(program, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	}
	fputc('"', program);
}

void plot_output_print_string(const struct plot_output *output, FILE *program, const char *text,
			      size_t max_chars)
{
	_cleanup_free_ char *escaped = NULL;
	size_t size;
	FILE *stream = open_memstream(&escaped, &size);

	if (stream) {
		diag_print_escaped(stream, text, NULL);
		fclose(stream);
	}
	plot_output_print_escaped(output, program, escaped ? escaped : "", max_chars);
}

void plot_output_begin(const struct plot_output *output, FILE *program, const char *title)
{
	int columns, rows;

	if (!has_x_fonts(output))
		fputs("set encoding utf8\n", program);
	/* noenhanced: takes ^ _ { } @ & ~ in names literally. */
	switch (output->kind) {
	case PLOT_OUTPUT_NONE:
		return;
	case PLOT_OUTPUT_WINDOW:
		fprintf(program, "set terminal %s size %d,%d noenhanced title ", output->terminal,
			PICTURE_WIDTH, PICTURE_HEIGHT);
		plot_output_print_string(output, program, title, 60);
		fputc('\n', program);
		break;
	case PLOT_OUTPUT_DUMB:
		dumb_size(&columns, &rows);
		fprintf(program, "set terminal dumb noenhanced mono size %d,%d\n", columns, rows);
		break;
	case PLOT_OUTPUT_PNG:
		fprintf(program,
			"set terminal pngcairo size %d,%d noenhanced background rgb 'white' "
			"font 'sans,12'\n",
			PICTURE_WIDTH, PICTURE_HEIGHT);
		break;
	case PLOT_OUTPUT_SVG:
		/* standalone: includes the script, so that zooming works in any browser. */
		fprintf(program,
			"set terminal svg size %d,%d dynamic mouse standalone noenhanced "
			"background rgb 'white' font 'sans-serif,14'\n",
			PICTURE_WIDTH, PICTURE_HEIGHT);
		break;
	case PLOT_OUTPUT_PDF:
		fputs("set terminal pdfcairo size 29.7cm,17.6cm noenhanced background rgb 'white' "
		      "font 'sans,11'\n",
		      program);
		break;
	}
}

void plot_output_end_title(const struct plot_output *output, FILE *program)
{
	if (output->kind == PLOT_OUTPUT_DUMB)
		fputs(".\"\\n \"", program);
	else if (output->kind == PLOT_OUTPUT_SVG)
		/* gnuplot 5.4's svg.trm takes "sans-serif:Bold" for a font's name. */
		fputs(" font 'sans-serif,17'", program);
	else if (!has_x_fonts(output))
		fputs(" font 'sans-serif:Bold'", program);
}

void plot_output_write_ylabel(const struct plot_output *output, FILE *program, const char *format,
			      ...)
{
	bool is_dumb = output->kind == PLOT_OUTPUT_DUMB;
	va_list args;

	fputs(is_dumb ? "set label 1 '" : "set ylabel '", program);
	va_start(args, format);
	vfprintf(program, format, args);
	va_end(args);
	fputs(is_dumb ? "' at graph 0, graph 1 offset character 0,1 left\n" : "'\n", program);
}

size_t plot_output_title_chars(const struct plot_output *output)
{
	int columns, rows;

	if (output->kind != PLOT_OUTPUT_DUMB)
		return TITLE_CHARS;
	dumb_size(&columns, &rows);
	return (size_t)columns - strlen("...");
}

size_t plot_output_legend_chars(const struct plot_output *output)
{
	int columns, rows;

	if (output->kind != PLOT_OUTPUT_DUMB)
		return LEGEND_CHARS;
	/* In a line without room, gnuplot overwrites the text with the sample. */
	dumb_size(&columns, &rows);
	return columns > DUMB_LEGEND_BEGIN + DUMB_LEGEND_MIN ? (size_t)(columns - DUMB_LEGEND_BEGIN)
							     : DUMB_LEGEND_MIN;
}

void plot_output_tell(const struct plot_output *output)
{
	diag_note("wrote %s", output->path);
}

void plot_output_write_style(const struct plot_output *output, FILE *program)
{
	fputs("set xtics nomirror\nset ytics nomirror\n", program);
	if (output->kind == PLOT_OUTPUT_DUMB) {
		fputs("set key below left Left reverse maxcols 1\n", program);
		return;
	}
	fputs("set key below left Left reverse maxcols 1 samplen 1 width 2 height 0.5\n"
	      "set border 3\nset style fill solid noborder\n"
	      "set grid xtics ytics linetype 1 linewidth 1 linecolor rgb '#e4e4e4'\n",
	      program);
}
