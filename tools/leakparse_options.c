/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/leakparse_options.h"

#include "common/diag.h"
#include "common/scope.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: leakparse [OPTION...] < perf.data > leaks\n"
	"       leakparse [OPTION...] FILE... > leaks\n"
	"Reads a recording by leakrec or perf record and lists the blocks that were still held at its\n"
	"end, real leaks first, with the stacks that allocated them, how certain they are, and what was\n"
	"unexpected: double frees, missed frees, failed allocations.\n"
	"\n"
	"  -i, --input FILE      read FILE, not standard input; several are one session's, in order\n"
	"  -o, --output FILE     write FILE, not standard output\n"
	"      --summary         print one screen that tells what leaks\n"
	"      --format FORMAT   another format than the leaks text: tree (for people), html (for a\n"
	"                        browser), json, csv, folded (flame graphs), pprof, callgrind,\n"
	"                        massif, heaptrack, gprof2dot\n"
	"      --at MOMENT       tell what was held at that time since the recording's start, at the\n"
	"                        peak of all that was held, or at the end [end]\n"
	"      --diff            tell instead what was added, less what was freed, between\n"
	"                        the marks that leakrec sets\n"
	"      --from TIME, --to TIME\n"
	"                        the same between these times since the recording's start\n"
	"      --every TIME      the same, each so many seconds, while the recording comes in\n"
	"      --top N           only the N first stacks\n"
	"      --order ORDER     verdict (real leaks first), size (those that hold most first), or\n"
	"                        time (the plain list, block by block)\n"
	"      --list-unknown    list frees of blocks that were not seen allocated, too\n"
	"      --own-mappings    count what allocators, the loader and the C library have mapped for\n"
	"                        themselves like the program's mappings (docs/mappings.md)\n"
	"      --symfs DIR       look for the recorded files below DIR\n"
	"      --debug-dir DIR   look for separate debug files below DIR, before /usr/lib/debug\n"
	"\n"
	"What to list:\n"
	"  -s, --size SIZE       only leaks and unexpected operations of blocks of that size (3072,\n"
	"                        3k), or of a range MIN..MAX with both ends included (4..8k)\n"
	"      --min-age TIME    only leaks that old or older: seconds, or 10ms, 5m, 2h, 1d\n"
	"      --max-age TIME    only leaks that old or younger\n"
	"      --stack REGEX     only stacks with a function, file or module that matches\n"
	"      --thread THREAD   only what that thread allocated, by its number or name\n"
	"      --func NAME       only what that function of the allocator allocated (calloc)\n"
	"      --kind KIND       only resources of that kind (docs/resources.md), or memory\n"
	"      --verdict LIST    only blocks of these verdicts: growth, overdue, burst, unclear,\n"
	"                        plateau, start-up, not-yet, at-exit\n"
	"\n"
	"How --format tree shows it:\n"
	"      --inverted        from main down, not from the allocator to its callers\n"
	"      --depth N         merge by the N innermost frames\n"
	"      --by WHAT         by function, file, module, thread or size\n"
	"      --threshold PERCENT  sum what is smaller in one line; 1 if not given\n"
	"\n"
	"For scripts:\n"
	"      --fail-on-leak[=BYTES]  exit with status 3 if anything (more than BYTES) is listed\n"
	"      --suppressions FILE     leave out known leaks: lines leak:PATTERN, as LeakSanitizer's\n"
	"\n"
	"  -h, --help            show this text\n"
	"  -V, --version         show the version\n";

enum {
	OPTION_LIST_UNKNOWN = 256,
	OPTION_OWN_MAPPINGS,
	OPTION_SYMFS,
	OPTION_DEBUG_DIR,
	OPTION_SUMMARY,
	OPTION_AT,
	OPTION_DIFF,
	OPTION_EVERY,
	OPTION_FROM,
	OPTION_TO,
	OPTION_TOP,
	OPTION_ORDER,
	OPTION_MIN_AGE,
	OPTION_MAX_AGE,
	OPTION_STACK,
	OPTION_THREAD,
	OPTION_FUNC,
	OPTION_KIND,
	OPTION_VERDICT,
	OPTION_FAIL_ON_LEAK,
	OPTION_SUPPRESSIONS,
	OPTION_FORMAT,
	OPTION_INVERTED,
	OPTION_DEPTH,
	OPTION_BY,
	OPTION_THRESHOLD,
};

