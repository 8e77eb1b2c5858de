/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page is one file with all data in it (docs/html-report.md). Data of the recording is JSON
 * that an HTML parser never takes for tags (json_text.h), and the page's Content-Security-Policy
 * allows only its own script. Names have no character that is invisible or changes the direction
 * of writing, because the page shows them as they are.
 */
#include "report/html/html_format.h"

#include "common/quantity.h"
#include "common/json/json_text.h"
#include "common/schema/reach_class.h"
#include "common/scope.h"
#include "parser/verdicts/pairing_audit.h"
#include "report/formats/held_history.h"
#include "report/formats/mark_changes.h"
#include "report/html/html_columns.h"
#include "report/html/html_page.h"
#include "report/text/input_advice.h"
#include "report/text/leak_words.h"
#include "report/text/memory_report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#define MAX_HISTORIES 1000

static void write_number(FILE *out, const char *name, uint64_t number)
{
	json_write_key(out, name);
	fprintf(out, "%" PRIu64 ",", number);
}

static void write_text(FILE *out, const char *name, const char *text)
{
	json_write_key(out, name);
	json_write_string(out, text);
	fputc(',', out);
}

static void write_name(FILE *out, const char *key, const char *name)
{
	json_write_key(out, key);
	json_write_readable(out, name);
	fputc(',', out);
}

/* In windows, it is what the program holds, estimated from the blocks that were looked at. */
static struct quantity_text amount_text(const struct leak_report *report,
					const struct leak_estimate *estimate)
{
	double error = report->in_windows ? sqrt(estimate->bytes_variance) : 0;

	return quantity_bytes_estimate(estimate->bytes, error);
}

/*
 * In the words of leakparse --summary. What is held is memory; what has leaked may also be of other
 * resources that have bytes.
 */
static void write_amounts(FILE *out, const struct leak_report *report)
{
	write_text(out, "held", amount_text(report, &report->estimate).text);
	write_text(out, "leaked", amount_text(report, &report->estimate_leaked).text);
	if (report->estimate_of_all[VERDICT_UNCLEAR].bytes > 0)
		write_text(out, "unclear",
			   amount_text(report, &report->estimate_of_all[VERDICT_UNCLEAR]).text);
	if (report->in_windows && report->held_blocks) {
		json_write_key(out, "estimated");
		fputc('"', out);
		leak_words_estimated(out, NULL, &report->estimate);
		fputs("\",", out);
	}
	json_write_key(out, "of_verdicts");
	for (int i = 0; i < VERDICT_NR; i++) {
		double bytes = report->estimate_of_all[i].bytes;

		/* JSON cannot express infinities. */
		fprintf(out, "%c[%.0f,\"%s\"]", i ? ',' : '[', isfinite(bytes) ? bytes : 0,
			amount_text(report, &report->estimate_of_all[i]).text);
	}
	fputs("],", out);
}

static void write_summary(FILE *out, const struct html_tables *tables)
{
	const struct leak_report *report = tables->report;
	const struct analysis *analysis = report->analysis;
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);
	const struct size_range *size = report->options->size;
	const struct recording_origin *origin = &analysis->input.origin;

	json_write_key(out, "summary");
	fputc('{', out);
	write_number(out, "stacks", tables->nr_stacks);
	write_number(out, "begin_ms",
		     recording_origin_time_of_day(origin, analysis->start_ns) / 1000000);
	write_name(out, "host", origin->host);
	write_name(out, "command", origin->command);
	write_number(out, "duration_us", (uint64_t)html_time_us(tables, analysis->end_ns));
	write_number(out, "events", stats->events);
	write_number(out, "allocations", stats->allocations);
	write_number(out, "frees", stats->frees);
	write_number(out, "allocated_bytes", stats->allocated_bytes);
	write_number(out, "freed_bytes", stats->freed_bytes);
	write_number(out, "held_blocks", report->held_blocks);
	write_number(out, "held_bytes", report->held_bytes);
	write_amounts(out, report);
	write_number(out, "exited_blocks", report->exited_blocks);
	write_number(out, "suppressed_blocks", report->suppressed_blocks);
	if (leak_words_know_certain(report))
		write_number(out, "firm_blocks", report->firm_blocks);
	write_number(out, "double_frees", report->anomalies[ANOMALY_DOUBLE_FREE]);
	fputs("\"moment\":\"", out);
	leak_words_moment(out, analysis);
	fputs("\",", out);
	if (!leak_report_has_held(report))
		write_text(out, "nothing", leak_words_nothing(report));
	if (size)
		fprintf(out, "\"sizes\":[%" PRId64 ",%" PRId64 "],",
			html_json_number(size->min_bytes), html_json_number(size->max_bytes));
	fprintf(out, "\"is_narrowed\":%s},\n", leak_report_is_narrowed(report) ? "true" : "false");
}

