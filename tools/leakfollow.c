/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakfollow: shows every operation on blocks of one size, as it happened. */
#include "common/diag.h"
#include "common/scope.h"
#include "common/size_range.h"
#include "report/text/leaks_writer.h"
#include "report/text/resource_report.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>

static const char usage[] =
	"usage: leakfollow --size SIZE|MIN..MAX [OPTION...] < perf.data\n"
	"       leakfollow --kind KIND [OPTION...] < perf.data\n"
	"Reads a recording by leakrec or perf record and prints every operation on blocks of that\n"
	"size, in time order, with its stack: \"enter\" when a block begins to be held, \"exit\" when\n"
	"it ends, and the number of such blocks held after it.\n"
	"\n"
	"  -s, --size SIZE       the blocks' size (3072, 3k), or a range with both ends included\n"
	"      --kind KIND       resources of that kind (docs/resources.md), or memory; --size may then\n"
	"                        be left out\n"
	"  -i, --input FILE      read FILE, not standard input\n"
	"      --symfs DIR       look for the recorded files below DIR\n"
	"      --debug-dir DIR   look for separate debug files below DIR, before /usr/lib/debug\n"
	"  -h, --help            show this text\n"
	"  -V, --version         show the version\n";

enum { OPTION_SYMFS = 256, OPTION_DEBUG_DIR, OPTION_KIND };

static const struct option long_options[] = {
	{"size", required_argument, NULL, 's'},
	{"kind", required_argument, NULL, OPTION_KIND},
	{"input", required_argument, NULL, 'i'},
	{"symfs", required_argument, NULL, OPTION_SYMFS},
	{"debug-dir", required_argument, NULL, OPTION_DEBUG_DIR},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

struct follow {
	const char *input;
	struct stack_store_options stacks;
	struct size_range range;
	bool has_range;
	const char *kind;
	struct analysis analysis;
	int64_t refcount; /* blocks of that size held now */
	uint64_t entered, exited;
};

/* Returns 0, -EINVAL after saying what is wrong, or 1 if --help or --version was all. */
static int parse_options(int argc, char **argv, struct follow *follow)
{
	int opt;

	follow->stacks.ask_servers = true;
	while ((opt = getopt_long(argc, argv, "s:i:hV", long_options, NULL)) != -1) {
		switch (opt) {
		case 's':
			if (size_range_parse(optarg, &follow->range)) {
				diag_error(
					"--size takes a size like 3072 or 3k, or MIN..MAX, not \"%s\"",
					optarg);
				return -EINVAL;
			}
			follow->has_range = true;
			break;
		case 'i':
			follow->input = optarg;
			break;
		case OPTION_KIND:
			follow->kind = optarg;
			break;
		case OPTION_SYMFS:
			follow->stacks.symfs = optarg;
			break;
		case OPTION_DEBUG_DIR:
			follow->stacks.debug_dir = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 1;
		case 'V':
			puts("leakfollow " LEAKTOOLS_VERSION);
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
	if (!follow->has_range && !follow->kind) {
		diag_error("give the size to follow: --size SIZE or --size MIN..MAX; or --kind");
		return -EINVAL;
	}
	return 0;
}

static void on_change(void *context, const struct heap_change *change)
{
	struct follow *follow = context;

	if (follow->has_range && (!change->block.size_known ||
				  !size_range_has(&follow->range, change->block.size_bytes)))
		return;
	follow->refcount += change->enters ? 1 : -1;
	follow->entered += change->enters;
	follow->exited += !change->enters;
	printf("%s %" PRId64 " ", change->enters ? "enter" : "exit", follow->refcount);
	leaks_write_columns(stdout, &follow->analysis, &change->block, &change->op);
	putchar('\n');
	leaks_write_stack(stdout, &follow->analysis, change->op.stack_id);
}

int main(int argc, char **argv)
{
	struct follow follow = {0};
	struct heap_observer observer = {.context = &follow, .on_change = on_change};
	struct progress progress = {0};
	int err;

	diag_set_tool("leakfollow");
	signal(SIGPIPE, SIG_IGN);
	err = parse_options(argc, argv, &follow);
	if (err)
		return err == 1 ? DIAG_EXIT_OK : DIAG_EXIT_USAGE;

	observer.kind = follow.kind;
	err = analysis_init(&follow.analysis, &follow.stacks, &observer);
	/* Operations are written while the recording is read: perhaps to the same terminal. */
	follow.analysis.progress = isatty(STDOUT_FILENO) ? NULL : &progress;
	if (!err) {
		puts("# columns: enter|exit REFCOUNT SIZE ADDRESS TIME EVENT PID TID COMM FUNCTION STACK");
		err = analysis_read(&follow.analysis, &follow.input, follow.input != NULL);
	}
	if (!err) {
		diag_note("%" PRIu64 " blocks entered, %" PRIu64 " exited, %" PRId64 " still held",
			  follow.entered, follow.exited, follow.refcount);
		resource_report_check_kind(follow.analysis.heaps, follow.kind);
	}
	errno = 0;
	if (fflush(stdout) || ferror(stdout)) {
		diag_error("cannot write: %s", strerror(errno ? errno : EIO));
		err = -EIO;
	}
	if (!err && follow.analysis.input.truncated)
		err = -ENODATA;
	analysis_deinit(&follow.analysis);
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}
