/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakrec: records what processes allocate and release. */
#include "common/diag.h"
#include "common/scope.h"
#include "recorder/processes/cgroup.h"
#include "recorder/output/compressor.h"
#include "recorder/session/session.h"
#include "top/top_view.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>

#define DEFAULT_RING_PAGES 512

static const char usage[] =
	"usage: leakrec [OPTION...] -p PID[,PID...]\n"
	"       leakrec [OPTION...] -a | --cgroup PATH\n"
	"       leakrec [OPTION...] -- COMMAND [ARG...]\n"
	"Records every allocation and release of the processes, of their threads and of the\n"
	"children they fork, until Ctrl-C, until they are gone, or for a given time.\n"
	"\n"
	"  -p, --pid PID[,PID...]    attach to these processes\n"
	"  -a, --all                 record all processes of the machine, those to come, too\n"
	"      --cgroup PATH         the same of one cgroup (version 2) and those below it\n"
	"      --top                 show what is held, by stack, while it is recorded; nothing is\n"
	"                            kept without -o\n"
	"  -o, --output FILE         write there, \"-\" is a pipe on standard output [perf.data]\n"
	"  -z, --compression-level LEVEL\n"
	"                            compress, at zstd's level 1 to 22; -z alone is 1\n"
	"  -m, --mmap-pages N        pages of each CPU's ring, a power of two [512]\n"
	"  -d, --duration SECONDS    end after that time\n"
	"      --mark-every SECONDS  set a mark each time, as SIGUSR1 does: leakparse can tell\n"
	"                            what changed between marks\n"
	"      --call-graph MODE     stacks: fp, by frame pointers, dwarf[,BYTES], by call frame\n"
	"                            information and at most BYTES of stack, or none [dwarf]\n"
	"      --raw-stacks          with dwarf: write the bytes themselves, for others to unwind\n"
	"      --mismatch            record C++'s operators, too, so that blocks of new[], new and\n"
	"                            malloc that are not released as they must be are found\n"
	"      --free-stacks         record the stacks of frees, too, not just their callers\n"
	"  -s, --size SIZE|MIN..MAX  record only blocks of these sizes (3072, 3k, 4..8k); the others\n"
	"                            cost least\n"
	"      --pair 'GIVING / TAKING'\n"
	"                            record what other functions give and take, too, as in\n"
	"                            'fopen|fdopen:ret / fclose:arg1' (docs/resources.md)\n"
	"      --ref 'UP / DOWN'     record references to objects, too, as in\n"
	"                            'g_object_ref:arg1 / g_object_unref:arg1'\n"
	"      --no-heap             record only what --pair and --ref say, no allocators\n"
	"      --with mmap           record mmap, munmap, mremap and brk, too: memory that is mapped\n"
	"                            without an allocator\n"
	"      --with fd             record what opens and closes file descriptors, too\n"
	"      --filter EVENT:EXPR   record EVENT only where EXPR holds, as in\n"
	"                            \"malloc:bytes > 4096\"; may be given for several events\n"
	"      --perf-events         record by perf events, not by BPF programs (implied by --filter)\n"
	"      --on-overload MODE    when a ring fills up: hold the processes back, or drop events\n"
	"                            [hold]\n"
	"  -h, --help                show this text\n"
	"  -V, --version             show the version\n";

enum {
	OPTION_TOP = 256,
	OPTION_CALL_GRAPH,
	OPTION_CGROUP,
	OPTION_RAW_STACKS,
	OPTION_ON_OVERLOAD,
	OPTION_FREE_STACKS,
	OPTION_FILTER,
	OPTION_PERF_EVENTS,
	OPTION_MARK_EVERY,
	OPTION_PAIR,
	OPTION_REF,
	OPTION_NO_HEAP,
	OPTION_MISMATCH,
	OPTION_WITH,
};

