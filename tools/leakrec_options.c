/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/leakrec_options.h"

#include "common/diag.h"
#include "common/number.h"
#include "common/options.h"
#include "common/scope.h"
#include "recorder/conditions/condition.h"
#include "recorder/output/compressor.h"
#include "recorder/segments/segments.h"
#include "recorder/session/heap_scan.h"
#include "tools/leakrec_narrow.h"
#include "tools/leakrec_service.h"
#include "tools/pid_list.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* The session's options, and options that are only the command line's. */
struct command_line {
	struct session_options session;
	struct live_options live;
	struct followed followed;
	struct pid_list pids;
	const char *service, *narrow;
	bool is_all, perf_events;
};

static int parse_pids(void *context, const struct option_row *row, const char *text)
{
	struct command_line *line = context;
	int err = pid_list_parse(&line->pids, text);

	return err == -EINVAL ? options_reject(row, text) : err;
}

static int parse_unit(void *context, const struct option_row *row, const char *text)
{
	if (*text != '/' && !followed_is_unit_name(text))
		return options_reject(row, text);
	((struct command_line *)context)->followed.unit = text;
	return 0;
}

static int parse_program(void *context, const struct option_row *row, const char *text)
{
	if (*text != '/')
		return options_reject(row, text);
	((struct command_line *)context)->followed.program = text;
	return 0;
}

static int parse_ring_pages(void *context, const struct option_row *row, const char *text)
{
	struct command_line *line = context;
	uint64_t pages;

	if (number_parse(text, &pages) || pages == 0 || pages > 1 << 20 || (pages & (pages - 1)))
		return options_reject(row, text);
	line->session.config.ring_pages = (uint32_t)pages;
	return 0;
}

static int parse_call_graph(void *context, const struct option_row *row, const char *text)
{
	struct record_config *config = &((struct command_line *)context)->session.config;
	uint64_t bytes = 0;

	if (strcmp(text, "fp") == 0) {
		config->call_graph = CALL_GRAPH_FP;
	} else if (strcmp(text, "none") == 0) {
		config->call_graph = CALL_GRAPH_NONE;
	} else if (strcmp(text, "dwarf") == 0 ||
		   (strncmp(text, "dwarf,", 6) == 0 && size_parse(text + 6, &bytes) == 0 &&
		    bytes > 0 && bytes <= RECORD_MAX_DUMP_BYTES)) {
		config->call_graph = CALL_GRAPH_DWARF;
		config->dump_bytes = (uint32_t)(bytes + 7) / 8 * 8;
	} else {
		return options_reject(row, text);
	}
	return 0;
}

/* @text: NULL for the default, as in perf record -z. */
static int parse_compression_level(void *context, const struct option_row *row, const char *text)
{
	struct command_line *line = context;
	uint64_t level = COMPRESSOR_DEFAULT_LEVEL;

	if (text && (number_parse(text, &level) || level > COMPRESSOR_MAX_LEVEL))
		return options_reject(row, text);
	line->session.compression_level = (int)level;
	return 0;
}

/* "2%", "0.5%"; "2" means the same as "2%". */
static int parse_budget(void *context, const struct option_row *row, const char *text)
{
	struct session_options *session = &((struct command_line *)context)->session;
	char *end;
	double percent = strtod(text, &end);

	if (end == text || (*end && strcmp(end, "%") != 0) || !(percent >= 0.1 && percent <= 100))
		return options_reject(row, text);
	session->budget = percent / 100;
	return 0;
}

static int parse_narrow(void *context, const struct option_row *row, const char *text)
{
	struct command_line *line = context;

	line->narrow = text;
	line->session.config.at_calls = true;
	return leakrec_narrow_is_valid(text) ? 0 : options_reject(row, text);
}

/* A segment has a twelfth. */
#define MIN_KEEP_NS 1000000000

/* Of --ring, if it is given only a time. */
#define RING_DEFAULT_BYTES ((uint64_t)256 << 20)

/*
 * --keep and --ring: "2G", "6h", "2G,6h": a size, a time, or both. A time has a unit that no size
 * has.
 */
