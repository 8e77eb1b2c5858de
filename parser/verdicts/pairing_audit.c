/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/verdicts/pairing_audit.h"

static const struct audit_finding findings[AUDIT_NR_KINDS] = {
	[AUDIT_ENTRY_THREAD_ENDED] =
		{
			.key = "entry-thread-ended",
			.what = "calls that were open when their thread ended",
			.effect =
				"none, but a block that such a realloc() released is counted as freed",
		},
	[AUDIT_ENTRY_EXECED] =
		{
			.key = "entry-execed",
			.what = "calls that were open when their process executed another program",
			.effect = "none: the program's memory is gone",
		},
	[AUDIT_ENTRY_JUMPED_OVER] =
		{
			.key = "entry-jumped-over",
			.what = "calls that were open when an outer call returned: longjmp(), an exception, "
				"or the return was lost or skipped by the kernel",
			.effect = "none, if it was an exception; else a block of such a call is "
				  "missing; its free counts as free-unknown",
		},
	[AUDIT_ENTRY_PUSHED_OUT] =
		{
			.key = "entry-pushed-out",
			.what = "calls that never returned while their thread went on: longjmp(), an "
				"exception, or the return was lost or skipped by the kernel",
			.effect = "none, if it was an exception; else a block of such a call is "
				  "missing; its free counts as free-unknown",
		},
	[AUDIT_ENTRY_RECORDING_ENDED] =
		{
			.key = "entry-recording-ended",
			.what = "calls that had not returned when the recording ended",
			.effect = "none, unless longjmp() left them: then a block each is missing",
		},
	[AUDIT_ENTRY_WINDOW_CLOSED] =
		{
			.key = "entry-window-closed",
			.what = "calls that had not returned when a window closed",
			.effect = "none: a block each is missing, like those between windows",
		},
	[AUDIT_RETURN_AT_START] =
		{
			.key = "return-at-start",
			.what = "calls that were open when the recording of their thread began",
			.effect = "blocks of unknown size (doubtful:unpaired)",
		},
	[AUDIT_RETURN_LATER] =
		{
			.key = "return-without-entry",
			.what = "returns whose entries were not seen",
			.effect =
				"blocks of unknown size; a realloc()'s old block may be listed as held "
				"though it is not (doubtful:unpaired)",
		},
	[AUDIT_UNSEEN_FREES] =
		{
			.key = "unseen-free",
			.what = "allocations of an address that was still held",
			.effect =
				"frees were missed: other blocks of these stacks may be listed as held "
				"though they are not (doubtful:unseen-free)",
		},
	[AUDIT_UNLOCATED] =
		{
			.key = "unlocated",
			.what = "posix_memalign() calls whose block is not known",
			.effect = "a block each is missing; its free counts as free-unknown",
		},
	[AUDIT_CLOCK_STEPS] =
		{
			.key = "clock-step",
			.what = "calls that returned on one CPU before they were entered on another: the "
				"CPUs' clocks differ",
			.effect = "blocks of unknown size, and lifetimes as wrong as the clocks",
		},
	[AUDIT_OUT_OF_ORDER] =
		{
			.key = "out-of-order",
			.what = "records that are out of order in time",
			.effect = "a free that came before its allocation leaves the block held",
		},
	[AUDIT_REPEATED] =
		{
			.key = "repeated",
			.what = "records that perf record wrote twice: each is used once",
			.effect = "none",
		},
	[AUDIT_UNDECODABLE] =
		{
			.key = "undecodable",
			.what = "records of events that the file does not describe",
			.effect = "none, if they are other tools'",
		},
};

void pairing_audit(const struct analysis *analysis, struct audit_finding ret[AUDIT_NR_KINDS])
{
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);
	const uint64_t counts[AUDIT_NR_KINDS] = {
		[AUDIT_ENTRY_THREAD_ENDED] = stats->entries[ENTRY_THREAD_ENDED],
		[AUDIT_ENTRY_EXECED] = stats->entries[ENTRY_EXECED],
		[AUDIT_ENTRY_JUMPED_OVER] = stats->entries[ENTRY_JUMPED_OVER],
		[AUDIT_ENTRY_PUSHED_OUT] = stats->entries[ENTRY_PUSHED_OUT],
		[AUDIT_ENTRY_RECORDING_ENDED] = stats->entries[ENTRY_RECORDING_ENDED],
		[AUDIT_ENTRY_WINDOW_CLOSED] = stats->entries[ENTRY_WINDOW_CLOSED],
		[AUDIT_RETURN_AT_START] = stats->returns_at_start,
		[AUDIT_RETURN_LATER] = stats->returns_without_entry - stats->returns_at_start,
		[AUDIT_UNSEEN_FREES] = stats->anomalies[ANOMALY_STILL_HELD],
		[AUDIT_UNLOCATED] = stats->blocks_unlocated,
		[AUDIT_CLOCK_STEPS] = stats->clock_steps,
		[AUDIT_OUT_OF_ORDER] = analysis->input.out_of_order,
		[AUDIT_REPEATED] = analysis->input.repeated,
		[AUDIT_UNDECODABLE] = analysis->input.undecodable,
	};

	for (size_t i = 0; i < AUDIT_NR_KINDS; i++) {
		ret[i] = findings[i];
		ret[i].count = counts[i];
	}
}

bool pairing_audit_misses_tasks(const struct analysis *analysis)
{
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);

	/* Events of a CPU (perf record -a) need no inheritance. */
	return analysis->input.not_inherited && stats->created_tasks && !stats->created_with_events;
}

bool pairing_audit_spoils_all(const struct analysis *analysis)
{
	return analysis->input.out_of_order || heap_tracker_stats(analysis->heaps)->clock_steps ||
	       pairing_audit_misses_tasks(analysis) || analysis->input.command.partial;
}

bool pairing_audit_is_clean(const struct analysis *analysis)
{
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);

	return !pairing_audit_spoils_all(analysis) && !analysis->lost && !analysis->nr_gaps &&
	       !analysis->unguarded_tasks && !analysis->input.truncated &&
	       !stats->anomalies[ANOMALY_STILL_HELD] && !stats->unpaired_reallocs;
}
