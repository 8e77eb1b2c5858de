/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/diff_writer.h"

#include "parser/leaks_writer.h"

#include <errno.h>
#include <inttypes.h>

/* A time since the start, or "?" where there is none: nothing was recorded. */
static void write_time(FILE *out, const struct analysis *analysis, uint64_t time_ns)
{
	uint64_t ns = time_ns > analysis->start_ns ? time_ns - analysis->start_ns : 0;

	fprintf(out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

static void write_end(FILE *out, const char *without_mark, uint64_t mark)
{
	if (mark)
		fprintf(out, " mark-%" PRIu64, mark);
	else
		fprintf(out, " %s", without_mark);
}

/* What was added, and so what a share is one of. */
static double added_bytes(const struct interval *interval)
{
	double sum = 0;

	for (size_t i = 0; i < interval->nr_changes; i++)
		if (interval->changes[i].bytes > 0)
			sum += (double)interval->changes[i].bytes;
	return sum;
}

static void write_interval(FILE *out, const struct analysis *analysis,
			   const struct interval *interval, size_t top)
{
	double added = added_bytes(interval);

	fputs("interval ", out);
	write_time(out, analysis, interval->begin_ns);
	fputc(' ', out);
	write_time(out, analysis, interval->end_ns);
	write_end(out, "start", interval->begin_mark);
	write_end(out, "end", interval->end_mark);
	fprintf(out, " %+" PRId64 " %+" PRId64 "\n", interval->bytes, interval->blocks);
	for (size_t i = 0; i < interval->nr_changes && (!top || i < top); i++) {
		const struct interval_change *change = &interval->changes[i];

		fprintf(out, "change %+" PRId64 " %+" PRId64 " %" PRIu32, change->bytes,
			change->blocks, change->stack_id);
		if (change->bytes > 0)
			fprintf(out, " %.1f%%", 100 * (double)change->bytes / added);
		fputc('\n', out);
		leaks_write_stack(out, analysis, change->stack_id);
	}
}

int diff_write(FILE *out, const struct analysis *analysis, const struct interval *intervals,
	       size_t nr, size_t top)
{
	fputs("# changes 1\n"
	      "# columns: interval BEGIN END FROM TO BYTES BLOCKS\n"
	      "# columns: change BYTES BLOCKS STACK SHARE\n",
	      out);
	for (size_t i = 0; i < nr; i++)
		write_interval(out, analysis, &intervals[i], top);
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