static const struct option long_options[] = {
	{"pid", required_argument, NULL, 'p'},
	{"all", no_argument, NULL, 'a'},
	{"cgroup", required_argument, NULL, OPTION_CGROUP},
	{"top", no_argument, NULL, OPTION_TOP},
	{"output", required_argument, NULL, 'o'},
	{"compression-level", required_argument, NULL, 'z'},
	{"mmap-pages", required_argument, NULL, 'm'},
	{"duration", required_argument, NULL, 'd'},
	{"mark-every", required_argument, NULL, OPTION_MARK_EVERY},
	{"call-graph", required_argument, NULL, OPTION_CALL_GRAPH},
	{"raw-stacks", no_argument, NULL, OPTION_RAW_STACKS},
	{"mismatch", no_argument, NULL, OPTION_MISMATCH},
	{"free-stacks", no_argument, NULL, OPTION_FREE_STACKS},
	{"size", required_argument, NULL, 's'},
	{"pair", required_argument, NULL, OPTION_PAIR},
	{"ref", required_argument, NULL, OPTION_REF},
	{"no-heap", no_argument, NULL, OPTION_NO_HEAP},
	{"with", required_argument, NULL, OPTION_WITH},
	{"filter", required_argument, NULL, OPTION_FILTER},
	{"perf-events", no_argument, NULL, OPTION_PERF_EVENTS},
	{"on-overload", required_argument, NULL, OPTION_ON_OVERLOAD},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

static int parse_number(const char *text, unsigned long max, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	return errno || end == text || *end || *text == '-' || *ret > max ? -EINVAL : 0;
}

static bool has_pid(const pid_t *pids, size_t nr_pids, pid_t pid)
{
	for (size_t i = 0; i < nr_pids; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* Each once, or all that it does would be recorded twice. */
static int parse_pids(const char *text, pid_t **pids, size_t *nr_pids)
{
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy, *word;

	if (!copy)
		return -ENOMEM;
	while ((word = strsep(&rest, ","))) {
		unsigned long pid;
		pid_t *grown;

		if (parse_number(word, INT32_MAX, &pid) || pid == 0) {
			diag_error("-p takes process ids, separated by commas, not \"%s\"", text);
			return -EINVAL;
		}
		if ((pid_t)pid == getpid()) {
			diag_error("cannot record process %d: that is leakrec itself", (int)pid);
			return -EINVAL;
		}
		if (has_pid(*pids, *nr_pids, (pid_t)pid))
			continue;
		grown = reallocarray(*pids, *nr_pids + 1, sizeof(**pids));
		if (!grown)
			return -ENOMEM;
		*pids = grown;
		(*pids)[(*nr_pids)++] = (pid_t)pid;
	}
	return 0;
}

static int parse_ring_pages(const char *text, uint32_t *ret)
{
	unsigned long pages;

	if (parse_number(text, 1 << 20, &pages) || pages == 0 || (pages & (pages - 1))) {
		diag_error("-m takes a power of two up to 1048576, not \"%s\"", text);
		return -EINVAL;
	}
	*ret = (uint32_t)pages;
	return 0;
}

static int parse_call_graph(const char *text, struct record_config *config)
{
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
		diag_error(
			"--call-graph takes fp, dwarf, dwarf,BYTES (up to %d) or none, not \"%s\"",
			RECORD_MAX_DUMP_BYTES, text);
		return -EINVAL;
	}
	return 0;
}

static int parse_on_overload(const char *text, enum on_overload *ret)
{
	if (strcmp(text, "hold") != 0 && strcmp(text, "drop") != 0) {
		diag_error("--on-overload takes hold or drop, not \"%s\"", text);
		return -EINVAL;
	}
	*ret = strcmp(text, "hold") == 0 ? OVERLOAD_HOLD : OVERLOAD_DROP;
	return 0;
}

/* @text: NULL for the default, as in perf record -z. */
static int parse_compression_level(const char *text, int *ret)
{
	unsigned long level = COMPRESSOR_DEFAULT_LEVEL;

	if (text && (parse_number(text, COMPRESSOR_MAX_LEVEL, &level) || level == 0)) {
		diag_error("-z takes a level from 1 to %d, not \"%s\"", COMPRESSOR_MAX_LEVEL, text);
		return -EINVAL;
	}
	*ret = (int)level;
	return 0;
}

static int parse_sizes(const char *text, struct record_config *config)
{
	if (size_range_parse(text, &config->sizes)) {
		diag_error("--size takes a size like 3072 or 3k, or MIN..MAX, not \"%s\"", text);
		return -EINVAL;
	}
	config->has_sizes = true;
	return 0;
}

static int parse_filter(const char *text, struct record_config *config)
{
	size_t len = strcspn(text, ":");

	if (len == 0 || !text[len] || !text[len + 1]) {
		diag_error("--filter takes EVENT:EXPR, as in \"malloc:bytes > 4096\", not \"%s\"",
			   text);
		return -EINVAL;
	}
	if (config->nr_filters == RECORD_MAX_FILTERS) {
		diag_error("--filter can be given %d times", RECORD_MAX_FILTERS);
		return -EINVAL;
	}
	config->filters[config->nr_filters++] = text;
	config->perf_events = true;
	return 0;
}

/* What is recorded beside allocators: words, separated by commas. */
static int parse_with(const char *text, struct record_config *config)
{
	static const struct {
		const char *word;
		enum syscall_group group;
	} groups[] = {{"mmap", SYSCALL_MAPPINGS}, {"fd", SYSCALL_DESCRIPTORS}};
	const char *word = text;

	for (;;) {
		size_t len = strcspn(word, ","), i = 0;

		while (i < ARRAY_SIZE(groups) &&
		       (strlen(groups[i].word) != len || memcmp(word, groups[i].word, len) != 0))
			i++;
		if (i == ARRAY_SIZE(groups)) {
			diag_error("--with takes mmap and fd, not \"%s\"", text);
			return -EINVAL;
		}
		config->syscalls |= groups[i].group;
		if (!word[len])
			return 0;
		word += len + 1;
	}
}

/* @option stands in messages. */
static int parse_seconds(const char *option, const char *text, uint64_t *ret_ns)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !isfinite(seconds) || seconds <= 0 || seconds > 1e9) {
		diag_error("%s takes seconds, not \"%s\"", option, text);
		return -EINVAL;
	}
	*ret_ns = (uint64_t)(seconds * 1e9) + 1;
	return 0;
}