static const struct option long_options[] = {
	{"input", required_argument, NULL, 'i'},
	{"size", required_argument, NULL, 's'},
	{"list-unknown", no_argument, NULL, OPTION_LIST_UNKNOWN},
	{"own-mappings", no_argument, NULL, OPTION_OWN_MAPPINGS},
	{"symfs", required_argument, NULL, OPTION_SYMFS},
	{"debug-dir", required_argument, NULL, OPTION_DEBUG_DIR},
	{"summary", no_argument, NULL, OPTION_SUMMARY},
	{"at", required_argument, NULL, OPTION_AT},
	{"diff", no_argument, NULL, OPTION_DIFF},
	{"every", required_argument, NULL, OPTION_EVERY},
	{"from", required_argument, NULL, OPTION_FROM},
	{"to", required_argument, NULL, OPTION_TO},
	{"top", required_argument, NULL, OPTION_TOP},
	{"order", required_argument, NULL, OPTION_ORDER},
	{"min-age", required_argument, NULL, OPTION_MIN_AGE},
	{"max-age", required_argument, NULL, OPTION_MAX_AGE},
	{"stack", required_argument, NULL, OPTION_STACK},
	{"thread", required_argument, NULL, OPTION_THREAD},
	{"func", required_argument, NULL, OPTION_FUNC},
	{"kind", required_argument, NULL, OPTION_KIND},
	{"verdict", required_argument, NULL, OPTION_VERDICT},
	{"fail-on-leak", optional_argument, NULL, OPTION_FAIL_ON_LEAK},
	{"suppressions", required_argument, NULL, OPTION_SUPPRESSIONS},
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, OPTION_FORMAT},
	{"inverted", no_argument, NULL, OPTION_INVERTED},
	{"depth", required_argument, NULL, OPTION_DEPTH},
	{"by", required_argument, NULL, OPTION_BY},
	{"threshold", required_argument, NULL, OPTION_THRESHOLD},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

static int parse_number(const char *option, const char *text, uint64_t *ret)
{
	bool is_number = isdigit((unsigned char)*text);
	char *end = NULL;

	errno = 0;
	*ret = is_number ? strtoull(text, &end, 10) : 0;
	if (!is_number || errno || *end) {
		diag_error("%s takes a number, not \"%s\"", option, text);
		return -EINVAL;
	}
	return 0;
}

static int parse_fail_bytes(const char *text, uint64_t *ret)
{
	if (size_parse(text, ret) == 0)
		return 0;
	diag_error("--fail-on-leak takes a size like 4096 or 4k, not \"%s\"", text);
	return -EINVAL;
}

/* "1.5", "10ms", "2h" */
static int parse_time(const char *option, const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *suffix;
		double seconds;
	} units[] = {{"", 1},	{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
		     {"m", 60}, {"min", 60},  {"h", 3600},  {"d", 86400}};
	char *end = NULL;
	double time;

	errno = 0;
	time = isdigit((unsigned char)*text) || *text == '.' ? strtod(text, &end) : -1;
	for (size_t i = 0; time >= 0 && end && !errno && i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].suffix) != 0 || time * units[i].seconds >= 1e9)
			continue;
		*ret_ns = (uint64_t)(time * units[i].seconds * 1e9 + 0.5);
		return 0;
	}
	diag_error("%s takes seconds, or a time like 10ms, 5m or 2h, not \"%s\"", option, text);
	return -EINVAL;
}

static int parse_order(const char *text, enum leak_order *ret)
{
	static const char *const names[] = {
		[LEAK_ORDER_VERDICT] = "verdict",
		[LEAK_ORDER_TIME] = "time",
		[LEAK_ORDER_SIZE] = "size",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum leak_order)i;
			return 0;
		}
	}
	diag_error("--order is verdict, size or time, not \"%s\"", text);
	return -EINVAL;
}

/* "growth,overdue" */
static int parse_verdicts(const char *text, unsigned int *ret)
{
	while (true) {
		size_t len = strcspn(text, ",");
		enum verdict verdict = 0;

		while (verdict < VERDICT_NR && (strncmp(text, verdict_name(verdict), len) != 0 ||
						strlen(verdict_name(verdict)) != len))
			verdict++;
		if (verdict == VERDICT_NR) {
			diag_error("--verdict knows growth, overdue, burst, unclear, plateau, "
				   "start-up, not-yet and at-exit, not \"%.*s\"",
				   (int)len, text);
			return -EINVAL;
		}
		*ret |= 1u << verdict;
		if (!text[len])
			return 0;
		text += len + 1;
	}
}