/* Where the processes' memory went, as in leakparse --summary; in windows that is not known. */
static int write_memory(FILE *out, const struct leak_report *report)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	FILE *stream = open_memstream(&text, &len);

	if (!stream)
		return -ENOMEM;
	if (!report->in_windows)
		memory_report_write(stream, report);
	if (fclose(stream))
		return -ENOMEM;
	write_text(out, "memory", text);
	return 0;
}

/* What is estimated, and what that depends on. */
static void write_windows(FILE *out, const struct leak_report *report)
{
	char pace[LEAK_WORDS_PACE];

	fprintf(out,
		"\"Recorded in windows, %.3g %% of the time: what is held in all, what has leaked of "
		"it, and growth are estimates for the program; other amounts are of the blocks that "
		"were looked at.\",",
		100 * analysis_observed_share(report->analysis));
	leak_words_pace(report, pace);
	if (*pace)
		fprintf(out, "\"%s.\",", pace);
}

static void write_warnings(FILE *out, const struct html_tables *tables)
{
	const struct analysis *analysis = tables->report->analysis;
	struct audit_finding findings[AUDIT_NR_KINDS];
	uint64_t failures = analysis_unwind_failures(analysis);
	struct input_advice advice;

	fputs("\"warnings\":[", out);
	if (tables->report->in_windows)
		write_windows(out, tables->report);
	if (analysis->input.command.partial)
		fprintf(out,
			"\"Only a part of the calls was recorded (leakrec %s): blocks shown as held may "
			"have been freed.\",",
			analysis->input.command.partial);
	if (analysis->lost)
		fprintf(out, "\"%" PRIu64 " event%s lost: some reported leaks may be false.\",",
			analysis->lost, quantity_word(analysis->lost, " was", "s were"));
	if (analysis->unguarded_tasks)
		fputs("\"Events may be missing: all results are doubtful.\",", out);
	else if (analysis->may_miss)
		fputs("\"First calls of forked processes or of files loaded meanwhile may be "
		      "missing.\",",
		      out);
	if (analysis->input.truncated)
		fputs("\"The recording was cut off: its end is missing.\",", out);
	if (failures)
		fprintf(out, "\"%" PRIu64 " stack%s not reach the outermost frame.\",", failures,
			quantity_word(failures, " does", "s do"));
	if (tables->nr_cut)
		fprintf(out,
			"\"%zu stack%s shown without the innermost frames: there are too "
			"many different stacks.\",",
			tables->nr_cut, quantity_word(tables->nr_cut, " is", "s are"));
	if (tables->nr_left_out)
		fprintf(out,
			"\"Not shown: %zu stack%s without held blocks, and few allocations.\",",
			tables->nr_left_out, quantity_plural(tables->nr_left_out));
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
	input_advice_find(tables->report, &advice);
	for (size_t i = 0; i < advice.nr; i++) {
		json_write_readable(out, advice.lines[i]);
		fputc(',', out);
	}
	fputs("null],\n", out);
}

static void write_words(FILE *out, const char *const *words, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		fputs(i ? "," : "", out);
		json_write_string(out, words[i]);
	}
}

static void write_names(FILE *out, const struct html_tables *tables)
{
	const struct reach *reach = tables->report->analysis->reach;
	size_t nr_groups = tables->report->reach ? REACH_NR_PROOFS : 0;

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
	fputs("],\"reach\":[", out);
	write_words(out, reach_group_words, nr_groups);
	fputs("],\"reach_meanings\":[", out);
	write_words(out, reach_group_meanings, nr_groups);
	fprintf(out, "],\"worst\":%d,\"holders\":[", (int)tables->report->worst);
	for (uint32_t i = HOLDER_FIRST; i < reach_nr_holders(reach); i++) {
		fputs(i > HOLDER_FIRST ? "," : "", out);
		json_write_readable(out, reach_holder_name(reach, i));
	}
	fputs("],\n\"strings\":[", out);
	for (size_t i = 0; i < tables->nr_strings; i++) {
		fputs(i ? ",\n" : "", out);
		json_write_readable(out, tables->strings[i]);
	}
	fputs("],\n", out);
}

