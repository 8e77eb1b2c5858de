/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakparse: tells from a recording which blocks were never released, and what else was odd. */
#include "common/diag.h"
#include "common/scope.h"
#include "parser/leaks_writer.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>

static const char usage[] =
	"usage: leakparse [OPTION...] < perf.data > leaks\n"
	"Reads a recording by leakrec or perf record and lists the blocks that were still held at its\n"
	"end, in time order, with the stacks that allocated them, and what was unexpected: double\n"
	"frees, missed frees, failed allocations.\n"
	"\n"
	"  -i, --input FILE      read FILE, not standard input\n"
	"      --list-unknown    list frees of blocks that were not seen allocated, too\n"
	"      --symfs DIR       look for the recorded files below DIR\n"
	"  -h, --help            show this text\n"
	"  -V, --version         show the version\n";

enum { OPTION_LIST_UNKNOWN = 256, OPTION_SYMFS };

static const struct option long_options[] = {
	{"input", required_argument, NULL, 'i'},
	{"list-unknown", no_argument, NULL, OPTION_LIST_UNKNOWN},
	{"symfs", required_argument, NULL, OPTION_SYMFS},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

struct options {
	const char *input;
	struct leaks_options leaks;
	struct stack_store_options stacks;
};

/* Returns 0, -EINVAL after saying what is wrong, or 1 if --help or --version was all. */
static int parse_options(int argc, char **argv, struct options *options)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "i:hV", long_options, NULL)) != -1) {
		switch (opt) {
		case 'i':
			options->input = optarg;
			break;
		case OPTION_LIST_UNKNOWN:
			options->leaks.list_unknown = true;
			break;
		case OPTION_SYMFS:
			options->stacks.symfs = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 1;
		case 'V':
			puts("leakparse " LEAKTOOLS_VERSION);
			return 1;
		default:
			return -EINVAL;
		}
	}
	if (optind < argc) {
		diag_error("unexpected argument \"%s\"; give the recording as -i %s", argv[optind],
			   argv[optind]);
		return -EINVAL;
	}
	return 0;
}

/* The short answer, for whoever watches the terminal. */
static void report(const struct analysis *analysis)
{
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);
	const struct heap_block *held;
	uint64_t held_bytes = 0, unexpected = 0;
	size_t nr_held;

	if (heap_tracker_held(analysis->heaps, &held, &nr_held))
		return;
	for (size_t i = 0; i < nr_held; i++)
		held_bytes += held[i].size_bytes;
	/* Operations on blocks from before the recording are what attaching brings. */
	for (size_t i = 0; i < ANOMALY_NR_KINDS; i++)
		if (i != ANOMALY_FREE_UNKNOWN && i != ANOMALY_REALLOC_UNKNOWN)
			unexpected += stats->anomalies[i];
	diag_note("%" PRIu64 " events, %" PRIu64 " allocations, %" PRIu64
		  " frees: %zu blocks with %" PRIu64 " bytes still held, %" PRIu64
		  " unexpected operations, %" PRIu64 " events lost, %" PRIu64 " unwind failures",
		  stats->events, stats->allocations, stats->frees, nr_held, held_bytes, unexpected,
		  analysis->lost, stack_store_unwind_failures(analysis->stacks));
	if (analysis->lost)
		diag_warn("%" PRIu64 " events were lost: a leak whose free is among them is none",
			  analysis->lost);
}

int main(int argc, char **argv)
{
	struct options options = {0};
	struct analysis analysis;
	int err;

	diag_set_tool("leakparse");
	/* A reader that closes the pipe is a write error like others, not a silent death. */
	signal(SIGPIPE, SIG_IGN);
	err = parse_options(argc, argv, &options);
	if (err)
		return err == 1 ? DIAG_EXIT_OK : DIAG_EXIT_USAGE;

	err = analysis_init(&analysis, &options.stacks, NULL);
	if (!err)
		err = analysis_read(&analysis, options.input);
	/* What a corrupted file held up to its defect is still worth knowing. */
	if (!err || analysis.input.probe_samples) {
		int write_err;

		errno = 0;
		write_err = leaks_write(stdout, &analysis, &options.leaks);
		if (write_err) {
			diag_error("cannot write the leaks: %s",
				   strerror(errno ? errno : -write_err));
			err = write_err;
		} else {
			report(&analysis);
		}
	}
	if (!err && analysis.input.truncated)
		err = -ENODATA;
	analysis_deinit(&analysis);
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}
