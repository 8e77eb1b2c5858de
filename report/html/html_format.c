/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakparse --format html: one file that a browser shows, with all data in it
 * (docs/html-report.md). What comes from the recording stands in it as JSON that no parser of HTML
 * takes for tags (json_text.h), and the page's policy lets nothing run but its own script.
 *
 * Data comes as tables of columns, which report/html/page/model.js reads. Numbers that mostly
 * follow from others are written as the difference to what is expected, mostly 0.
 */
#include "parser/verdicts/pairing_audit.h"
#include "report/formats/formats.h"
#include "report/formats/held_history.h"
#include "report/html/html_page.h"
#include "report/html/html_tables.h"
#include "report/formats/json_text.h"

#include <errno.h>
#include <inttypes.h>

#define MAX_HISTORIES 1000
#define US_PER_S      1e6

/* --- Columns --- */

typedef int64_t column_fn(const struct html_tables *tables, size_t index);

struct column {
	const char *name;
	column_fn *value;
};

/* A column of equal values is one number in place of an array. */
static bool is_constant(const struct html_tables *tables, const struct column *column, size_t nr)
{
	int64_t first = nr ? column->value(tables, 0) : 0;

	for (size_t i = 1; i < nr; i++)
		if (column->value(tables, i) != first)
			return false;
	return nr > 0;
}

static void write_column(FILE *out, const struct html_tables *tables, const struct column *column,
			 size_t nr)
{
	json_write_key(out, column->name);
	if (is_constant(tables, column, nr)) {
		fprintf(out, "%" PRId64, column->value(tables, 0));
		return;
	}
	fputc('[', out);
	for (size_t i = 0; i < nr && !ferror(out); i++)
		fprintf(out, i ? ",%" PRId64 : "%" PRId64, column->value(tables, i));
	fputc(']', out);
}

static void write_columns(FILE *out, const struct html_tables *tables, const char *name,
			  const struct column *columns, size_t nr)
{
	json_write_key(out, name);
	fprintf(out, "{\"nr\":%zu", nr);
	for (; columns->name; columns++) {
		fputc(',', out);
		write_column(out, tables, columns, nr);
	}
	fputs("},\n", out);
}

static int64_t number_of(uint32_t number)
{
	return number == HTML_NONE ? -1 : (int64_t)number;
}

/* What is beyond the numbers that JSON's readers keep exactly is nobody's size. */
static int64_t clamp(uint64_t number)
{
	const uint64_t most = UINT64_C(1) << 53;

	return (int64_t)(number < most ? number : most);
}

static int64_t function_name(const struct html_tables *tables, size_t index)
{
	return number_of(tables->functions.rows[index].of[0]);
}

static int64_t function_module(const struct html_tables *tables, size_t index)
{
	return number_of(tables->functions.rows[index].of[1]);
}

static int64_t function_wrapper(const struct html_tables *tables, size_t index)
{
	return tables->functions.rows[index].of[2];
}

static int64_t frame_function(const struct html_tables *tables, size_t index)
{
	return tables->frames.rows[index].of[0];
}

static int64_t frame_file(const struct html_tables *tables, size_t index)
{
	return number_of(tables->frames.rows[index].of[1]);
}

static int64_t frame_line(const struct html_tables *tables, size_t index)
{
	return tables->frames.rows[index].of[2] & ~HTML_LINE_INLINED;
}

static int64_t frame_inlined(const struct html_tables *tables, size_t index)
{
	return (tables->frames.rows[index].of[2] & HTML_LINE_INLINED) != 0;
}

/* The distance to it; a root's leads to -1. */
static int64_t node_parent(const struct html_tables *tables, size_t index)
{
	return (int64_t)index - number_of(tables->nodes.rows[index].of[0]);
}

static int64_t node_frame(const struct html_tables *tables, size_t index)
{
	return tables->nodes.rows[index].of[1];
}

