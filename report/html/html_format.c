/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page is one file with all data in it (docs/html-report.md). Data of the recording is JSON
 * that an HTML parser never takes for tags (json_text.h), and the page's Content-Security-Policy
 * allows only its own script.
 */
#include "report/html/html_format.h"

#include "parser/verdicts/pairing_audit.h"
#include "report/formats/held_history.h"
#include "report/formats/json_text.h"
#include "report/html/html_columns.h"
#include "report/html/html_page.h"

#include <errno.h>
#include <inttypes.h>

#define MAX_HISTORIES 1000

static void write_number(FILE *out, const char *name, uint64_t number)
{
	json_write_key(out, name);
	fprintf(out, "%" PRIu64 ",", number);
}

static void write_summary(FILE *out, const struct html_tables *tables)
{
	const struct leak_report *report = tables->report;
	const struct analysis *analysis = report->analysis;
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);
	const struct size_range *size = report->options->size;

	json_write_key(out, "summary");
	fputc('{', out);
	write_number(out, "duration_us", (uint64_t)html_time_us(tables, analysis->end_ns));
	write_number(out, "events", stats->events);
	write_number(out, "allocations", stats->allocations);
	write_number(out, "frees", stats->frees);
	write_number(out, "allocated_bytes", stats->allocated_bytes);
	write_number(out, "freed_bytes", stats->freed_bytes);
	write_number(out, "held_blocks", report->held_blocks);
	write_number(out, "held_bytes", report->held_bytes);
	write_number(out, "suppressed_blocks", report->suppressed_blocks);
	write_number(out, "firm_blocks", report->firm_blocks);
	write_number(out, "double_frees", report->anomalies[ANOMALY_DOUBLE_FREE]);
	if (size)
		fprintf(out, "\"sizes\":[%" PRId64 ",%" PRId64 "],",
			html_json_number(size->min_bytes), html_json_number(size->max_bytes));
	fprintf(out, "\"is_narrowed\":%s},\n", leak_report_is_narrowed(report) ? "true" : "false");
}

/* Sentences without names from the recording. */
static void write_warnings(FILE *out, const struct html_tables *tables)
{
	const struct analysis *analysis = tables->report->analysis;
	struct audit_finding findings[AUDIT_NR_KINDS];
	uint64_t failures = analysis_unwind_failures(analysis);

	fputs("\"warnings\":[", out);
	if (analysis->lost)
		fprintf(out, "\"%" PRIu64 " events were lost: some reported leaks may be false.\",",
			analysis->lost);
	if (analysis->unguarded_tasks)
		fputs("\"Events may be missing: all results are doubtful.\",", out);
	if (analysis->input.truncated)
		fputs("\"The recording was cut off: its end is missing.\",", out);
	if (failures)
		fprintf(out, "\"%" PRIu64 " stacks do not reach the outermost frame.\",", failures);
	if (tables->nr_cut)
		fprintf(out,
			"\"%zu stacks are shown without their innermost frames: there are too "
			"many different stacks.\",",
			tables->nr_cut);
	if (tables->nr_left_out)
		fprintf(out,
			"\"%zu stacks that hold nothing and allocated little are not shown.\",",
			tables->nr_left_out);
	pairing_audit(analysis, findings);
	for (size_t i = 0; i < AUDIT_NR_KINDS; i++) {
		if (!findings[i].count)
			continue;
		fprintf(out, "[%" PRIu64 ",", findings[i].count);
		json_write_string(out, findings[i].what);
		fputc(',', out);
		json_write_string(out, findings[i].effect);
		fputs("],", out);
	}
	fputs("null],\n", out);
}

static void write_names(FILE *out, const struct html_tables *tables)
{
	fputs("\"verdicts\":[", out);
	for (int i = 0; i < VERDICT_NR; i++) {
		fputs(i ? "," : "", out);
		json_write_string(out, verdict_name((enum verdict)i));
	}
	fputs("],\"doubts\":[", out);
	for (unsigned int i = 0; i < DOUBT_NR; i++) {
		fputs(i ? "," : "", out);
		json_write_string(out, doubt_name(i));
	}
	fputs("],\n\"strings\":[", out);
	for (size_t i = 0; i < tables->nr_strings; i++) {
		fputs(i ? ",\n" : "", out);
		json_write_string(out, tables->strings[i]);
	}
	fputs("],\n", out);
}

/* [length of a period in us, period, change of blocks in it, period, change, ...] */
static void write_history(FILE *out, const struct site_history *history)
{
	fprintf(out, "[%.3f", (double)(UINT64_C(1) << history->shift) / 1000);
	for (int i = 0; i < SITE_PERIODS; i++) {
		int64_t more =
			(int64_t)history->periods[i].allocated - (int64_t)history->periods[i].ended;

		if (more)
			fprintf(out, ",%d,%" PRId64, i, more);
	}
	fputc(']', out);
}

static void write_histories(FILE *out, const struct html_tables *tables)
{
	const char *separator = "";
	size_t nr = 0;

	fputs("\"histories\":{", out);
	for (size_t i = 0; i < tables->nr_sites && nr < MAX_HISTORIES; i++) {
		const struct site_history *history = tables->sites[i].site->history;

		if (!history || history->shift > 63)
			continue;
		fprintf(out, "%s\"%zu\":", separator, i);
		write_history(out, history);
		separator = ",";
		nr++;
	}
	fputs("},\n", out);
}

/* The held amount at the end of each period, and the peak. */
static void write_held(FILE *out, const struct html_tables *tables,
		       const struct held_history *history)
{
	uint64_t start_ns, period_ns, peak_ns;
	struct held_amount peak = held_history_peak(history, &peak_ns);
	size_t nr;
	const struct held_amount *points = held_history_points(history, &nr, &start_ns, &period_ns);

	fprintf(out,
		"\"held\":{\"span_us\":%.3f,\"peak_us\":%" PRId64 ",\"peak\":%" PRId64 ",\"end\":[",
		nr ? (double)period_ns / 1000 : 0.0, html_time_us(tables, peak_ns),
		html_json_number(peak.bytes));
	for (size_t i = 0; i < nr; i++)
		fprintf(out, i ? ",%" PRId64 : "%" PRId64, html_json_number(points[i].bytes));
	fputs("]}", out);
}

static void write_data(FILE *out, const struct html_tables *tables,
		       const struct held_history *history)
{
	fputs("{\"version\":1,\"tool\":\"leakparse " LEAKTOOLS_VERSION "\",\n", out);
	write_summary(out, tables);
	write_warnings(out, tables);
	write_names(out, tables);
	html_columns_write(out, tables);
	write_histories(out, tables);
	write_held(out, tables, history);
	fputs("}\n", out);
}

static int write_report(FILE *out, const struct report_input *input)
{
	struct html_tables tables;
	int err = held_history_error(input->history);

	if (err)
		return err;
	err = html_tables_init(&tables, input->report);
	if (!err) {
		fwrite(html_page_before, 1, html_page_before_bytes, out);
		write_data(out, &tables, input->history);
		fwrite(html_page_after, 1, html_page_after_bytes, out);
	}
	html_tables_deinit(&tables);
	return err ? err : ferror(out) ? -EIO : 0;
}

const struct report_format html_format = {
	.name = "html", .needs_history = true, .write = write_report};
