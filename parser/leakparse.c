/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakparse: tells from a recording which blocks were never released, and what else was odd. */
#include "common/diag.h"
#include "common/scope.h"
#include "parser/leakparse_options.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>

/* "", or where the windows are, for the warning about losses. NULL: out of memory. */
static char *windows_phrase(const struct analysis *analysis)
{
	size_t nr;
	const struct loss_window *windows = loss_windows_list(analysis->loss_windows, &nr);
	_cleanup_free_ char *phrase = NULL;
	size_t len;
	FILE *out = open_memstream(&phrase, &len);

	if (!out)
		return NULL;
	if (nr == 1) {
		fputs(" (within ", out);
		leaks_write_window(out, analysis, &windows[0]);
		fputs(" s after the start)", out);
	} else if (nr > 1) {
		fprintf(out, " (in %zu windows, the first within ", nr);
		leaks_write_window(out, analysis, &windows[0]);
		fputs(", the last within ", out);
		leaks_write_window(out, analysis, &windows[nr - 1]);
		fputs(" s after the start)", out);
	}
	if (fclose(out) != 0)
		return NULL;
	return steal_ptr(phrase);
}

static void warn_of_losses(const struct analysis *analysis)
{
	_cleanup_free_ char *windows = windows_phrase(analysis);

	diag_warn("%" PRIu64 " events were lost%s: a leak whose free is among them is none",
		  analysis->lost, windows ? windows : "");
}

/* " of 3072 bytes", or "" where all sizes are wanted. NULL: out of memory. */
static char *size_phrase(const struct leaks_options *options)
{
	_cleanup_free_ char *phrase = NULL;
	size_t len;
	FILE *out = open_memstream(&phrase, &len);

	if (!out)
		return NULL;
	if (options->size) {
		fputs(" of ", out);
		leaks_write_size(out, options->size);
		fputs(" bytes", out);
	}
	if (fclose(out) != 0)
		return NULL;
	return steal_ptr(phrase);
}

/* The short answer, for whoever watches the terminal. */
static void report(const struct analysis *analysis, const struct leaks_options *options,
		   const struct leaks_totals *totals)
{
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);
	_cleanup_free_ char *of_size = size_phrase(options);
	uint64_t unexpected = 0;

	if (!of_size)
		return;
	/* Operations on blocks from before the recording are what attaching brings. */
	for (size_t i = 0; i < ANOMALY_NR_KINDS; i++)
		if (i != ANOMALY_FREE_UNKNOWN && i != ANOMALY_REALLOC_UNKNOWN)
			unexpected += totals->anomalies[i];
	diag_note("%" PRIu64 " events, %" PRIu64 " allocations, %" PRIu64 " frees%s: %" PRIu64
		  " blocks%s with %" PRIu64 " bytes still held, %" PRIu64
		  " unexpected operations%s, %" PRIu64 " events lost, %" PRIu64 " unwind failures",
		  stats->events, stats->allocations, stats->frees,
		  options->size ? " of all sizes" : "", totals->held_blocks, of_size,
		  totals->held_bytes, unexpected, *of_size ? " on such blocks" : "", analysis->lost,
		  analysis_unwind_failures(analysis));
	if (analysis->lost)
		warn_of_losses(analysis);
}

int main(int argc, char **argv)
{
	struct leakparse_options options = {0};
	struct analysis analysis;
	int err;

	diag_set_tool("leakparse");
	/* A reader that closes the pipe is a write error like others, not a silent death. */
	signal(SIGPIPE, SIG_IGN);
	err = leakparse_options_parse(argc, argv, &options);
	if (err)
		return err == 1 ? DIAG_EXIT_OK : DIAG_EXIT_USAGE;

	err = analysis_init(&analysis, &options.stacks, NULL);
	if (!err)
		err = analysis_read(&analysis, options.input);
	/* What a corrupted file held up to its defect is still worth knowing. */
	if (!err || analysis.input.probe_samples) {
		struct leaks_totals totals;
		int write_err = leaks_count(&analysis, &options.leaks, &totals);

		errno = 0;
		if (!write_err)
			write_err = leaks_write(stdout, &analysis, &options.leaks, &totals);
		if (write_err) {
			diag_error("cannot write the leaks: %s",
				   strerror(errno ? errno : -write_err));
			err = write_err;
		} else {
			report(&analysis, &options.leaks, &totals);
		}
	}
	if (!err && analysis.input.truncated)
		err = -ENODATA;
	analysis_deinit(&analysis);
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}
