/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/leakplot_options.h"

#include "common/diag.h"
#include "common/options.h"
#include "common/scope.h"
#include "plot/gnuplot/plot_output.h"

#include <errno.h>
#include <limits.h>

#define INTERVAL_MS_DEFAULT 1000
#define INTERVAL_MS_MIN	    10
#define INTERVAL_MS_MAX	    (24 * 3600 * 1000)

/* The plots that an option applies to. */
enum {
	FOR_LEAKS = 1 << 0,  /* all plots of a file */
	FOR_POINTS = 1 << 1, /* the plot with a point per leak */
	FOR_MEMORY = 1 << 2, /* --mem */
};

/* A value of --plot that is not an enum history_plot_kind. */
#define PLOT_LEAKS (HISTORY_LIFETIMES + 1)

/* All options as given, before the check which of them go together. */
struct command_line {
	struct leak_plot_options leaks;
	struct memory_plot_options memory;
	unsigned int plot; /* enum history_plot_kind, or PLOT_LEAKS */
	const char *input, *output, *term, *save;
	const char *leaks_option;  /* an option that was given and applies only to files of leaks */
	const char *points_option; /* likewise, to the plot with a point per leak only */
	const char *memory_option; /* likewise, to --mem only */
};

static int bad_usage(const char *what, const char *text)
{
	diag_error("%s%s; see leakplot --help", what, text);
	return -EINVAL;
}

static int parse_output(void *options, const struct option_row *row, const char *text)
{
	struct command_line *line = options;

	if (!plot_output_knows_suffix(text))
		return bad_usage("a picture's name ends in .png, .svg or .pdf: ", text);
	line->output = text;
	return 0;
}

static int parse_save(void *options, const struct option_row *row, const char *text)
{
	struct command_line *line = options;

	if (!*text)
		return bad_usage("--save takes a directory", "");
	line->save = text;
	return 0;
}

static int parse_size(void *options, const struct option_row *row, const char *text)
{
	struct command_line *line = options;

	if (size_range_parse(text, &line->leaks.size))
		return options_reject(row, text);
	line->leaks.size_text = text;
	return 0;
}

static int parse_scale(void *options, const struct option_row *row, const char *text)
{
	struct command_line *line = options;

	line->leaks.scale = strcmp(row->name, "log") == 0 ? LEAK_SIZE_LOG : LEAK_SIZE_LINEAR;
	return 0;
}

#define FIELD(field) OPTION_FIELD(struct command_line, field)

static const struct option_word plot_words[] = {{"leaks", PLOT_LEAKS},
						{"held", HISTORY_HELD},
						{"growth", HISTORY_GROWTH},
						{"lifetimes", HISTORY_LIFETIMES},
						{0}};
static const struct option_word colour_words[] = {
	{"stack", LEAK_COLOUR_STACK}, {"verdict", LEAK_COLOUR_VERDICT}, {0}};
static const struct option_word term_words[] = {
	{"dumb", 0}, {"qt", 0}, {"wxt", 0}, {"x11", 0}, {0}};

static const struct option_row rows[] = {
	{"plot", 0, OPTION_WORD, "WHAT",
	 "leaks: a point per held block, the default; held: what was held over time, by stack; "
	 "growth: the stacks that grow, each by itself; lifetimes: a histogram of how long blocks "
	 "live",
	 FIELD(plot), .words = plot_words, .groups = FOR_LEAKS},
	{"input", 'i', OPTION_TEXT, "FILE", "read FILE, not standard input", FIELD(input),
	 .completes = OPTION_COMPLETES_FILES, .groups = FOR_LEAKS},
	{"output", 'o', OPTION_PARSED, "FILE", "write a picture: FILE ends in .png, .svg or .pdf",
	 .parse = parse_output, .completes = OPTION_COMPLETES_FILES},
	{"term", 0, OPTION_TEXT, "TERM",
	 "draw in the terminal (dumb), or in a window of gnuplot's terminal TERM (qt, wxt, x11)",
	 FIELD(term), .words = term_words},
	{"save", 0, OPTION_PARSED, "DIR", "keep the plot's data and its gnuplot program in DIR",
	 .parse = parse_save, .completes = OPTION_COMPLETES_DIRECTORIES},
	{"colour", 0, OPTION_WORD, "WHAT", "colour the points by stack, or by verdict",
	 FIELD(leaks.colour), .alias = "color", .words = colour_words, .groups = FOR_POINTS},
	{"by-event", 0, OPTION_FLAG,
	 .help = "event numbers instead of times on the horizontal axis", FIELD(leaks.by_event),
	 .groups = FOR_POINTS},
	{"size", 's', OPTION_PARSED, "SIZE|MIN..MAX",
	 "only blocks of this size (3k), or in a range with both ends included (1000..2000)",
	 .parse = parse_size, .takes = OPTION_TAKES_SIZE_RANGE, .groups = FOR_POINTS},
	{"linear", 0, OPTION_PARSED, .help = "a linear size axis", .parse = parse_scale,
	 .groups = FOR_POINTS},
	{"log", 0, OPTION_PARSED,
	 .help = "a logarithmic size axis; without --linear and --log, it is logarithmic where "
		 "sizes differ by more than a factor of 100",
	 .parse = parse_scale, .groups = FOR_POINTS},
	{"mem", 0, OPTION_NUMBER, "PID", "plot the process's memory, until it exits or Ctrl-C",
	 FIELD(memory.pid), .min = 1, .max = INT_MAX, .takes = "a process id",
	 .completes = OPTION_COMPLETES_PIDS, .groups = FOR_MEMORY},
	{"interval", 0, OPTION_NUMBER, "MS",
	 "with --mem: milliseconds from one sample to the next [1000]", FIELD(memory.interval_ms),
	 .min = INTERVAL_MS_MIN, .max = INTERVAL_MS_MAX,
	 .takes = "milliseconds from 10 to 86400000 (a day)", .groups = FOR_MEMORY},
};

