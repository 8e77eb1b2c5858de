/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/leakplot_options.h"

#include "common/diag.h"
#include "common/scope.h"
#include "plot/gnuplot/plot_output.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>

#define INTERVAL_MS_DEFAULT 1000
#define INTERVAL_MS_MIN	    10
#define INTERVAL_MS_MAX	    (24 * 3600 * 1000)

static const char usage_text[] =
	"Usage: leakplot [OPTION...] [LEAKS]\n"
	"       leakplot --mem PID [OPTION...]\n"
	"Plots the leaks that leakparse found, or a process's memory as time passes.\n"
	"\n"
	"LEAKS is a file that leakparse wrote; without it, or with -, standard input is read.\n"
	"Each leak is a point: its size against its time, unless --plot says what else to show.\n"
	"The plot opens in a window where there is a display, else it is drawn in the terminal.\n"
	"\n"
	"      --plot WHAT       leaks: a point a leak, the default; held: what was held over\n"
	"                        time, by stack; growth: the stacks that grow, each by itself;\n"
	"                        lifetimes: a histogram of how long blocks live\n"
	"  -o, --output FILE     write a picture: FILE ends in .png, .svg or .pdf\n"
	"      --term TERM       draw in the terminal (dumb) or in a window of gnuplot's\n"
	"                        terminal TERM (qt, wxt, x11)\n"
	"      --save DIR        keep the plot's data and its gnuplot program in DIR\n"
	"      --colour WHAT     points by stack, or by verdict (also --color)\n"
	"      --by-event        sizes against the event's number instead of its time\n"
	"      --size RANGE      only leaks of this size: 3k, or 1000..2000\n"
	"      --linear, --log   the size axis; default: logarithmic where sizes differ by\n"
	"                        more than a factor of 100\n"
	"      --mem PID         plot the process's memory, until it exits or Ctrl-C\n"
	"      --interval MS     with --mem: milliseconds from one look to the next (1000)\n"
	"  -h, --help            print this and exit\n"
	"  -V, --version         print the version and exit\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 bad usage. See leakplot(1).\n";

enum long_option {
	OPTION_TERM = CHAR_MAX + 1,
	OPTION_PLOT,
	OPTION_SAVE,
	OPTION_COLOUR,
	OPTION_BY_EVENT,
	OPTION_SIZE,
	OPTION_LINEAR,
	OPTION_LOG,
	OPTION_MEM,
	OPTION_INTERVAL,
};

static const struct option long_options[] = {
	{"plot", required_argument, NULL, OPTION_PLOT},
	{"output", required_argument, NULL, 'o'},
	{"term", required_argument, NULL, OPTION_TERM},
	{"save", required_argument, NULL, OPTION_SAVE},
	{"colour", required_argument, NULL, OPTION_COLOUR},
	{"color", required_argument, NULL, OPTION_COLOUR},
	{"by-event", no_argument, NULL, OPTION_BY_EVENT},
	{"size", required_argument, NULL, OPTION_SIZE},
	{"linear", no_argument, NULL, OPTION_LINEAR},
	{"log", no_argument, NULL, OPTION_LOG},
	{"mem", required_argument, NULL, OPTION_MEM},
	{"interval", required_argument, NULL, OPTION_INTERVAL},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

/* What the options say, before it is known which of them belong together. */
struct command_line {
	struct leak_plot_options leaks;
	struct memory_plot_options memory;
	bool is_history; /* --plot of something else than leaks */
	enum history_plot_kind history;
	const char *leaks_option;  /* one that was given and is for leaks only */
	const char *points_option; /* likewise, for the plot of a point a leak */
	const char *memory_option; /* likewise for --mem */
};

static int bad_usage(const char *what, const char *text)
{
	diag_error("%s%s; see leakplot --help", what, text);
	return -EINVAL;
}

static int parse_integer(const char *text, long min, long max, long *ret)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*ret = strtol(text, &end, 10);
	return errno || *end || *ret < min || *ret > max ? -EINVAL : 0;
}

static int parse_leaks_option(struct leak_plot_options *leaks, int option, const char *argument)
{
	switch (option) {
	case OPTION_COLOUR:
		if (strcmp(argument, "stack") != 0 && strcmp(argument, "verdict") != 0)
			return bad_usage("--colour takes stack or verdict, not ", argument);
		leaks->colour =
			strcmp(argument, "verdict") == 0 ? LEAK_COLOUR_VERDICT : LEAK_COLOUR_STACK;
		break;
	case OPTION_BY_EVENT:
		leaks->by_event = true;
		break;
	case OPTION_SIZE:
		if (size_range_parse(argument, &leaks->size))
			return bad_usage(
				"--size takes a size like 3k or a range like 1000..2000, not ",
				argument);
		leaks->size_text = argument;
		break;
	case OPTION_LINEAR:
		leaks->scale = LEAK_SIZE_LINEAR;
		break;
	case OPTION_LOG:
		leaks->scale = LEAK_SIZE_LOG;
		break;
	}
	return 0;
}