/* What goes together. Returns 0, or -EINVAL after saying what does not. */
static int check_options(const struct session_options *options, bool is_all)
{
	const struct record_config *config = &options->config;
	int nr_ways = (options->command != NULL) + (options->nr_pids > 0) + is_all +
		      (options->cgroup != NULL);
	const char *wrong = NULL;

	if (nr_ways != 1)
		wrong = "give either -p PID, -a, --cgroup PATH, or a command to record; see "
			"leakrec --help";
	else if (options->with_view && !options->nr_pids)
		wrong = "--top goes with -p PID: others would write to the same terminal, or be it";
	else if (options->with_view && options->output && strcmp(options->output, "-") == 0)
		wrong = "--top draws on standard output: give -o a file";
	else if (config->scope != RECORD_PROCESSES && options->resources->nr)
		wrong = "--pair and --ref go with -p PID or a command: not with -a or --cgroup";
	else if (config->raw_stacks && config->call_graph != CALL_GRAPH_DWARF)
		wrong = "--raw-stacks goes with --call-graph dwarf";
	else if (config->has_sizes && config->perf_events)
		wrong = "--size is the BPF programs' work: without --perf-events and --filter";
	if (wrong)
		diag_error("%s", wrong);
	return wrong ? -EINVAL : 0;
}

