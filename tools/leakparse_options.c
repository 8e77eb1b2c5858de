/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/leakparse_options.h"

#include "common/diag.h"
#include "common/number.h"
#include "common/options.h"
#include "common/scope.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What options choose together. */
enum {
	CHOOSES_DIFF = 1 << 0,	/* changes, not what is held */
	CHOOSES_RANGE = 1 << 1, /* their range of time */
	SHAPES_TREE = 1 << 2,
	GOES_WITH_LIVE = 1 << 3, /* nothing else does */
};

static int parse_input(void *context, const struct option_row *row, const char *text)
{
	struct leakparse_options *options = context;

	options->inputs[options->nr_inputs++] = text;
	return 0;
}

static int parse_format(void *context, const struct option_row *row, const char *text)
{
	struct leakparse_options *options = context;

	options->format = report_format_find(text);
	return options->format || strcmp(text, "leaks") == 0 ? 0 : options_reject(row, text);
}

static int parse_at(void *context, const struct option_row *row, const char *text)
{
	struct leakparse_options *options = context;

	options->at_peak = strcmp(text, "peak") == 0;
	options->at_ns = 0;
	if (options->at_peak || strcmp(text, "end") == 0)
		return 0;
	if (number_parse_time(text, &options->at_ns))
		return options_reject(row, text);
	/* 0 means the end. No event is within 1 ns of the first. */
	options->at_ns += options->at_ns == 0;
	return 0;
}

static int parse_stack(void *context, const struct option_row *row, const char *text)
{
	struct leakparse_options *options = context;
	char why[128];
	int err;

	if (options->leaks.stack) {
		diag_error("--stack is given twice; join the patterns with |");
		return -EINVAL;
	}
	err = regcomp(&options->stack, text, REG_EXTENDED | REG_NOSUB);
	if (err) {
		regerror(err, &options->stack, why, sizeof(why));
		diag_error("--stack takes an extended regular expression, not \"%s\": %s", text,
			   why);
		return -EINVAL;
	}
	options->leaks.stack = &options->stack;
	return 0;
}

static int parse_threshold(void *context, const struct option_row *row, const char *text)
{
	struct leakparse_options *options = context;
	_cleanup_free_ char *number = strdup(text);
	size_t len = strlen(text);
	double percent;

	if (!number)
		return -ENOMEM;
	if (len && number[len - 1] == '%')
		number[len - 1] = '\0';
	if (number_parse_fraction(number, &percent) || percent > 100)
		return options_reject(row, text);
	options->tree.threshold_percent = percent;
	return 0;
}

static int parse_fail_on_leak(void *context, const struct option_row *row, const char *text)
{
	struct leakparse_options *options = context;
	_cleanup_free_ char *size = strdup(text ? text : "");
	char *per_second = size ? strstr(size, "/s") : NULL;

	if (!size)
		return -ENOMEM;
	options->limit = (struct leak_limit){.is_set = true, .is_rate = per_second != NULL};
	if (!text)
		return 0;
	if (per_second && strcmp(per_second, "/s") == 0)
		*per_second = '\0';
	return size_parse(size, &options->limit.bytes) ? options_reject(row, text) : 0;
}

static int parse_on_leak(void *context, const struct option_row *row, const char *text)
{
	struct leakparse_options *options = context;

	options->on_leak = text;
	return text[strspn(text, " \t\n")] ? 0 : options_reject(row, text);
}

static int parse_suppressions(void *context, const struct option_row *row, const char *text)
{
	struct leakparse_options *options = context;

	options->leaks.suppressions = &options->suppressions;
	return suppressions_read(&options->suppressions, text);
}

static const struct option_word order_words[] = {
	{"verdict", LEAK_ORDER_VERDICT}, {"size", LEAK_ORDER_SIZE}, {"time", LEAK_ORDER_TIME}, {0}};
static const struct option_word by_words[] = {
	{"function", TREE_BY_FUNCTION}, {"file", TREE_BY_FILE}, {"module", TREE_BY_MODULE},
	{"thread", TREE_BY_THREAD},	{"size", TREE_BY_SIZE}, {0}};
static const struct option_word verdict_words[] = {{"growth", 1u << VERDICT_GROWTH},
						   {"overdue", 1u << VERDICT_OVERDUE},
						   {"burst", 1u << VERDICT_BURST},
						   {"unclear", 1u << VERDICT_UNCLEAR},
						   {"plateau", 1u << VERDICT_PLATEAU},
						   {"start-up", 1u << VERDICT_STARTUP},
						   {"not-yet", 1u << VERDICT_NOT_YET},
						   {"at-exit", 1u << VERDICT_AT_EXIT},
						   {0}};