/* Rows of the table of sites, the worst first. */
static void write_causes(FILE *out, const struct html_tables *tables)
{
	json_write_key(out, "causes");
	for (size_t i = 0; i < tables->nr_causes; i++)
		fprintf(out, "%c%" PRIu32, i ? ',' : '[', tables->causes[i]);
	fputs(tables->nr_causes ? "],\n" : "[],\n", out);
}

/* The row of each stack: of several with the same number, the first. The caller frees it. */
static uint32_t *index_stacks(const struct html_tables *tables, uint32_t *ret_max)
{
	uint32_t max = 0, *rows;

	for (size_t i = 0; i < tables->nr_stacks; i++)
		if (tables->sites[i].site->stack_id > max)
			max = tables->sites[i].site->stack_id;
	rows = calloc((size_t)max + 1, sizeof(*rows));
	for (size_t i = tables->nr_stacks; rows && i-- > 0;)
		rows[tables->sites[i].site->stack_id] = (uint32_t)i + 1;
	*ret_max = max;
	return rows;
}

/* [row, change of bytes, change of blocks, row, ...] */
static void write_interval(FILE *out, const struct html_tables *tables,
			   const struct marked_interval *interval, const uint32_t *rows,
			   uint32_t max)
{
	const char *separator = "";

	fputc('{', out);
	write_name(out, "from", interval->begin);
	write_name(out, "to", interval->end);
	fprintf(out,
		"\"from_us\":%" PRId64 ",\"to_us\":%" PRId64 ",\"bytes\":%" PRId64 ",\"changes\":[",
		html_time_us(tables, interval->begin_ns), html_time_us(tables, interval->end_ns),
		interval->bytes);
	for (size_t i = 0; i < interval->nr_changes; i++) {
		const struct interval_change *change = &interval->changes[i];

		if (change->stack_id > max || !rows[change->stack_id])
			continue;
		fprintf(out, "%s%" PRIu32 ",%" PRId64 ",%" PRId64, separator,
			rows[change->stack_id] - 1, change->bytes, change->blocks);
		separator = ",";
	}
	fputs("]}", out);
}

/* What changed between marks, if there are any. */
static int write_intervals(FILE *out, const struct html_tables *tables,
			   const struct mark_changes *changes)
{
	uint32_t max, *rows = index_stacks(tables, &max);
	size_t nr = changes && changes->nr > 1 ? changes->nr : 0;

	if (!rows)
		return -ENOMEM;
	json_write_key(out, "intervals");
	fputc('[', out);
	for (size_t i = 0; i < nr; i++) {
		fputs(i ? ",\n" : "", out);
		write_interval(out, tables, &changes->list[i], rows, max);
	}
	fputs("]", out);
	free(rows);
	return 0;
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
	for (size_t i = 0; i < tables->nr_stacks && nr < MAX_HISTORIES; i++) {
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

/* The held amount at the end of each period, and the peak. In windows, neither is known. */
static void write_held(FILE *out, const struct html_tables *tables,
		       const struct held_history *history)
{
	uint64_t start_ns, period_ns, peak_ns;
	struct held_amount peak = held_history_peak(history, &peak_ns);
	size_t nr;
	const struct held_amount *points = held_history_points(history, &nr, &start_ns, &period_ns);

	fprintf(out,
		",\n\"held\":{\"span_us\":%.3f,\"peak_us\":%" PRId64 ",\"peak\":%" PRId64
		",\"end\":[",
		nr ? (double)period_ns / 1000 : 0.0, html_time_us(tables, peak_ns),
		html_json_number(peak.bytes));
	for (size_t i = 0; i < nr; i++)
		fprintf(out, i ? ",%" PRId64 : "%" PRId64, html_json_number(points[i].bytes));
	fputs("]}", out);
}

static int write_data(FILE *out, const struct html_tables *tables, const struct report_input *input)
{
	int err;

	fputs("{\"version\":1,\"tool\":\"leakparse " LEAKTOOLS_VERSION "\",\n", out);
	write_summary(out, tables);
	write_warnings(out, tables);
	write_names(out, tables);
	html_columns_write(out, tables);
	write_causes(out, tables);
	if (!tables->report->in_windows)
		write_histories(out, tables);
	err = write_memory(out, tables->report);
	if (!err)
		err = write_intervals(out, tables, input->changes);
	if (!tables->report->in_windows)
		write_held(out, tables, input->history);
	fputs("}\n", out);
	return err;
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
		err = write_data(out, &tables, input);
		fwrite(html_page_after, 1, html_page_after_bytes, out);
	}
	html_tables_deinit(&tables);
	return err ? err : ferror(out) ? -EIO : 0;
}

const struct report_format html_format = {
	.name = "html", .needs_history = true, .write = write_report};