static int64_t thread_pid(const struct html_tables *tables, size_t index)
{
	return (int32_t)tables->threads.rows[index].of[0];
}

static int64_t thread_tid(const struct html_tables *tables, size_t index)
{
	return (int32_t)tables->threads.rows[index].of[1];
}

static int64_t thread_comm(const struct html_tables *tables, size_t index)
{
	return tables->threads.rows[index].of[2];
}

static const struct column function_columns[] = {
	{"name", function_name}, {"module", function_module}, {"wrapper", function_wrapper}, {0}};
static const struct column frame_columns[] = {{"function", frame_function},
					      {"file", frame_file},
					      {"line", frame_line},
					      {"inlined", frame_inlined},
					      {0}};
static const struct column node_columns[] = {{"parent", node_parent}, {"frame", node_frame}, {0}};
static const struct column thread_columns[] = {
	{"pid", thread_pid}, {"tid", thread_tid}, {"comm", thread_comm}, {0}};

/* --- Sites --- */

static int64_t microseconds(double seconds)
{
	return seconds < 0 || seconds > 1e12 ? -1 : (int64_t)(seconds * US_PER_S);
}

/* Since the recording's start. */
static int64_t time_us(const struct html_tables *tables, uint64_t time_ns)
{
	uint64_t start_ns = tables->report->analysis->start_ns;

	return time_ns > start_ns ? (int64_t)((time_ns - start_ns) / 1000) : 0;
}

static int64_t site_node(const struct html_tables *tables, size_t index)
{
	return number_of(tables->sites[index].node);
}

static int64_t site_verdict(const struct html_tables *tables, size_t index)
{
	const struct site_verdict *verdict = tables->sites[index].verdict;

	return verdict ? (int64_t)verdict->verdict : -1;
}

static int64_t site_doubts(const struct html_tables *tables, size_t index)
{
	const struct site_verdict *verdict = tables->sites[index].verdict;

	return verdict ? verdict->doubts : 0;
}

static int64_t site_blocks(const struct html_tables *tables, size_t index)
{
	return clamp(tables->sites[index].blocks);
}

static int64_t site_bytes(const struct html_tables *tables, size_t index)
{
	return clamp(tables->sites[index].bytes);
}

static int64_t site_doubtful(const struct html_tables *tables, size_t index)
{
	return clamp(tables->sites[index].blocks - tables->sites[index].firm_blocks);
}

static int64_t site_frees(const struct html_tables *tables, size_t index)
{
	return clamp(tables->sites[index].site->frees);
}

static int64_t site_temporaries(const struct html_tables *tables, size_t index)
{
	return clamp(tables->sites[index].site->temporaries);
}

/* Beyond blocks and frees. */
static int64_t site_allocations(const struct html_tables *tables, size_t index)
{
	return clamp(tables->sites[index].site->allocations) - site_blocks(tables, index) -
	       site_frees(tables, index);
}

/* Beyond the bytes held. */
static int64_t site_allocated_bytes(const struct html_tables *tables, size_t index)
{
	return clamp(tables->sites[index].site->allocated_bytes) - site_bytes(tables, index);
}

static int64_t site_peak_bytes(const struct html_tables *tables, size_t index)
{
	return clamp(tables->sites[index].site->peak_bytes) - site_bytes(tables, index);
}

static int64_t site_first_us(const struct html_tables *tables, size_t index)
{
	return time_us(tables, tables->sites[index].site->first_ns);
}

/* After the first. */
static int64_t site_last_us(const struct html_tables *tables, size_t index)
{
	return time_us(tables, tables->sites[index].site->last_ns) - site_first_us(tables, index);
}

/* Less than from the first allocation to the end. */
static int64_t site_oldest_us(const struct html_tables *tables, size_t index)
{
	const struct site_verdict *verdict = tables->sites[index].verdict;

	return verdict ? time_us(tables, tables->report->analysis->end_ns) -
				 site_first_us(tables, index) - microseconds(verdict->oldest_s)
		       : 0;
}