static const struct option_word reach_words[] = {
	{"lost", 1u << REACH_LOST | 1u << REACH_CYCLE | 1u << REACH_THROUGH},
	{"no-holder", 1u << REACH_NO_HOLDER},
	{"held", 1u << REACH_HELD},
	{"pointed-to", 1u << REACH_POINTED},
	{"possible", 1u << REACH_POSSIBLE},
	{"weak", 1u << REACH_WEAK},
	{"unknown", 1u << REACH_UNKNOWN},
	{"not-scanned", 1u << REACH_NOT_SCANNED},
	{0}};
/* report_format_find() gives each its meaning. */
#define FORMAT_WORD(name) {#name, 0},
static const struct option_word format_words[] = {REPORT_FORMATS(FORMAT_WORD){0}};

#define FIELD(field) OPTION_FIELD(struct leakparse_options, field)

static const struct option_row rows[] = {
	{"input", 'i', OPTION_PARSED, "FILE",
	 "read FILE, not standard input; several are one session's, in order", .parse = parse_input,
	 .completes = OPTION_COMPLETES_FILES},
	{"from-live", 0, OPTION_TEXT, "DIR",
	 "read the state that leakrec --live DIR writes while it records: print it, or with "
	 "--summary one screen about it",
	 FIELD(live_dir), .completes = OPTION_COMPLETES_DIRECTORIES, .groups = GOES_WITH_LIVE},
	{"output", 'o', OPTION_TEXT, "FILE", "write FILE, not standard output", FIELD(output),
	 .completes = OPTION_COMPLETES_FILES, .groups = GOES_WITH_LIVE},
	{"summary", 0, OPTION_FLAG, .help = "print one screen about what leaks", FIELD(summary),
	 .groups = GOES_WITH_LIVE},
	{"call-sites", 0, OPTION_NUMBER, "NR",
	 "print which calls allocate and release the blocks of row NR of --summary, with their "
	 "places in files",
	 FIELD(call_sites), .min = 1},
	{"format", 0, OPTION_PARSED, "FORMAT",
	 "another format than the leaks text: tree (for people), html (for a browser), json, csv, "
	 "folded (flame graphs), pprof, callgrind, massif, heaptrack, gprof2dot",
	 .parse = parse_format, .words = format_words},
	{"at", 0, OPTION_PARSED, "MOMENT",
	 "report what was held at that time since the recording's start, at the peak of all that was "
	 "held, or at the end [end]",
	 .parse = parse_at, .suggestions = "peak end",
	 .takes = "peak, end, seconds, or a time like 10ms, 5m or 2h"},
	{"diff", 0, OPTION_FLAG,
	 .help = "report what was added, less what was freed, between the marks that leakrec sets",
	 FIELD(diff), .groups = CHOOSES_DIFF},
	{"from", 0, OPTION_TIME, "TIME", "the same, from this time since the recording's start",
	 FIELD(from_ns), .groups = CHOOSES_DIFF | CHOOSES_RANGE},
	{"to", 0, OPTION_TIME, "TIME", "the same, up to this time since the recording's start",
	 FIELD(to_ns), .groups = CHOOSES_DIFF | CHOOSES_RANGE},
	{"every", 0, OPTION_TIME, "TIME",
	 "the same for each period of that length, while the recording comes in; with --summary, "
	 "redraw that screen instead; with --fail-on-leak or --on-leak, judge so often",
	 FIELD(every_ns), .min = 1},
	{"limit", 0, OPTION_NUMBER, "N", "only the first N stacks", FIELD(leaks.limit), .min = 1},
	{"order", 0, OPTION_WORD, "ORDER",
	 "verdict (real leaks first), size (those that hold most first), or time (the plain list, "
	 "block by block)",
	 FIELD(leaks.order), .words = order_words},
	{"list-unknown", 0, OPTION_FLAG,
	 .help = "also list frees of blocks whose allocation was not seen",
	 FIELD(leaks.list_unknown)},
	{"own-mappings", 0, OPTION_FLAG,
	 .help = "count what allocators, the loader and the C library have mapped for themselves "
		 "like the program's mappings (docs/mappings.md)",
	 FIELD(own_mappings)},
	{"symfs", 0, OPTION_DIRECTORY, "DIR", "look for the recorded files below DIR",
	 FIELD(stacks.symfs), .completes = OPTION_COMPLETES_DIRECTORIES},
	{"debug-dir", 0, OPTION_DIRECTORY, "DIR",
	 "look for separate debug files below DIR, before /usr/lib/debug", FIELD(stacks.debug_dir),
	 .completes = OPTION_COMPLETES_DIRECTORIES},

	{.help = "What to list:"},
	{"size", 's', OPTION_SIZE_RANGE, "SIZE|MIN..MAX",
	 "only leaks and unexpected operations of blocks of that size (3072, 3k), or of a range "
	 "with both ends included (4..8k)",
	 FIELD(size)},
	{"min-age", 0, OPTION_TIME, "TIME",
	 "only leaks of at least that age: seconds, or 10ms, 5m, 2h, 1d", FIELD(leaks.min_age_ns)},
	{"max-age", 0, OPTION_TIME, "TIME", "only leaks of at most that age",
	 FIELD(leaks.max_age_ns), .min = 1},
	{"stack", 0, OPTION_PARSED, "REGEX",
	 "only stacks with a function, file or module that matches", .parse = parse_stack},
	{"thread", 0, OPTION_TEXT, "THREAD",
	 "only what that thread allocated, by its number or name", FIELD(leaks.thread)},
	{"func", 0, OPTION_TEXT, "NAME",
	 "only what that function of the allocator allocated (calloc)", FIELD(leaks.function),
	 .suggestions =
		 "malloc calloc realloc aligned_alloc memalign posix_memalign valloc pvalloc"},
	{"kind", 0, OPTION_TEXT, "KIND",
	 "only resources of that kind (docs/resources.md), or memory", FIELD(leaks.kind)},
	{"verdict", 0, OPTION_WORD_SET, "LIST",
	 "only blocks of these verdicts: growth, overdue, burst, unclear, plateau, start-up, "
	 "not-yet, at-exit",
	 FIELD(leaks.verdicts), .words = verdict_words},
	{"reach", 0, OPTION_WORD_SET, "LIST",
	 "only blocks of which leakrec --scan said that: lost, no-holder, held, pointed-to, "
	 "possible, weak, unknown, not-scanned",
	 FIELD(leaks.reach), .words = reach_words},

	{.help = "How --format tree shows it:"},
	{"inverted", 0, OPTION_FLAG,
	 .help = "from main down, not from the allocator to its callers", FIELD(tree.main_first),
	 .groups = SHAPES_TREE},
	{"depth", 0, OPTION_NUMBER, "N", "merge by the N innermost frames", FIELD(tree.depth),
	 .min = 1, .groups = SHAPES_TREE},
	{"by", 0, OPTION_WORD, "WHAT", "by function, file, module, thread or size", FIELD(tree.by),
	 .words = by_words, .groups = SHAPES_TREE},
	{"threshold", 0, OPTION_PARSED, "PERCENT", "sum up smaller entries in one line [1]",
	 .parse = parse_threshold, .takes = "a percentage", .groups = SHAPES_TREE},

	{.help = "For scripts:"},
	{"fail-on-leak", 0, OPTION_PARSED, "[=BYTES[/s]]",
	 "exit with status 3 if anything (more than BYTES) is listed; with /s, if a cause grows by "
	 "more than that in a second",
	 .parse = parse_fail_on_leak, .takes = "a size like 4096 or 4k, or a rate like 1M/s"},
	{"on-leak", 0, OPTION_PARSED, "COMMAND",
	 "start that program, with its arguments and without a shell, once for each new cause of a "
	 "leak, which it reads on standard input",
	 .parse = parse_on_leak, .takes = "a program and its arguments"},
	{"suppressions", 0, OPTION_PARSED, "FILE",
	 "leave out known leaks: lines leak:PATTERN, as LeakSanitizer's",
	 .parse = parse_suppressions, .completes = OPTION_COMPLETES_FILES},
};

