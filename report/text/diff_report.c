/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/diff_report.h"

#include "common/diag.h"
#include "report/text/leaks_text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void write_mark(FILE *out, const char *without_mark, const struct interval_mark *mark)
{
	if (mark->text) {
		fputs(" mark:", out);
		diag_print_escaped(out, mark->text, " \t");
	} else if (mark->number) {
		fprintf(out, " mark-%" PRIu64, mark->number);
	} else {
		fprintf(out, " %s", without_mark);
	}
}

/* The bytes of all stacks that grew: 100 % of a share. */
static double added_bytes(const struct interval *interval)
{
	double sum = 0;

	for (size_t i = 0; i < interval->nr_changes; i++)
		if (interval->changes[i].bytes > 0)
			sum += (double)interval->changes[i].bytes;
	return sum;
}

static int write_changes(FILE *out, const struct diff_interval *diff)
{
	const struct analysis *analysis = diff->analysis;
	const struct interval *interval = diff->interval;
	double added = added_bytes(interval);

	fputs("interval ", out);
	leaks_write_time_since_start(out, analysis, interval->begin_ns);
	fputc(' ', out);
	leaks_write_time_since_start(out, analysis, interval->end_ns);
	write_mark(out, "start", &interval->begin_mark);
	write_mark(out, "end", &interval->end_mark);
	fprintf(out, " %+" PRId64 " %+" PRId64 "\n", interval->bytes, interval->blocks);
	for (size_t i = 0; i < diff->nr_shown; i++) {
		const struct interval_change *change = &interval->changes[i];

		fprintf(out, "change %+" PRId64 " %+" PRId64 " %" PRIu32, change->bytes,
			change->blocks, change->stack_id);
		if (change->bytes > 0)
			fprintf(out, " %.1f%%", 100 * (double)change->bytes / added);
		fputc('\n', out);
		leaks_write_stack(out, analysis, change->stack_id, 0);
	}
	return 0;
}

static void on_interval(void *context, const struct interval *interval)
{
	struct diff_report *report = context;
	const struct diff_writer *writer = &report->writer;
	const struct diff_interval diff = {
		.analysis = report->analysis,
		.interval = interval,
		.nr_shown = report->limit && report->limit < interval->nr_changes
				    ? report->limit
				    : interval->nr_changes,
	};
	int err;

	errno = 0;
	err = writer->write ? writer->write(writer->context, report->out, &diff)
			    : write_changes(report->out, &diff);
	if (!report->err)
		report->err = err;
	report->nr++;
	diag_keep_output_error(report->out, &report->write_errno);
	fflush(report->out);
	diag_keep_output_error(report->out, &report->write_errno);
}

int diff_report_init(struct diff_report *report, const struct analysis *analysis, FILE *out,
		     const struct diff_writer *writer)
{
	const struct interval_observer observer = {report, on_interval};

	*report = (struct diff_report){.analysis = analysis, .out = out};
	report->intervals = intervals_create(&observer);
	if (!report->intervals) {
		diag_error("cannot count changes: out of memory");
		return -ENOMEM;
	}
	if (writer) {
		report->writer = *writer;
		return 0;
	}
	fputs("# changes 1\n"
	      "# columns: interval BEGIN END FROM TO BYTES BLOCKS\n"
	      "# columns: change BYTES BLOCKS STACK SHARE\n",
	      out);
	return 0;
}

void diff_report_deinit(struct diff_report *report)
{
	intervals_destroy(report->intervals);
	report->intervals = NULL;
}

void diff_report_change(void *context, const struct heap_change *change)
{
	struct diff_report *report = context;
	const struct heap_block *block = &change->block;

	if (!report->size || (block->size_known && size_range_has(report->size, block->size_bytes)))
		intervals_change(report->intervals, change);
}

int diff_report_tick(void *context)
{
	struct diff_report *report = context;

	/* The end of the interval may be far off. */
	if (!report->write_errno && diag_output_is_left(report->out))
		report->write_errno = EPIPE;
	return report->write_errno != 0;
}

int diff_report_finish(struct diff_report *report)
{
	int err = intervals_finish(report->intervals, report->analysis->end_ns);

	if (!err)
		err = report->err;
	if (err) {
		diag_error("cannot count changes: %s", strerror(-err));
		return err;
	}
	errno = 0;
	fflush(report->out);
	diag_keep_output_error(report->out, &report->write_errno);
	if (report->write_errno)
		diag_output_failed("the changes", report->write_errno);
	return -report->write_errno;
}