static int parse_plot(struct command_line *line, const char *argument)
{
	static const char *const kinds[] = {
		[HISTORY_HELD] = "held",
		[HISTORY_GROWTH] = "growth",
		[HISTORY_LIFETIMES] = "lifetimes",
	};

	line->is_history = false;
	if (strcmp(argument, "leaks") == 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(argument, kinds[i]) == 0) {
			line->history = (enum history_plot_kind)i;
			line->is_history = true;
			return 0;
		}
	}
	return bad_usage("--plot takes leaks, held, growth or lifetimes, not ", argument);
}

static int parse_memory_option(struct memory_plot_options *memory, int option, const char *argument)
{
	long number;

	if (option == OPTION_MEM) {
		if (parse_integer(argument, 1, INT_MAX, &number))
			return bad_usage("--mem takes a process's PID, not ", argument);
		memory->pid = (pid_t)number;
		return 0;
	}
	if (parse_integer(argument, INTERVAL_MS_MIN, INTERVAL_MS_MAX, &number))
		return bad_usage("--interval takes milliseconds from 10 to a day's, not ",
				 argument);
	memory->interval_ms = (unsigned int)number;
	return 0;
}

/* Options for both kinds of plot. */
static int parse_output_option(struct command_line *line, int option, const char *argument)
{
	if (option == 'o') {
		if (!plot_output_knows_suffix(argument))
			return bad_usage("a picture's name ends in .png, .svg or .pdf: ", argument);
		line->leaks.output = line->memory.output = argument;
		return 0;
	}
	if (option == OPTION_SAVE) {
		if (!*argument)
			return bad_usage("--save takes a directory", "");
		line->leaks.save = line->memory.save = argument;
		return 0;
	}
	if (!plot_output_knows_term(argument))
		return bad_usage("--term takes dumb, qt, wxt or x11, not ", argument);
	line->leaks.term = line->memory.term = argument;
	return 0;
}

static int combine_leaks(const struct command_line *line, const char *input,
			 struct leakplot_options *ret)
{
	if (line->is_history && line->points_option)
		return bad_usage("only a plot of leaks has --", line->points_option);
	*ret = (struct leakplot_options){
		.action = line->is_history ? LEAKPLOT_HISTORY : LEAKPLOT_LEAKS,
		.leaks = line->leaks,
		.history = {input, line->leaks.output, line->leaks.term, line->leaks.save,
			    line->history},
	};
	ret->leaks.input = input;
	return 0;
}

/* Checks what was given together. */
static int combine(const struct command_line *line, char **files, int nr_files,
		   struct leakplot_options *ret)
{
	if (line->leaks.output && line->leaks.term)
		return bad_usage("--output and --term exclude each other", "");
	if (line->memory.pid) {
		if (line->leaks_option || line->points_option)
			return bad_usage("with --mem there is no --",
					 line->leaks_option ? line->leaks_option
							    : line->points_option);
		if (nr_files)
			return bad_usage("--mem reads no file: ", files[0]);
		*ret = (struct leakplot_options){.action = LEAKPLOT_MEMORY, .memory = line->memory};
		return 0;
	}
	if (line->memory_option)
		return bad_usage("without --mem there is no --", line->memory_option);
	if (nr_files > 1)
		return bad_usage("only one file is plotted at a time, what is ", files[1]);
	if (nr_files == 0 && isatty(STDIN_FILENO))
		return bad_usage("name a file that leakparse wrote, or --mem PID", "");
	return combine_leaks(line, nr_files ? files[0] : "-", ret);
}

int leakplot_options_parse(int argc, char **argv, struct leakplot_options *ret)
{
	struct command_line line = {.memory.interval_ms = INTERVAL_MS_DEFAULT};
	int option, index, err = 0;

	while (!err && (option = getopt_long(argc, argv, "o:hV", long_options, &index)) != -1) {
		switch (option) {
		case 'h':
			fputs(usage_text, stdout);
			ret->action = LEAKPLOT_NOTHING;
			return 0;
		case 'V':
			puts("leakplot " LEAKTOOLS_VERSION);
			ret->action = LEAKPLOT_NOTHING;
			return 0;
		case 'o':
		case OPTION_SAVE:
		case OPTION_TERM:
			err = parse_output_option(&line, option, optarg);
			break;
		case OPTION_PLOT:
			line.leaks_option = long_options[index].name;
			err = parse_plot(&line, optarg);
			break;
		case OPTION_COLOUR:
		case OPTION_BY_EVENT:
		case OPTION_SIZE:
		case OPTION_LINEAR:
		case OPTION_LOG:
			line.points_option = long_options[index].name;
			err = parse_leaks_option(&line.leaks, option, optarg);
			break;
		case OPTION_MEM:
		case OPTION_INTERVAL:
			line.memory_option = long_options[index].name;
			err = parse_memory_option(&line.memory, option, optarg);
			break;
		default:
			/* getopt_long() has said what is wrong. */
			return -EINVAL;
		}
	}
	return err ? err : combine(&line, argv + optind, argc - optind, ret);
}