static int64_t site_median_us(const struct html_tables *tables, size_t index)
{
	const struct site *site = tables->sites[index].site;

	if (!site->history || !site->frees)
		return -1;
	return microseconds(lifetime_sketch_quantile(&site->history->lifetimes, 0.5) / 1e9);
}

static int64_t site_p99_us(const struct html_tables *tables, size_t index)
{
	const struct site *site = tables->sites[index].site;

	if (!site->history || !site->frees)
		return -1;
	return microseconds(lifetime_sketch_quantile(&site->history->lifetimes, 0.99) / 1e9);
}

static int64_t site_rate_bytes(const struct html_tables *tables, size_t index)
{
	const struct site_verdict *verdict = tables->sites[index].verdict;

	return verdict && verdict->has_rate && verdict->rate.bytes_per_s < 1e15
		       ? (int64_t)verdict->rate.bytes_per_s
		       : 0;
}

static int64_t site_rate_error(const struct html_tables *tables, size_t index)
{
	const struct site_verdict *verdict = tables->sites[index].verdict;

	return verdict && verdict->has_rate && verdict->rate.bytes_error < 1e15
		       ? (int64_t)verdict->rate.bytes_error
		       : 0;
}

static const struct column site_columns[] = {
	{"node", site_node},
	{"verdict", site_verdict},
	{"doubts", site_doubts},
	{"blocks", site_blocks},
	{"bytes", site_bytes},
	{"doubtful", site_doubtful},
	{"frees", site_frees},
	{"temporaries", site_temporaries},
	{"allocations", site_allocations},
	{"allocated_bytes", site_allocated_bytes},
	{"peak_bytes", site_peak_bytes},
	{"first_us", site_first_us},
	{"last_us", site_last_us},
	{"oldest_us", site_oldest_us},
	{"median_us", site_median_us},
	{"p99_us", site_p99_us},
	{"rate_bytes", site_rate_bytes},
	{"rate_error", site_rate_error},
	{0},
};

/* --- Leaks --- */

static const struct heap_block *block_of(const struct html_tables *tables, size_t index)
{
	return &tables->report->held[tables->leaks[index].block];
}

/* After the site of the leak before. */
static int64_t leak_site(const struct html_tables *tables, size_t index)
{
	int64_t before = index ? tables->leaks[index - 1].site : 0;

	return (int64_t)tables->leaks[index].site - before;
}

static int64_t leak_size(const struct html_tables *tables, size_t index)
{
	return clamp(block_of(tables, index)->size_bytes);
}

static int64_t leak_time_us(const struct html_tables *tables, size_t index)
{
	return time_us(tables, block_of(tables, index)->allocated.time_ns);
}

/* Beyond the address of the leak before. */
static int64_t leak_address(const struct html_tables *tables, size_t index)
{
	int64_t before = index ? clamp(block_of(tables, index - 1)->address) : 0;

	return clamp(block_of(tables, index)->address) - before;
}

static int64_t leak_thread(const struct html_tables *tables, size_t index)
{
	return tables->leaks[index].thread;
}

static int64_t leak_verdict(const struct html_tables *tables, size_t index)
{
	return tables->report->verdicts.blocks[tables->leaks[index].block].verdict;
}

static int64_t leak_doubts(const struct html_tables *tables, size_t index)
{
	return tables->report->verdicts.blocks[tables->leaks[index].block].doubts;
}

static int64_t leak_count(const struct html_tables *tables, size_t index)
{
	return tables->leaks[index].count;
}

static const struct column leak_columns[] = {
	{"site", leak_site},	   {"size", leak_size},	    {"time_us", leak_time_us},
	{"address", leak_address}, {"thread", leak_thread}, {"verdict", leak_verdict},
	{"doubts", leak_doubts},   {"count", leak_count},   {0},
};