/* As parse_options(), of one option, whose argument is in optarg. */
static int parse_option(int opt, struct session_options *options, pid_t **pids)
{
	int err = 0;

	switch (opt) {
	case 'p':
		err = parse_pids(optarg, pids, &options->nr_pids);
		break;
	case 'a':
		options->config.scope = RECORD_SYSTEM_WIDE;
		break;
	case OPTION_CGROUP:
		options->cgroup = optarg;
		break;
	case OPTION_TOP:
		options->with_view = true;
		break;
	case 'o':
		options->output = optarg;
		break;
	case 'z':
		err = parse_compression_level(optarg, &options->compression_level);
		break;
	case 'm':
		err = parse_ring_pages(optarg, &options->config.ring_pages);
		break;
	case 'd':
		err = parse_seconds("-d", optarg, &options->duration_ns);
		break;
	case OPTION_MARK_EVERY:
		err = parse_seconds("--mark-every", optarg, &options->mark_every_ns);
		break;
	case OPTION_CALL_GRAPH:
		err = parse_call_graph(optarg, &options->config);
		break;
	case OPTION_RAW_STACKS:
		options->config.raw_stacks = true;
		break;
	case OPTION_MISMATCH:
		options->mismatch = true;
		options->config.free_stacks = true;
		break;
	case OPTION_FREE_STACKS:
		options->config.free_stacks = true;
		break;
	case 's':
		err = parse_sizes(optarg, &options->config);
		break;
	case OPTION_PAIR:
		err = resource_specs_add(options->resources, "--pair", optarg);
		break;
	case OPTION_REF:
		err = resource_specs_add(options->resources, "--ref", optarg);
		break;
	case OPTION_NO_HEAP:
		options->config.no_heap = true;
		break;
	case OPTION_FILTER:
		err = parse_filter(optarg, &options->config);
		break;
	case OPTION_WITH:
		err = parse_with(optarg, &options->config);
		break;
	case OPTION_PERF_EVENTS:
		options->config.perf_events = true;
		break;
	case OPTION_ON_OVERLOAD:
		err = parse_on_overload(optarg, &options->config.on_overload);
		break;
	case 'h':
		fputs(usage, stdout);
		return 1;
	case 'V':
		puts("leakrec " LEAKTOOLS_VERSION);
		return 1;
	default:
		err = -EINVAL;
	}
	return err;
}

/* Returns 0, -EINVAL after saying what is wrong, or 1 if --help or --version was all. */
static int parse_options(int argc, char **argv, struct session_options *options, pid_t **pids)
{
	bool is_all;
	int opt, err = 0;

	/* "+": options end where the command begins. */
	while (!err &&
	       (opt = getopt_long(argc, argv, "+p:ao:z::m:d:s:hV", long_options, NULL)) != -1)
		err = parse_option(opt, options, pids);
	is_all = options->config.scope == RECORD_SYSTEM_WIDE;
	options->pids = *pids;
	if (optind < argc)
		options->command = argv + optind;
	if (options->cgroup)
		options->config.scope = RECORD_CGROUP;
	if (!options->output && !options->with_view)
		options->output = "perf.data";
	return err ? err : check_options(options, is_all);
}

/* "leakrec --top: leaky_daemon (4165)" */
static void describe_targets(const struct session_options *options, char *ret, size_t size)
{
	pid_t pid = options->pids ? options->pids[0] : 0;
	char path[32], comm[32] = "?";
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *name = NULL;
	size_t name_size;
	FILE *out;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (f && fgets(comm, sizeof(comm), f))
		comm[strcspn(comm, "\n")] = '\0';
	out = open_memstream(&name, &name_size);
	if (out) {
		diag_print_escaped(out, comm, NULL);
		if (fclose(out) != 0)
			name = NULL;
	}
	if (options->nr_pids > 1)
		snprintf(ret, size, "leakrec --top: %zu processes", options->nr_pids);
	else
		snprintf(ret, size, "leakrec --top: %s (%d)", name ? name : "?", (int)pid);
}

static int run_with_top(struct session_options *options)
{
	struct top_view view;
	char title[128];
	int err, status;

	describe_targets(options, title, sizeof(title));
	if (top_view_start(title, &view))
		return DIAG_EXIT_FAILED;
	options->view_fd = view.stream_fd;
	options->status = view.status;
	err = session_run(options);
	status = top_view_finish(&view);
	return err ? DIAG_EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
	_cleanup_free_ pid_t *pids = NULL;
	struct resource_specs resources = {0};
	struct session_options options = {
		.view_fd = -1,
		.resources = &resources,
		.config =
			{
				.cgroup_fd = -1,
				.on_overload = OVERLOAD_HOLD,
				.call_graph = CALL_GRAPH_DWARF,
				.ring_pages = DEFAULT_RING_PAGES,
			},
		.argc = argc,
		.argv = argv,
	};
	int err, status;

	diag_set_tool("leakrec");
	err = parse_options(argc, argv, &options, &pids);
	if (err)
		status = err == 1 ? DIAG_EXIT_OK : DIAG_EXIT_USAGE;
	else if (options.cgroup && (options.config.cgroup_fd = cgroup_open(options.cgroup)) < 0)
		status = DIAG_EXIT_FAILED;
	else if (options.with_view)
		status = run_with_top(&options);
	else
		status = session_run(&options) ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
	resource_specs_deinit(&resources);
	return status;
}
