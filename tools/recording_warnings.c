/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/recording_warnings.h"

#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "report/text/leaks_text.h"

#include <inttypes.h>

/* When events were lost, for the warning about losses; "" if unknown. NULL: out of memory. */
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

static void warn_of_counted(const struct analysis *analysis)
{
	_cleanup_free_ char *windows = windows_phrase(analysis);

	diag_warn("%" PRIu64 " event%s lost%s: some blocks shown as held may have been freed; %s",
		  analysis->lost, quantity_word(analysis->lost, " was", "s were"),
		  windows ? windows : "", input_advice_on_losses(analysis));
}

void recording_warnings_of_losses(const struct analysis *analysis, const char *in_windows)
{
	if (analysis->lost)
		warn_of_counted(analysis);
	if (analysis_is_in_windows(analysis))
		diag_warn("recorded in windows, %.3g %% of the time: %s",
			  100 * analysis_observed_share(analysis), in_windows);
	if (analysis->input.command.partial)
		diag_warn("only a part of the calls was recorded (leakrec %s): blocks shown as "
			  "held may have been freed",
			  analysis->input.command.partial);
	if (analysis->may_miss && !analysis->unguarded_tasks)
		diag_warn(INPUT_ADVICE_FIRST_CALLS);
	if (!analysis->unguarded_tasks)
		return;
	diag_warn("events may be missing, and their number is unknown: %" PRIu64
		  " processes, threads or files were unguarded; " INPUT_ADVICE_UNGUARDED,
		  analysis->unguarded_tasks);
}

void recording_warnings_of_advice(const struct input_advice *advice)
{
	for (size_t i = 0; i < advice->nr; i++)
		diag_warn("%s", advice->lines[i]);
}

void recording_warnings_print(const struct analysis *analysis, const char *in_windows)
{
	struct input_advice advice;

	recording_warnings_of_losses(analysis, in_windows);
	input_advice_on_recording(analysis, &advice);
	recording_warnings_of_advice(&advice);
}
