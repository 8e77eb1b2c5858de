/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/leakscan_options.h"

#include "common/diag.h"
#include "common/options.h"
#include "common/scope.h"

#include <errno.h>
#include <string.h>

#define PAUSE_LIMIT_MS 500

#define FIELD(field)   OPTION_FIELD(struct leakscan_options, field)

static int parse_why(void *context, const struct option_row *row, const char *text)
{
	struct leakscan_options *options = context;
	char *end;

	errno = 0;
	options->why = strtoull(text, &end, 16);
	if (strncmp(text, "0x", 2) != 0 || end == text + 2 || *end || errno)
		return options_reject(row, text);
	options->has_why = true;
	return 0;
}

static const struct option_word formats[] = {{"json", LEAKSCAN_JSON}, {NULL, 0}};

static const struct option_row rows[] = {
	{.help = "What is scanned:"},
	{"pid", 'p', OPTION_NUMBER, "PID", "a running process", FIELD(pid), .min = 1,
	 .max = INT32_MAX, .completes = OPTION_COMPLETES_PIDS},
	{"core", 0, OPTION_TEXT, "FILE", "a core file, of the kernel or of gcore", FIELD(core),
	 .completes = OPTION_COMPLETES_FILES},
	{"pause-limit", 0, OPTION_TIME, "TIME",
	 "let the process go after TIME (2, 300ms), with or without a result; 500ms unless given",
	 FIELD(pause_limit_ns), .min = 1000000},
	{"once", 0, OPTION_FLAG, .help = "look once, not twice; no block is called lost then",
	 FIELD(once)},
	{"stop", 0, OPTION_FLAG, .help = "stop the process even if it sleeps", FIELD(stop)},
	{.help = "What is shown:"},
	{"blocks", 0, OPTION_FLAG, .help = "a line for each block in use", FIELD(blocks)},
	{"not-held", 0, OPTION_FLAG, .help = "with --blocks: only blocks that are not held",
	 FIELD(without_held)},
	{"traced", 0, OPTION_NUMBER, "FD",
	 "with --not-held, for leakrec: its list of blocks is in the file with this descriptor",
	 FIELD(traced), .min = 3, .max = INT32_MAX},
	{"why", 0, OPTION_PARSED, "0xADDRESS", "how the program gets to the block at ADDRESS",
	 .parse = parse_why, .takes = "an address like 0x55d2c0a8"},
	{"all", 'a', OPTION_FLAG, .help = "every row, not the ten largest", FIELD(all)},
	{"format", 0, OPTION_WORD, "FORMAT", "another format than the screen: json", FIELD(format),
	 .words = formats},
	{"diff", 0, OPTION_TEXT, "BEFORE",
	 "what grew since BEFORE, a file that --format json wrote of this process", FIELD(diff),
	 .completes = OPTION_COMPLETES_FILES},
	{"other-process", 0, OPTION_FLAG, .help = "with --diff: BEFORE may be of another process",
	 FIELD(other_process)},
	{"recording", 0, OPTION_TEXT, "FILE",
	 "what has become of the blocks that FILE, a recording of this process, held at its end",
	 FIELD(recording), .completes = OPTION_COMPLETES_FILES},
	{"output", 'o', OPTION_TEXT, "FILE", "write FILE, not standard output", FIELD(output),
	 .completes = OPTION_COMPLETES_FILES},
};

static const struct option_table table = {
	.tool = "leakscan",
	.synopsis = "leakscan -p PID [OPTION...]\n"
		    "leakscan --core FILE [OPTION...]",
	.about = "Shows what is in the heap of a process, and which blocks nothing points to any "
		 "more, without a recording: also what was allocated long ago. Unless it sleeps, "
		 "the process is stopped while its memory is copied.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

static int bad_usage(const char *what)
{
	diag_error("%s; see leakscan --help", what);
	return -EINVAL;
}

int leakscan_options_parse(int argc, char **argv, struct leakscan_options *options)
{
	struct option_result result;
	int err;

	*options = (struct leakscan_options){.pause_limit_ns = PAUSE_LIMIT_MS * 1000000ull};
	err = options_parse(&table, argc, argv, options, &result);
	if (err)
		return err;
	if (result.nr_operands)
		return bad_usage("leakscan takes options only");
	if (!options->pid == !options->core)
		return bad_usage("give a process (-p PID) or a core file (--core FILE)");
	if (options->core &&
	    (options->once || options->stop || options_has(&table, &result, "pause-limit")))
		return bad_usage("--once, --stop and --pause-limit are for running processes");
	if (options->without_held && !options->blocks)
		return bad_usage("--not-held goes with --blocks");
	if (options->traced && !options->without_held)
		return bad_usage("--traced goes with --not-held");
	if (options->blocks + options->has_why + (options->format != 0) +
		    (options->all || options->diff) >
	    1)
		return bad_usage(
			"--blocks, --why, --format, and --diff or --all, exclude each other");
	if (options->recording && (options->core || options->without_held || options->has_why ||
				   options->format || options->diff))
		return bad_usage("--recording goes with -p PID, and with --blocks or --all only");
	if (options->other_process && !options->diff)
		return bad_usage("--other-process goes with --diff");
	if (options->diff && options->core && !options->other_process)
		return bad_usage("a core file does not say which process it is of: --diff needs "
				 "--other-process");
	return 0;
}