static int parse_keep(void *context, const struct option_row *row, const char *text)
{
	struct command_line *line = context;
	struct segment_limits *keep = &line->session.keep;
	_cleanup_free_ char *copy = strdup(text);
	char *rest = NULL;

	if (!copy)
		return -ENOMEM;
	*keep = (struct segment_limits){.in_memory = strcmp(row->name, "ring") == 0};
	for (char *part = strtok_r(copy, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
		bool is_time = strpbrk(part, "hdsn");
		uint64_t *limit = is_time ? &keep->age_ns : &keep->bytes;

		/* Minutes for who thinks of 6h, MiB for who thinks of 2g. */
		if (!is_time && strchr(part, 'm')) {
			diag_error("--%s: %s may be minutes or MiB: write min or M", row->name,
				   part);
			return -EINVAL;
		}
		if (*limit ||
		    (is_time ? number_parse_time(part, limit) : size_parse(part, limit)) || !*limit)
			return options_reject(row, text);
	}
	if ((!keep->bytes && !keep->age_ns) || (keep->bytes && keep->bytes < SEGMENTS_MIN_BYTES) ||
	    (keep->age_ns && keep->age_ns < MIN_KEEP_NS))
		return options_reject(row, text);
	if (keep->in_memory && !keep->bytes)
		keep->bytes = RING_DEFAULT_BYTES;
	return 0;
}

static int parse_when(void *context, const struct option_row *row, const char *text)
{
	struct session_options *session = &((struct command_line *)context)->session;
	struct condition condition;

	if (condition_parse(text, &condition))
		return options_reject(row, text);
	if (session->nr_when == CONDITIONS_MAX) {
		diag_error("--when can be given %d times at most", CONDITIONS_MAX);
		return -EINVAL;
	}
	session->when[session->nr_when++] = text;
	return 0;
}

static int parse_filter(void *context, const struct option_row *row, const char *text)
{
	struct record_config *config = &((struct command_line *)context)->session.config;
	size_t len = strcspn(text, ":");

	if (len == 0 || !text[len] || !text[len + 1])
		return options_reject(row, text);
	if (config->nr_filters == RECORD_MAX_FILTERS) {
		diag_error("--filter can be given %d times at most", RECORD_MAX_FILTERS);
		return -EINVAL;
	}
	config->filters[config->nr_filters++] = text;
	((struct command_line *)context)->perf_events = true;
	return 0;
}

static int parse_on_leak(void *context, const struct option_row *row, const char *text)
{
	struct live_options *live = &((struct command_line *)context)->live;

	live->on_leak = text;
	return text[strspn(text, " \t\n")] ? 0 : options_reject(row, text);
}

/* --pair and --ref */
static int parse_resource(void *context, const struct option_row *row, const char *text)
{
	struct command_line *line = context;

	return resource_specs_add(line->session.resources,
				  strcmp(row->name, "ref") == 0 ? "--ref" : "--pair", text);
}

#define TEXT_OF_NUMBER(number) #number
#define TEXT_OF(number)	       TEXT_OF_NUMBER(number)

static const struct option_word with_words[] = {
	{"mmap", SYSCALL_MAPPINGS}, {"fd", SYSCALL_DESCRIPTORS}, {0}};
static const struct option_word by_words[] = {{"session", RECORD_BY_SESSION},
					      {"multi", RECORD_BY_MULTI},
					      {"single", RECORD_BY_SINGLE},
					      {"perf", RECORD_BY_PERF},
					      {0}};
static const struct option_word overload_words[] = {
	{"hold", OVERLOAD_HOLD}, {"drop", OVERLOAD_DROP}, {0}};

#define FIELD(field) OPTION_FIELD(struct command_line, field)

static const struct option_row rows[] = {
	{"pid", 'p', OPTION_PARSED, "PID[,PID...]", "attach to these processes",
	 .parse = parse_pids, .takes = "process ids, separated by commas",
	 .completes = OPTION_COMPLETES_PIDS},
	{"children", 0, OPTION_FLAG,
	 .help = "with -p: record the children that they have already, and theirs, too; those that "
		 "are forked later are recorded anyway",
	 FIELD(session.with_children)},
	{"all", 'a', OPTION_FLAG, .help = "record all processes, also those that start later",
	 FIELD(is_all)},
	{"cgroup", 0, OPTION_TEXT, "PATH",
	 "record all processes of this cgroup (version 2) and of those below it",
	 FIELD(session.cgroup), .completes = OPTION_COMPLETES_DIRECTORIES},
	{"unit", 0, OPTION_PARSED, "UNIT",
	 "record the processes of this unit of systemd, or of this cgroup if it begins with /, and wait "
	 "for them if there are none",
	 .parse = parse_unit, .takes = "the name of a unit, or a cgroup's path"},
	{"program", 0, OPTION_PARSED, "FILE",
	 "record the processes that run this program, and wait for them if there are none",
	 .parse = parse_program, .takes = "a path that begins with /",
	 .completes = OPTION_COMPLETES_FILES},
	{"service", 0, OPTION_TEXT, "NAME",
	 "the first option: take others from leakrec.conf and NAME.conf in " LEAKREC_SERVICE_DIR
	 ", or in DIR if it is DIR/NAME, and "
	 "record the unit NAME unless they say otherwise",
	 FIELD(service)},
	{"top", 0, OPTION_FLAG,
	 .help = "show what is held, by stack, while recording; without -o, no file is written",
	 FIELD(session.with_view)},
	{"live", 0, OPTION_TEXT, "DIR",
	 "parse the recording, too, and write every minute what it has shown so far: leakparse "
	 "--from-live DIR --summary shows it; without -o, no recording is written",
	 FIELD(live.dir), .completes = OPTION_COMPLETES_DIRECTORIES},
	{"live-every", 0, OPTION_TIME, "TIME", "the same every TIME, not every minute",
	 FIELD(live.every_ns), .min = 1000000000},
	{"metrics", 0, OPTION_TEXT, "FILE",
	 "write it as metrics for Prometheus, too, or instead; node_exporter reads them",
	 FIELD(live.metrics), .completes = OPTION_COMPLETES_FILES},
	{"on-leak", 0, OPTION_PARSED, "COMMAND",
	 "start that program, with its arguments and without a shell, once for each new cause of a "
	 "leak, which it reads on standard input",
	 .parse = parse_on_leak, .takes = "a program and its arguments"},
	{"output", 'o', OPTION_TEXT, "FILE",
	 "write to FILE; \"-\" is standard output, in perf's pipe format [perf.data]",
	 FIELD(session.output), .completes = OPTION_COMPLETES_FILES},
	{"compression-level", 'z', OPTION_PARSED, "LEVEL",
	 "compress with zstd, at level 1 to " TEXT_OF(
		 COMPRESSOR_MAX_LEVEL) "; -z alone is 1; 0 does not [files: 1, standard output: 0]",
	 .parse = parse_compression_level, .letter_argument = "[LEVEL]",
	 .takes = "a level from 0 to " TEXT_OF(COMPRESSOR_MAX_LEVEL)},
	{"mmap-pages", 'm', OPTION_PARSED, "N",
	 "pages of each CPU's ring, a power of two [8 MiB, or less where memory is little]",
	 .parse = parse_ring_pages, .takes = "a power of two up to 1048576"},
	{"duration", 'd', OPTION_TIME, "SECONDS", "end after this time", FIELD(session.duration_ns),
	 .min = 1},
	{"budget", 0, OPTION_PARSED, "SHARE",
	 "record in windows, so that recording costs at most SHARE (0.1% to 100%) of the CPU time that "
	 "the processes use, or of one CPU's if they use less",
	 .parse = parse_budget, .takes = "a share of the CPU time from 0.1% to 100%"},
	{"narrow", 0, OPTION_PARSED, "NR[:FILE]",
	 "record only the calls that allocate and release the blocks of cause NR, as leakparse --summary "
	 "numbers it for the recording FILE [perf.data]: these are made rarely, so that costs little",
	 .parse = parse_narrow, .takes = "a cause's number, or NR:FILE"},
	{"keep", 0, OPTION_PARSED, "SIZE|TIME",
	 "write segments into the directory that -o names, and remove the oldest ones beyond SIZE (2G; 64M "
	 "at least), TIME (6h, 90min; 1s at least) or either of them (2G,6h); leakparse reads the directory",
	 .parse = parse_keep, .takes = "a size from 64M, a time from 1s, or both, as in 2G,6h"},
	{"ring", 0, OPTION_PARSED, "SIZE|TIME",
	 "keep segments in memory, and only write them into the directory that -o names at SIGUSR2 or "
	 "by --when; what is older than TIME (5min; 1s at least) or beyond SIZE (64M at least) is "
	 "dropped [TIME: 256M]",
	 .parse = parse_keep, .takes = "a size from 64M, a time from 1s, or both, as in 5min,1G"},
	{"when", 0, OPTION_PARSED, "CONDITION",
	 "with --ring: write when the processes' memory is so large (rss=2G), grows so fast "
	 "(rss+=100M/m, /h), is waited for so long (pressure=10%), when the cgroup reaches a limit "
	 "(memory.high, memory.max, memory.oom), when a signal ends a process (signal), or at the end "
	 "(end); may be given several times",
	 .parse = parse_when,
	 .suggestions = "rss= rss+= pressure= memory.high memory.max memory.oom signal end",
	 .takes =
		 "rss=2G, rss+=100M/m, pressure=10%, memory.high, memory.max, memory.oom, signal or "
		 "end"},
	{"mark-every", 0, OPTION_TIME, "SECONDS",
	 "set a mark at this interval, as SIGUSR1 does; leakparse --diff shows what changed between "
	 "marks",
	 FIELD(session.mark_every_ns), .min = 1},
	{"call-graph", 0, OPTION_PARSED, "MODE",
	 "unwind stacks by frame pointers (fp), by call frame information in at most BYTES of stack "
	 "(dwarf[,BYTES]), or not at all (none) [dwarf]",
	 .parse = parse_call_graph, .suggestions = "fp dwarf dwarf, none",
	 .takes = "fp, dwarf, dwarf,BYTES (up to " TEXT_OF(RECORD_MAX_DUMP_BYTES) ") or none"},
	{"raw-stacks", 0, OPTION_FLAG,
	 .help = "with dwarf: write registers and stack bytes, for other tools to unwind",
	 FIELD(session.config.raw_stacks)},
	{"mismatch", 0, OPTION_FLAG,
	 .help = "record C++'s operators, too: finds blocks of new[], new and malloc that are "
		 "released by the wrong function",
	 FIELD(session.mismatch)},
	{"scan", 0, OPTION_FLAG,
	 .help = "at the end, and at SIGUSR2, stop the process twice for a moment, and find out which "
		 "blocks nothing points to any more: reports then say what is proven lost "
		 "(leakscan(1))",
	 FIELD(session.scan)},
	{"pause-limit", 0, OPTION_TIME, "TIME",
	 "with --scan: let a process go after TIME (2, 300ms), with or without a result; 500ms unless "
	 "given",
	 FIELD(session.scan_pause_limit_ns), .min = 1000000},
	{"free-stacks", 0, OPTION_FLAG,
	 .help = "record the stacks of frees, too, not just their callers",
	 FIELD(session.config.free_stacks)},
	{"size", 's', OPTION_SIZE_RANGE, "SIZE|MIN..MAX",
	 "record only blocks of these sizes (3072, 3k, 4..8k); others cost little",
	 FIELD(session.config.sizes)},
	{"pair", 0, OPTION_PARSED, "'GIVING / TAKING'",
	 "record what other functions give and take, too, as in "
	 "'fopen|fdopen:ret / fclose:arg1' (docs/resources.md)",
	 .parse = parse_resource},
	{"ref", 0, OPTION_PARSED, "'UP / DOWN'",
	 "record references to objects, too, as in 'g_object_ref:arg1 / g_object_unref:arg1'",
	 .parse = parse_resource},
	{"no-heap", 0, OPTION_FLAG, .help = "record only resources, no allocators",
	 FIELD(session.config.no_heap)},
	{"with", 0, OPTION_WORD_SET, "WHAT",
	 "record system calls, too. mmap: mmap, munmap, mremap and brk, for memory that is mapped "
	 "without an allocator; fd: those that open and close file descriptors",
	 FIELD(session.config.syscalls), .words = with_words},
	{"filter", 0, OPTION_PARSED, "EVENT:EXPR",
	 "record EVENT only if EXPR is true, as in \"malloc:bytes > 4096\"; may be given for several "
	 "events",
	 .parse = parse_filter, .takes = "EVENT:EXPR, as in \"malloc:bytes > 4096\""},
	{"perf-events", 0, OPTION_FLAG,
	 .help = "record with perf events, not with BPF programs (implied by --filter)",
	 FIELD(perf_events)},
	{"record-by", 0, OPTION_WORD, "WAY",
	 "record by BPF programs on uprobe_multi links with sessions (session), without (multi), "
	 "on perf events (single), or by perf events (perf) [the first that the kernel has]",
	 FIELD(session.config.by), .words = by_words},
	{"verbose", 'v', OPTION_FLAG, .help = "say which of these ways is taken, and why",
	 FIELD(session.tells_way)},
	{"on-overload", 0, OPTION_WORD, "MODE",
	 "when a ring fills up: stop the processes for a moment (hold), or drop events [hold]",
	 FIELD(session.config.on_overload), .words = overload_words},
};

/* perf record's. */
static const struct option_habit habits[] = {
	{'g', NULL, "stacks are recorded anyway; --call-graph says how"},
	{'F', NULL, "every call is recorded, so there is no frequency"},
	{'c', NULL, "every call is recorded, so there is no period; --size leaves some out"},
	{'e', NULL, "allocations are recorded anyway; --with, --pair and --ref name more"},
};

static const struct option_table table = {
	.tool = "leakrec",
	.synopsis = "leakrec [OPTION...] -p PID[,PID...]\n"
		    "leakrec [OPTION...] -a | --cgroup PATH | --unit UNIT | --program FILE\n"
		    "leakrec --service NAME [OPTION...]\n"
		    "leakrec [OPTION...] -- COMMAND [ARG...]",
	.about = "Records every allocation and release of the processes, of their threads and of "
		 "the children they fork, until Ctrl-C, until they are gone, or for a given time.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
	.habits = habits,
	.nr_habits = ARRAY_SIZE(habits),
	.stops_at_operand = true,
};

/* What does not go with --keep and --ring; NULL: nothing that was given. */
static const char *keep_objection(const struct session_options *options)
{
	const struct record_config *config = &options->config;

	if (!options->output || strcmp(options->output, "-") == 0)
		return "--keep and --ring write into a directory: name it with -o";
	if (config->syscalls || options->resources->nr || config->no_heap)
		return "--keep and --ring are for allocators only: they do not go with --with, "
		       "--pair, --ref or --no-heap";
	if (options->scan)
		return "--keep and --ring do not go with --scan";
	if (config->raw_stacks)
		return "--keep and --ring do not go with --raw-stacks: they list blocks by their "
		       "callchains";
	if (config->scope == RECORD_SYSTEM_WIDE && options->nr_when)
		return "--when needs -p PID, --cgroup PATH or a command: it does not go with -a";
	return NULL;
}

/* Checks which options go together. Returns 0, or -EINVAL, reported. */
static int check_options(const struct command_line *line)
{
	const struct session_options *options = &line->session;
	const struct record_config *config = &options->config;
	bool has_pids = options->nr_pids || line->followed.unit || line->followed.program;
	int nr_ways = (options->command != NULL) + (options->nr_pids > 0) + line->is_all +
		      (options->cgroup != NULL) + (line->followed.unit != NULL) +
		      (line->followed.program != NULL);
	const char *wrong = NULL;

	if (nr_ways != 1)
		wrong = "give either -p PID, -a, --cgroup PATH, --unit UNIT, --program FILE, or a "
			"command to record; see leakrec --help";
	else if (options->with_children && !has_pids)
		wrong = "--children goes with -p PID, --unit or --program; other ways to record have "
			"all children";
	else if (options->with_view && !has_pids)
		wrong = "--top needs -p PID, --unit or --program: a command would use the same terminal";
	else if (options->with_view && options->output && strcmp(options->output, "-") == 0)
		wrong = "--top draws on standard output: give -o a file";
	else if (config->scope != RECORD_PROCESSES && options->resources->nr)
		wrong = "--pair and --ref need -p PID or a command: they do not go with -a or --cgroup";
	else if (options->scan && config->scope != RECORD_PROCESSES)
		wrong = "--scan needs -p PID, --unit, --program or a command: it does not go with -a or --cgroup";
	else if (options->scan_pause_limit_ns && !options->scan)
		wrong = "--pause-limit goes with --scan";
	else if (options->budget && config->scope != RECORD_PROCESSES)
		wrong = "--budget needs -p PID or a command: it does not go with -a or --cgroup";
	else if (options->budget && (config->syscalls || options->resources->nr || config->no_heap))
		wrong = "--budget is for allocators only: it does not go with --with, --pair, --ref or "
			"--no-heap";
	else if (options->budget && config->has_sizes)
		wrong = "--budget does not go with --size: leave --size out, and give it to leakparse";
	else if (options->budget && options->with_view)
		wrong = "--budget does not go with --top, which shows what is held at each moment";
	else if (options->budget &&
		 (config->by == RECORD_BY_PERF || config->by == RECORD_BY_SINGLE))
		wrong = "--budget needs links, which can be placed and removed quickly: leave "
			"--perf-events, --filter and --record-by out";
	else if (config->at_calls && leakrec_narrow_objection(options))
		wrong = leakrec_narrow_objection(options);
	else if (options->nr_when && !options->keep.in_memory)
		wrong = "--when goes with --ring";
	else if (session_options_keep(options) && keep_objection(options))
		wrong = keep_objection(options);
	else if (config->raw_stacks && config->call_graph != CALL_GRAPH_DWARF)
		wrong = "--raw-stacks needs --call-graph dwarf";
	else if (config->has_sizes && config->by == RECORD_BY_PERF)
		wrong = "--size needs BPF programs: it does not go with --perf-events or --filter";
	if (wrong)
		diag_error("%s", wrong);
	return wrong ? -EINVAL : 0;
}

/* The same for what the live parser does. */
static int check_live(const struct session_options *options, const struct live_options *live)
{
	const char *wrong = NULL;

	if (live->every_ns && !live_is_wanted(live))
		wrong = "--live-every goes with --live, --metrics or --on-leak";
	else if (live_is_wanted(live) && options->with_view)
		wrong = "give either --top, or --live, --metrics and --on-leak";
	if (wrong)
		diag_error("%s", wrong);
	return wrong ? -EINVAL : 0;
}

int leakrec_options_check_processes(const struct session_options *session)
{
	for (size_t i = 0; i < session->nr_pids; i++) {
		if (session->pids[i] != getpid())
			continue;
		diag_error("cannot record process %d: that is leakrec itself", (int)getpid());
		return -EINVAL;
	}
	if (!session->scan || session->nr_pids <= HEAP_SCAN_MAX_PROCESSES)
		return 0;
	diag_error("--scan goes with 16 processes at most");
	return -EINVAL;
}

/* What follows from the options. */
static void complete(struct command_line *line, const struct option_result *result)
{
	struct session_options *session = &line->session;

	session->pids = line->pids.pids;
	session->nr_pids = line->pids.nr;
	if (result->nr_operands)
		session->command = result->operands;
	if (line->is_all)
		session->config.scope = RECORD_SYSTEM_WIDE;
	if (session->cgroup)
		session->config.scope = RECORD_CGROUP;
	if (line->perf_events)
		session->config.by = RECORD_BY_PERF;
	session->config.has_sizes = options_has(&table, result, "size");
	session->config.free_stacks |= session->mismatch;
	session->config.in_windows = session->budget > 0;
	/* A window closes before a ring is full, so that no process has to be stopped. */
	if (session->budget > 0)
		session->config.on_overload = OVERLOAD_DROP;
	if (!session->output && !session->with_view && !live_is_wanted(&line->live) &&
	    !session_options_keep(session))
		session->output = "perf.data";
}

/* Parses @words. Returns what options_parse() does. */
static int parse(const struct option_words *words, struct command_line *line)
{
	struct option_result result;
	int err = options_parse(&table, (int)words->nr, words->words, line, &result);

	if (!err && line->service) {
		diag_error("--service has to be the first option, and cannot be in a file");
		err = -EINVAL;
	}
	if (!err && options_has(&table, &result, "keep") && options_has(&table, &result, "ring")) {
		diag_error("give either --keep, which writes all the time, or --ring");
		err = -EINVAL;
	}
	if (!err)
		complete(line, &result);
	return err;
}

int leakrec_options_parse(int argc, char **argv, struct session_options *session,
			  struct leakrec_options *ret)
{
	struct command_line line = {.session = *session};
	int err;

	*ret = (struct leakrec_options){0};
	/* Nobody sees that a service has no reports any more. Its manager starts it again. */
	err = leakrec_service_words(argc, argv, &ret->words, &line.session.needs_live_parser);
	if (!err)
		err = parse(&ret->words, &line);
	ret->pids = line.pids.pids;
	if (err)
		return err;
	*session = line.session;
	session->argc = (int)ret->words.nr;
	session->argv = ret->words.words;
	ret->live = line.live;
	ret->followed = line.followed;
	if (!ret->live.every_ns)
		ret->live.every_ns = LIVE_EVERY_NS;
	err = check_options(&line);
	if (!err)
		err = leakrec_options_check_processes(session);
	ret->narrow = line.narrow;
	/* What is mapped later has none of the calls. */
	session->config.no_heap |= line.narrow != NULL;
	return err ? err : check_live(session, &line.live);
}

void leakrec_options_deinit(struct leakrec_options *options)
{
	option_words_deinit(&options->words);
	free(options->pids);
	*options = (struct leakrec_options){0};
}
