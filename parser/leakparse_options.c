/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/leakparse_options.h"

#include "common/diag.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

static const char usage[] =
	"usage: leakparse [OPTION...] < perf.data > leaks\n"
	"Reads a recording by leakrec or perf record and lists the blocks that were still held at its\n"
	"end, in time order, with the stacks that allocated them, and what was unexpected: double\n"
	"frees, missed frees, failed allocations.\n"
	"\n"
	"  -i, --input FILE      read FILE, not standard input\n"
	"  -s, --size BYTES      only leaks and unexpected operations of blocks of that size, or of\n"
	"                        a range MIN..MAX with both ends included\n"
	"      --list-unknown    list frees of blocks that were not seen allocated, too\n"
	"      --symfs DIR       look for the recorded files below DIR\n"
	"      --debug-dir DIR   look for separate debug files below DIR, before /usr/lib/debug\n"
	"  -h, --help            show this text\n"
	"  -V, --version         show the version\n";

enum { OPTION_LIST_UNKNOWN = 256, OPTION_SYMFS, OPTION_DEBUG_DIR };

static const struct option long_options[] = {
	{"input", required_argument, NULL, 'i'},
	{"size", required_argument, NULL, 's'},
	{"list-unknown", no_argument, NULL, OPTION_LIST_UNKNOWN},
	{"symfs", required_argument, NULL, OPTION_SYMFS},
	{"debug-dir", required_argument, NULL, OPTION_DEBUG_DIR},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

int leakparse_options_parse(int argc, char **argv, struct leakparse_options *options)
{
	int opt;

	options->stacks.ask_servers = true;
	while ((opt = getopt_long(argc, argv, "i:s:hV", long_options, NULL)) != -1) {
		switch (opt) {
		case 'i':
			options->input = optarg;
			break;
		case 's':
			if (size_range_parse(optarg, &options->size)) {
				diag_error("--size takes bytes, or MIN..MAX, not \"%s\"", optarg);
				return -EINVAL;
			}
			options->leaks.size = &options->size;
			break;
		case OPTION_LIST_UNKNOWN:
			options->leaks.list_unknown = true;
			break;
		case OPTION_SYMFS:
			options->stacks.symfs = optarg;
			break;
		case OPTION_DEBUG_DIR:
			options->stacks.debug_dir = optarg;
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