static const struct option_table table = {
	.tool = "leakplot",
	.synopsis = "leakplot [OPTION...] [LEAKS]\n"
		    "leakplot --mem PID [OPTION...]",
	.about =
		"Plots the blocks that leakparse lists as held, or a process's memory as time "
		"passes. LEAKS is a file that leakparse wrote; without it, or with -, standard "
		"input is read. "
		"Each block is a point, its size against its time, unless --plot says what else to "
		"show. The plot opens in a window where there is a display; otherwise it is drawn "
		"in the terminal.",
	.notes = "Exit status: 0 done, 1 failed, 2 bad usage. See leakplot(1).",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

static int combine_leaks(const struct command_line *line, const char *input,
			 struct leakplot_options *ret)
{
	bool is_history = line->plot != PLOT_LEAKS;

	if (is_history && line->points_option)
		return bad_usage("only --plot leaks takes --", line->points_option);
	*ret = (struct leakplot_options){
		.action = is_history ? LEAKPLOT_HISTORY : LEAKPLOT_LEAKS,
		.output = line->output,
		.term = line->term,
		.leaks = line->leaks,
		.history = {input, line->save,
			    is_history ? (enum history_plot_kind)line->plot : HISTORY_HELD},
	};
	ret->leaks.input = input;
	return 0;
}

/* Checks which options go together. */
static int combine(struct command_line *line, char **files, size_t nr_files,
		   struct leakplot_options *ret)
{
	if (line->output && line->term)
		return bad_usage("give either --output or --term", "");
	if (line->memory.pid) {
		if (line->leaks_option || line->points_option)
			return bad_usage("--mem does not go with --",
					 line->leaks_option ? line->leaks_option
							    : line->points_option);
		if (nr_files)
			return bad_usage("--mem reads no file; unexpected argument ", files[0]);
		*ret = (struct leakplot_options){.action = LEAKPLOT_MEMORY, .memory = line->memory};
		return 0;
	}
	if (line->memory_option)
		return bad_usage("only --mem takes --", line->memory_option);
	if (nr_files + (line->input != NULL) > 1)
		return bad_usage("only one file can be plotted; unexpected argument ",
				 files[nr_files - 1]);
	if (nr_files)
		line->input = files[0];
	if (!line->input && isatty(STDIN_FILENO))
		return bad_usage("name a file that leakparse wrote, or --mem PID", "");
	return combine_leaks(line, line->input ? line->input : "-", ret);
}

static const char *name_of(const struct option_row *row)
{
	return row ? row->name : NULL;
}

int leakplot_options_parse(int argc, char **argv, struct leakplot_options *ret)
{
	struct command_line line = {
		.plot = PLOT_LEAKS,
		.memory.interval_ms = INTERVAL_MS_DEFAULT,
	};
	struct option_result result;
	int err = options_parse(&table, argc, argv, &line, &result);

	if (err)
		return err;
	line.leaks_option = name_of(options_given_in(&table, &result, FOR_LEAKS));
	line.points_option = name_of(options_given_in(&table, &result, FOR_POINTS));
	line.memory_option = name_of(options_given_in(&table, &result, FOR_MEMORY));
	line.memory.output = line.output;
	line.memory.term = line.term;
	line.leaks.save = line.memory.save = line.save;
	return combine(&line, result.operands, result.nr_operands, ret);
}