/* --- The rest --- */

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
	write_number(out, "duration_us", (uint64_t)time_us(tables, analysis->end_ns));
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
		fprintf(out, "\"sizes\":[%" PRId64 ",%" PRId64 "],", clamp(size->min_bytes),
			clamp(size->max_bytes));
	fprintf(out, "\"is_narrowed\":%s},\n", leak_report_is_narrowed(report) ? "true" : "false");
}

/* Each a sentence, made of our own words. */
static void write_warnings(FILE *out, const struct html_tables *tables)
{
	const struct analysis *analysis = tables->report->analysis;
	struct audit_finding findings[AUDIT_NR_KINDS];
	uint64_t failures = analysis_unwind_failures(analysis);

	fputs("\"warnings\":[", out);
	if (analysis->lost)
		fprintf(out,
			"\"%" PRIu64 " events were lost: a leak whose free is among them is "
			"none.\",",
			analysis->lost);
	if (analysis->unguarded_tasks)
		fputs("\"Events may be missing: what is held is doubtful.\",", out);
	if (analysis->input.truncated)
		fputs("\"The recording was cut off: what it held behind that is missing.\",", out);
	if (failures)
		fprintf(out, "\"%" PRIu64 " stacks do not reach the outermost frame.\",", failures);
	if (tables->nr_cut)
		fprintf(out,
			"\"%zu stacks are shown without their innermost frames: there are too "
			"many different ones.\",",
			tables->nr_cut);
	if (tables->nr_left_out)
		fprintf(out,
			"\"%zu stacks that hold nothing and allocated little are left "
			"out.\",",
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

/* [a period in us, a period's number, blocks more than in the one before, another's, ...] */
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

/* What was held at the end of each period, and at most. */
static void write_held(FILE *out, const struct html_tables *tables,
		       const struct held_history *history)
{
	uint64_t start_ns, period_ns, peak_ns;
	struct held_amount peak = held_history_peak(history, &peak_ns);
	size_t nr;
	const struct held_amount *points = held_history_points(history, &nr, &start_ns, &period_ns);

	fprintf(out,
		"\"held\":{\"span_us\":%.3f,\"peak_us\":%" PRId64 ",\"peak\":%" PRId64 ",\"end\":[",
		nr ? (double)period_ns / 1000 : 0.0, time_us(tables, peak_ns), clamp(peak.bytes));
	for (size_t i = 0; i < nr; i++)
		fprintf(out, i ? ",%" PRId64 : "%" PRId64, clamp(points[i].bytes));
	fputs("]}", out);
}

static void write_data(FILE *out, const struct html_tables *tables,
		       const struct held_history *history)
{
	fputs("{\"version\":1,\"tool\":\"leakparse " LEAKTOOLS_VERSION "\",\n", out);
	write_summary(out, tables);
	write_warnings(out, tables);
	write_names(out, tables);
	write_columns(out, tables, "functions", function_columns, tables->functions.nr);
	write_columns(out, tables, "frames", frame_columns, tables->frames.nr);
	write_columns(out, tables, "nodes", node_columns, tables->nodes.nr);
	write_columns(out, tables, "threads", thread_columns, tables->threads.nr);
	write_columns(out, tables, "sites", site_columns, tables->nr_sites);
	write_columns(out, tables, "leaks", leak_columns, tables->nr_leaks);
	write_histories(out, tables);
	write_held(out, tables, history);
	fputs("}\n", out);
}

int html_format_write(FILE *out, const struct report_input *input)
{
	struct html_tables tables;
	int err = held_history_error(input->history);

	if (err)
		return err;
	err = html_tables_init(&tables, input->report);

	if (!err) {
		fwrite(html_page_before, 1, html_page_before_bytes, out);
		write_data(out, &tables, input->history);
		fwrite(html_page_behind, 1, html_page_behind_bytes, out);
	}
	html_tables_deinit(&tables);
	return err ? err : ferror(out) ? -EIO : 0;
}