/* perf report's and perf script's. */
static const struct option_habit habits[] = {
	{'g', NULL, "--format tree prints the tree of calls"},
	{'F', NULL, "--format chooses the output"},
	{0, "top", "--limit N lists only the first N; leakrec --top shows a live view"},
};

static const struct option_table table = {
	.tool = "leakparse",
	.synopsis = "leakparse [OPTION...] < perf.data > leaks\n"
		    "leakparse [OPTION...] FILE... > leaks",
	.about = "Reads a recording by leakrec or perf record and lists the blocks that were still "
		 "held at its end, real leaks first, with the stacks that allocated them, how "
		 "certain they are, and what was unexpected: double frees, missed frees, failed "
		 "allocations.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
	.habits = habits,
	.nr_habits = ARRAY_SIZE(habits),
};

static bool has_tree(const struct leakparse_options *options)
{
	return options->format && strcmp(options->format->name, "tree") == 0;
}

/* Changes have no ages, verdicts or anomalies, so options about these are refused with --diff. */
static bool diff_can(const struct leakparse_options *options)
{
	const struct leaks_options *leaks = &options->leaks;

	/* Changes are not separated by thread or block size. */
	if (options->format && (!has_tree(options) || options->tree.by == TREE_BY_THREAD ||
				options->tree.by == TREE_BY_SIZE))
		return false;
	return !options->summary && !options->limit.is_set && !options->on_leak &&
	       !options->at_peak && !options->at_ns && !leaks->suppressions &&
	       !leaks->list_unknown && leaks->order == LEAK_ORDER_VERDICT && !leaks->min_age_ns &&
	       !leaks->max_age_ns && !leaks->stack && !leaks->thread && !leaks->function &&
	       !leaks->verdicts && !leaks->reach;
}