static int parse_regex(struct leakparse_options *options, const char *text)
{
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

static int parse_count(const char *option, const char *text, size_t *ret)
{
	uint64_t nr;
	int err = parse_number(option, text, &nr);

	if (!err && nr == 0) {
		diag_error("%s takes a number from 1 on", option);
		err = -EINVAL;
	}
	*ret = err ? 0 : nr;
	return err;
}

static int parse_format(const char *text, const struct report_format **ret)
{
	*ret = report_format_find(text);
	if (*ret || strcmp(text, "leaks") == 0)
		return 0;
	diag_error("--format knows no \"%s\"; leakparse --help lists those that it knows", text);
	return -EINVAL;
}

static int parse_percent(const char *text, double *ret)
{
	char *end = NULL;

	*ret = isdigit((unsigned char)*text) || *text == '.' ? strtod(text, &end) : -1;
	if (*ret >= 0 && *ret <= 100 && end && (!*end || strcmp(end, "%") == 0))
		return 0;
	diag_error("--threshold takes a percentage, not \"%s\"", text);
	return -EINVAL;
}

/* The options that say how a report looks. */
static int parse_appearance(int opt, struct leakparse_options *options)
{
	options->shapes_tree |= opt != 'o' && opt != OPTION_FORMAT;
	switch (opt) {
	case 'o':
		options->output = optarg;
		return 0;
	case OPTION_FORMAT:
		return parse_format(optarg, &options->format);
	case OPTION_INVERTED:
		options->report.main_first = true;
		return 0;
	case OPTION_DEPTH:
		return parse_count("--depth", optarg, &options->report.depth);
	case OPTION_BY:
		if (!report_parse_grouping(optarg, &options->report.by))
			return 0;
		diag_error("--by is function, file, module, thread or size, not \"%s\"", optarg);
		return -EINVAL;
	case OPTION_THRESHOLD:
		return parse_percent(optarg, &options->report.threshold_percent);
	default:
		return -EINVAL;
	}
}

/* The options that narrow or arrange what is listed. */
static int parse_selection(int opt, struct leakparse_options *options)
{
	struct leaks_options *leaks = &options->leaks;

	switch (opt) {
	case 's':
		if (size_range_parse(optarg, &options->size)) {
			diag_error("--size takes a size like 3072 or 3k, or MIN..MAX, not \"%s\"",
				   optarg);
			return -EINVAL;
		}
		leaks->size = &options->size;
		return 0;
	case OPTION_OWN_MAPPINGS:
		options->own_mappings = true;
		return 0;
	case OPTION_LIST_UNKNOWN:
		leaks->list_unknown = true;
		return 0;
	case OPTION_TOP:
		return parse_count("--top", optarg, &leaks->top);
	case OPTION_ORDER:
		return parse_order(optarg, &leaks->order);
	case OPTION_MIN_AGE:
		return parse_time("--min-age", optarg, &leaks->min_age_ns);
	case OPTION_MAX_AGE:
		return parse_time("--max-age", optarg, &leaks->max_age_ns);
	case OPTION_STACK:
		return parse_regex(options, optarg);
	case OPTION_THREAD:
		leaks->thread = optarg;
		return 0;
	case OPTION_FUNC:
		leaks->function = optarg;
		return 0;
	case OPTION_KIND:
		leaks->kind = optarg;
		return 0;
	case OPTION_VERDICT:
		return parse_verdicts(optarg, &leaks->verdicts);
	default:
		return parse_appearance(opt, options);
	}
}

static int parse_at(const char *text, struct leakparse_options *options)
{
	int err = 0;

	options->at_peak = strcmp(text, "peak") == 0;
	options->at_ns = 0;
	if (!options->at_peak && strcmp(text, "end") != 0) {
		err = parse_time("--at", text, &options->at_ns);
		/* 0 stands for the end; no event is that near to the first. */
		options->at_ns += options->at_ns == 0;
	}
	return err;
}

static int parse_range(int opt, struct leakparse_options *options)
{
	options->diff = options->has_range = true;
	return opt == OPTION_FROM ? parse_time("--from", optarg, &options->from_ns)
				  : parse_time("--to", optarg, &options->to_ns);
}

static bool has_tree(const struct leakparse_options *options)
{
	return options->format && strcmp(options->format->name, "tree") == 0;
}

/* What is told of held blocks does not apply to changes. */
static bool diff_can(const struct leakparse_options *options)
{
	const struct leaks_options *leaks = &options->leaks;

	/* Threads and blocks' sizes are not told apart in changes. */
	if (options->format && (!has_tree(options) || options->report.by == REPORT_BY_THREAD ||
				options->report.by == REPORT_BY_SIZE))
		return false;
	return !options->summary && !options->fail_on_leak && !options->at_peak &&
	       !options->at_ns && !leaks->suppressions && !leaks->list_unknown &&
	       leaks->order == LEAK_ORDER_VERDICT && !leaks->min_age_ns && !leaks->max_age_ns &&
	       !leaks->stack && !leaks->thread && !leaks->function && !leaks->verdicts;
}

/* What was held over time is known by size only. */
static bool history_can(const struct leakparse_options *options)
{
	const struct leaks_options *leaks = &options->leaks;

	return !options->at_peak && !options->at_ns && !leaks->suppressions && !leaks->min_age_ns &&
	       !leaks->max_age_ns && !leaks->stack && !leaks->thread && !leaks->function &&
	       !leaks->verdicts && !leaks->top;
}

/* What goes together. Returns 0, or -EINVAL, reported. */
static int check_combination(const struct leakparse_options *options)
{
	if (options->diff && !diff_can(options))
		diag_error(
			"--diff, --every, --from and --to tell of changes: they go with --size, "
			"--top and --format tree (not by thread or size), with no other choice of "
			"what to list, nor with --summary or --fail-on-leak");
	else if (options->format && options->format->is_of_all && !history_can(options))
		diag_error(
			"--format %s tells of the whole recording: of what to list, it goes with "
			"--size only",
			options->format->name);
	else if (options->summary && options->format)
		diag_error("give either --summary or --format");
	else if (options->shapes_tree && !has_tree(options))
		diag_error("--inverted, --depth, --by and --threshold go with --format tree");
	else if (options->every_ns && options->has_range)
		diag_error("give either --every or --from and --to");
	else if (options->from_ns >= options->to_ns)
		diag_error("--from is to be before --to");
	else
		return 0;
	return -EINVAL;
}

int leakparse_options_parse(int argc, char **argv, struct leakparse_options *options)
{
	const char *fail_bytes = NULL;
	int opt, err = 0;

	*options = (struct leakparse_options){0};
	options->stacks.ask_servers = options->stacks.expect_names = true;
	options->report.threshold_percent = REPORT_DEFAULT_THRESHOLD;
	options->to_ns = UINT64_MAX;
	options->inputs = calloc((size_t)argc, sizeof(const char *));
	if (!options->inputs)
		return -ENOMEM;
	while (!err && (opt = getopt_long(argc, argv, "i:o:s:hV", long_options, NULL)) != -1) {
		switch (opt) {
		case 'i':
			options->inputs[options->nr_inputs++] = optarg;
			break;
		case OPTION_SYMFS:
			options->stacks.symfs = optarg;
			break;
		case OPTION_DEBUG_DIR:
			options->stacks.debug_dir = optarg;
			break;
		case OPTION_SUMMARY:
			options->summary = true;
			break;
		case OPTION_AT:
			err = parse_at(optarg, options);
			break;
		case OPTION_DIFF:
			options->diff = true;
			break;
		case OPTION_EVERY:
			options->diff = true;
			err = parse_time("--every", optarg, &options->every_ns);
			break;
		case OPTION_FROM:
		case OPTION_TO:
			err = parse_range(opt, options);
			break;
		case OPTION_FAIL_ON_LEAK:
			options->fail_on_leak = true;
			fail_bytes = optarg;
			break;
		case OPTION_SUPPRESSIONS:
			err = suppressions_read(&options->suppressions, optarg);
			options->leaks.suppressions = &options->suppressions;
			break;
		case 'h':
			fputs(usage, stdout);
			return 1;
		case 'V':
			puts("leakparse " LEAKTOOLS_VERSION);
			return 1;
		default:
			err = parse_selection(opt, options);
		}
	}
	if (!err && fail_bytes)
		err = parse_fail_bytes(fail_bytes, &options->fail_bytes);
	if (!err)
		err = check_combination(options);
	while (!err && optind < argc)
		options->inputs[options->nr_inputs++] = argv[optind++];
	return err;
}

void leakparse_options_deinit(struct leakparse_options *options)
{
	if (options->leaks.stack)
		regfree(options->leaks.stack);
	suppressions_deinit(&options->suppressions);
	free(options->inputs);
	*options = (struct leakparse_options){0};
}
