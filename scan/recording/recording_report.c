/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/recording/recording_report.h"

#include "common/diag.h"
#include "common/quantity.h"
#include "report/text/leaks_writer.h"
#include "report/text/summary_rows.h"
#include "scan/recording/recorded_blocks.h"
#include "scan/report/screen.h"

#include <errno.h>
#include <inttypes.h>

#define LINES_OF_ROWS 12 /* with the rest of the screen, 24 */

/* How long nobody watched. */
static void write_gap(FILE *out, const struct analysis *analysis, const struct snapshot *snapshot)
{
	uint64_t stopped_ns = snapshot->taken_ns - snapshot->pause_ns;

	fprintf(out, "The recording is %s long",
		quantity_duration((double)(analysis->end_ns - analysis->start_ns) / 1e9).text);
	if (analysis->known_end_ns && stopped_ns > analysis->end_ns)
		fprintf(out, " and ended %s before that",
			quantity_duration((double)(stopped_ns - analysis->end_ns) / 1e9).text);
	fputs(".\n", out);
	if (analysis->lost)
		fprintf(out,
			"! %" PRIu64 " event%s lost: some of its blocks may not have been held "
			"at its end\n",
			analysis->lost, quantity_word(analysis->lost, " was", "s were"));
	if (analysis->input.truncated)
		fputs("! the recording was cut off: its end is missing\n", out);
	if (analysis_is_in_windows(analysis))
		fputs("! recorded in windows: only blocks that leakrec looked at are known, and some "
		      "may have been freed before its end\n",
		      out);
	if (analysis->unguarded_tasks)
		fputs("! events may be missing: some of its blocks may not have been held at its "
		      "end\n",
		      out);
	if (analysis->input.command.partial)
		fprintf(out,
			"! only a part of the calls was recorded (leakrec %s): some of its blocks may "
			"not have been held at its end\n",
			analysis->input.command.partial);
	if (analysis->input.command.has_sizes) {
		fputs("Only blocks of ", out);
		size_range_write(out, &analysis->input.command.sizes);
		fputs(" bytes were recorded (leakrec --size)\n", out);
	}
}

static void write_totals(FILE *out, const struct leak_report *leaks)
{
	static const struct {
		enum reach_group group;
		const char *words, *explanation;
	} lines[] = {
		{REACH_GROUP_LOST, "lost now", "nothing leads to the block at this address"},
		{REACH_GROUP_NO_HOLDER, "no holder found",
		 "nothing points there: lost, or freed since"},
		{REACH_GROUP_REACHABLE, "still reachable", "the program can get to it"},
		{REACH_GROUP_POINTED, "pointed to", "perhaps by free memory, or by the allocator"},
		{REACH_GROUP_GONE, "gone", "no such block is at this address any more"},
		{REACH_GROUP_UNDECIDED, "not decided", "no holder was found for certain"},
		{REACH_GROUP_NOT_SCANNED, "not scanned",
		 "outside of the heaps, or another block lies there"},
	};

	fprintf(out, "\nOf %s %s, %s, held at its end:\n", quantity_count(leaks->held_blocks).text,
		quantity_word(leaks->held_blocks, "block", "blocks"),
		quantity_bytes((double)leaks->held_bytes).text);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		uint64_t nr = 0, bytes = 0;

		for (int k = 0; k < VERDICT_NR; k++) {
			nr += leaks->reach_of[k].blocks[lines[i].group];
			bytes += leaks->reach_of[k].bytes[lines[i].group];
		}
		if (nr)
			fprintf(out, "  %-15s %s %s, %s: %s\n", lines[i].words,
				quantity_count(nr).text, quantity_word(nr, "block", "blocks"),
				quantity_bytes((double)bytes).text, lines[i].explanation);
	}
}

static int write_screen(FILE *out, const struct scan_report *report,
			const struct leak_report *leaks)
{
	const struct summary_report_style style = {0};
	size_t nr;
	int err;

	if (!screen_begin(out, report->scan))
		return 0;
	write_gap(out, leaks->analysis, report->scan->snapshot);
	if (!leaks->held_blocks) {
		fputs("\nThis process held none of its blocks at its end.\n", out);
		return 0;
	}
	write_totals(out, leaks);
	screen_write_limits(out, report->scan);
	fputs("Nobody saw what was freed since. If a block was, and another of about its size has "
	      "its\naddress now, this is about the other one; leakrec --scan leaves no such gap.\n"
	      "\n",
	      out);
	err = summary_rows_write(out, leaks, LINES_OF_ROWS, &style, &nr);
	if (nr < leaks->nr_causes)
		fprintf(out, "and %zu more; --all shows them\n", leaks->nr_causes - nr);
	return err;
}

int recording_report_write(FILE *out, struct scan_report *report, struct recording_file *file,
			   enum recording_report_rows rows)
{
	const struct leaks_options options = {
		.pid = report->scan->snapshot->pid,
		.kind = HEAP_KIND_MEMORY,
		.limit = rows == RECORDING_REPORT_ALL ? SIZE_MAX : 0,
		.limit_is_of_causes = true,
	};
	struct leak_report leaks = {0};
	int err = recording_read(file, report->scan->snapshot);

	if (!err) {
		err = recorded_blocks_ask(&file->analysis, report);
		if (!err)
			err = leak_report_init(&leaks, &file->analysis, &options);
		if (!err)
			err = rows == RECORDING_REPORT_BLOCKS ? leaks_write(out, &leaks)
							      : write_screen(out, report, &leaks);
		/* The caller checks @out. */
		if (err == -EIO)
			err = 0;
		if (err)
			diag_error("cannot say what has become of the blocks: %s", strerror(-err));
	}
	leak_report_deinit(&leaks);
	return err;
}