/* What was held over time can be selected by size only. */
static bool history_can(const struct leakparse_options *options)
{
	const struct leaks_options *leaks = &options->leaks;

	return !options->at_peak && !options->at_ns && !leaks->suppressions && !leaks->min_age_ns &&
	       !leaks->max_age_ns && !leaks->stack && !leaks->thread && !leaks->function &&
	       !leaks->verdicts && !leaks->reach && !leaks->limit;
}

/* It names a row that --summary shows with the same options about what to list. */
static bool call_sites_can(const struct leakparse_options *options)
{
	return !options->diff && !options->summary && !options->format && !options->every_ns &&
	       !options->limit.is_set && !options->on_leak && !options->leaks.limit &&
	       !options->leaks.list_unknown;
}

/* Checks which options go together. Returns 0, or -EINVAL, reported. */
static int check_combination(const struct leakparse_options *options)
{
	if (options->call_sites && !call_sites_can(options))
		diag_error("--call-sites prints a text of its own: it does not go with --summary, "
			   "--format, --diff, --every, --from, --to, --limit, --list-unknown, "
			   "--fail-on-leak or --on-leak");
	else if (options->diff && !diff_can(options))
		diag_error(
			"--diff, --every, --from and --to report changes: of the options about what "
			"to list, they go with --size and --limit only; of the formats, with tree "
			"only, not by thread or size; not with --summary, --fail-on-leak or "
			"--on-leak, but --every alone does");
	else if (options->format && options->format->ignores_selections && !history_can(options))
		diag_error(
			"--format %s shows the whole recording: of the options about what to list, "
			"it goes with --size only",
			options->format->name);
	else if (options->summary && options->format)
		diag_error("give either --summary or --format");
	else if (options->shapes_tree && !has_tree(options))
		diag_error("--inverted, --depth, --by and --threshold go with --format tree");
	else if (options->every_ns && options->has_range)
		diag_error("give either --every or --from and --to");
	else if (options->from_ns >= options->to_ns)
		diag_error("--from must be before --to");
	else
		return 0;
	return -EINVAL;
}

int leakparse_options_parse(int argc, char **argv, struct leakparse_options *options)
{
	struct option_result result;
	int err;

	*options = (struct leakparse_options){
		.stacks = {.ask_servers = true, .expect_names = true},
		.tree.threshold_percent = TREE_DEFAULT_THRESHOLD,
		.to_ns = UINT64_MAX,
		.inputs = calloc((size_t)argc, sizeof(const char *)),
	};
	if (!options->inputs)
		return -ENOMEM;
	err = options_parse(&table, argc, argv, options, &result);
	if (err)
		return err;
	if (options->live_dir &&
	    (options_given_outside(&table, &result, GOES_WITH_LIVE) || result.nr_operands)) {
		diag_error(
			"--from-live goes with --summary and -o only: the state has been judged");
		return -EINVAL;
	}
	options->leaks.limit_is_of_causes = options->summary;
	if (options_has(&table, &result, "size"))
		options->leaks.size = &options->size;
	options->watches = options->every_ns &&
			   (options->summary || options->limit.is_set || options->on_leak);
	options->diff = options_given_in(&table, &result, CHOOSES_DIFF) ||
			(options->every_ns && !options->watches);
	options->has_range = options_given_in(&table, &result, CHOOSES_RANGE);
	options->shapes_tree = options_given_in(&table, &result, SHAPES_TREE);
	for (size_t i = 0; i < result.nr_operands; i++)
		options->inputs[options->nr_inputs++] = result.operands[i];
	return check_combination(options);
}

void leakparse_options_deinit(struct leakparse_options *options)
{
	if (options->leaks.stack)
		regfree(options->leaks.stack);
	suppressions_deinit(&options->suppressions);
	free(options->inputs);
	*options = (struct leakparse_options){0};
}
