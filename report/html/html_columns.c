/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/html/html_columns.h"

#include "common/json/json_text.h"

#include <inttypes.h>

#define US_PER_S  1e6
#define S_PER_DAY 86400

typedef int64_t column_fn(const struct html_tables *tables, size_t index);

struct column {
	const char *name;
	column_fn *value;
};

/* A column of equal values is written as one number in place of an array. */
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

static void write_columns(FILE *out, const struct html_tables *tables, const struct column *columns,
			  size_t nr)
{
	for (; columns->name; columns++) {
		fputc(',', out);
		write_column(out, tables, columns, nr);
	}
}

static void begin_table(FILE *out, const char *name, size_t nr)
{
	json_write_key(out, name);
	fprintf(out, "{\"nr\":%zu", nr);
}

static void write_table(FILE *out, const struct html_tables *tables, const char *name,
			const struct column *columns, size_t nr)
{
	begin_table(out, name, nr);
	write_columns(out, tables, columns, nr);
	fputs("},\n", out);
}

static int64_t number_of(uint32_t number)
{
	return number == HTML_NONE ? -1 : (int64_t)number;
}

int64_t html_json_number(uint64_t number)
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

/* The distance to the parent; for a root, to -1. */
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
	{"name", function_name}, {"module", function_module}, {0}};
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

int64_t html_time_us(const struct html_tables *tables, uint64_t time_ns)
{
	uint64_t start_ns = tables->report->analysis->start_ns;

	return time_ns > start_ns ? (int64_t)((time_ns - start_ns) / 1000) : 0;
}

static int64_t site_node(const struct html_tables *tables, size_t index)
{
	return number_of(tables->sites[index].node);
}

static int64_t site_user(const struct html_tables *tables, size_t index)
{
	return tables->sites[index].user;
}

/* Which of the causes of several stacks, counted from 1; 0: it is one by itself. */
static int64_t site_cause(const struct html_tables *tables, size_t index)
{
	uint32_t cause = tables->sites[index].cause;

	return cause == HTML_NONE ? 0 : (int64_t)(cause - tables->nr_stacks + 1);
}

/* Counted from 0; negative: none. */
static int64_t site_holder(const struct html_tables *tables, size_t index)
{
	return (int64_t)tables->sites[index].holder - HOLDER_FIRST;
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
	return html_json_number(tables->sites[index].blocks);
}

static int64_t site_bytes(const struct html_tables *tables, size_t index)
{
	return html_json_number(tables->sites[index].bytes);
}

static int64_t site_doubtful(const struct html_tables *tables, size_t index)
{
	return html_json_number(tables->sites[index].blocks - tables->sites[index].firm_blocks);
}

static int64_t site_frees(const struct html_tables *tables, size_t index)
{
	return html_json_number(tables->sites[index].site->frees);
}

static int64_t site_temporaries(const struct html_tables *tables, size_t index)
{
	return html_json_number(tables->sites[index].site->temporaries);
}

/* More than held blocks and frees. */
static int64_t site_allocations(const struct html_tables *tables, size_t index)
{
	return html_json_number(tables->sites[index].site->allocations) -
	       site_blocks(tables, index) - site_frees(tables, index);
}

/* More than the held bytes. */
static int64_t site_allocated_bytes(const struct html_tables *tables, size_t index)
{
	return html_json_number(tables->sites[index].site->allocated_bytes) -
	       site_bytes(tables, index);
}

static int64_t site_peak_bytes(const struct html_tables *tables, size_t index)
{
	return html_json_number(tables->sites[index].site->peak_bytes) - site_bytes(tables, index);
}

static int64_t site_first_us(const struct html_tables *tables, size_t index)
{
	return html_time_us(tables, tables->sites[index].site->first_ns);
}

/* After the first allocation. */
static int64_t site_last_us(const struct html_tables *tables, size_t index)
{
	return html_time_us(tables, tables->sites[index].site->last_ns) -
	       site_first_us(tables, index);
}

/* The time from the first allocation to the end, less the age of the oldest block. */
static int64_t site_oldest_us(const struct html_tables *tables, size_t index)
{
	const struct site_verdict *verdict = tables->sites[index].verdict;

	return verdict ? html_time_us(tables, tables->report->analysis->end_ns) -
				 site_first_us(tables, index) - microseconds(verdict->oldest_s)
		       : 0;
}

/* A lifetime of freed blocks; -1: there are none. Only what is judged knows better (windows). */
static int64_t raw_lifetime_us(const struct site *site, double quantile)
{
	if (!site->history || !site->frees)
		return -1;
	return microseconds(lifetime_sketch_quantile(&site->history->lifetimes, quantile) / 1e9);
}

/* -1: it is not known, or none was freed. */
static int64_t site_median_us(const struct html_tables *tables, size_t index)
{
	const struct html_site *site = &tables->sites[index];

	return site->verdict ? microseconds(site->verdict->median_s)
			     : raw_lifetime_us(site->site, 0.5);
}

static int64_t site_p99_us(const struct html_tables *tables, size_t index)
{
	const struct html_site *site = &tables->sites[index];

	return site->verdict ? microseconds(site->verdict->p99_s)
			     : raw_lifetime_us(site->site, 0.99);
}

/* Of a slow leak, what comes in a second is less than a byte. */
static int64_t bytes_a_day(double bytes_per_s)
{
	return bytes_per_s < 1e14 ? html_json_number((uint64_t)(bytes_per_s * S_PER_DAY + 0.5)) : 0;
}

static int64_t site_rate_bytes(const struct html_tables *tables, size_t index)
{
	const struct site_verdict *verdict = tables->sites[index].verdict;

	return verdict && verdict->has_rate ? bytes_a_day(verdict->rate.bytes_per_s) : 0;
}

static int64_t site_rate_error(const struct html_tables *tables, size_t index)
{
	const struct site_verdict *verdict = tables->sites[index].verdict;

	return verdict && verdict->has_rate ? bytes_a_day(verdict->rate.bytes_error) : 0;
}

static const struct column site_columns[] = {
	{"node", site_node},
	{"user", site_user},
	{"cause", site_cause},
	{"verdict", site_verdict},
	{"doubts", site_doubts},
	{"blocks", site_blocks},
	{"bytes", site_bytes},
	{"doubtful", site_doubtful},
	{"frees", site_frees},
	{"temporaries", site_temporaries},
	{"allocations", site_allocations},
	{"allocated_bytes", site_allocated_bytes},
	{"first_us", site_first_us},
	{"last_us", site_last_us},
	{"oldest_us", site_oldest_us},
	{"median_us", site_median_us},
	{"p99_us", site_p99_us},
	{"rate_day_bytes", site_rate_bytes},
	{"rate_day_error", site_rate_error},
	{"holder", site_holder},
	{0},
};
static const struct column peak_columns[] = {{"peak_bytes", site_peak_bytes}, {0}};

static void write_sites(FILE *out, const struct html_tables *tables)
{
	begin_table(out, "sites", tables->nr_sites);
	write_columns(out, tables, site_columns, tables->nr_sites);
	/* What a stack held at most is not known in windows. */
	if (!tables->report->in_windows)
		write_columns(out, tables, peak_columns, tables->nr_sites);
	fputs("},\n", out);
}

/* --- Leaks --- */

static const struct heap_block *block_of(const struct html_tables *tables, size_t index)
{
	return &tables->report->held[tables->leaks[index].block];
}

/* The difference to the previous leak. */
static int64_t leak_site(const struct html_tables *tables, size_t index)
{
	int64_t before = index ? tables->leaks[index - 1].site : 0;

	return (int64_t)tables->leaks[index].site - before;
}

static int64_t leak_size(const struct html_tables *tables, size_t index)
{
	return html_json_number(block_of(tables, index)->size_bytes);
}

static int64_t leak_time_us(const struct html_tables *tables, size_t index)
{
	return html_time_us(tables, block_of(tables, index)->allocated.time_ns);
}

/* The difference to the previous leak. */
static int64_t leak_address(const struct html_tables *tables, size_t index)
{
	int64_t before = index ? html_json_number(block_of(tables, index - 1)->address) : 0;

	return html_json_number(block_of(tables, index)->address) - before;
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

static int64_t leak_reach(const struct html_tables *tables, size_t index)
{
	return leak_report_group_of(tables->report, tables->leaks[index].block);
}

/* When its process has exited, if anything came after that: until then it was held. */
static int64_t leak_exit_us(const struct html_tables *tables, size_t index)
{
	const struct heap_op *op = &block_of(tables, index)->allocated;
	const struct process_life life =
		heap_tracker_life(tables->report->analysis->heaps, op->pid, op->time_ns);

	return life.is_told ? html_time_us(tables, life.end_ns) : 0;
}

static int64_t leak_count(const struct html_tables *tables, size_t index)
{
	return tables->leaks[index].count;
}

static const struct column leak_columns[] = {
	{"site", leak_site},
	{"size", leak_size},
	{"time_us", leak_time_us},
	{"address", leak_address},
	{"thread", leak_thread},
	{"verdict", leak_verdict},
	{"doubts", leak_doubts},
	{"reach", leak_reach},
	{"exit_us", leak_exit_us},
	{"count", leak_count},
	{0},
};

void html_columns_write(FILE *out, const struct html_tables *tables)
{
	write_table(out, tables, "functions", function_columns, tables->functions.nr);
	write_table(out, tables, "frames", frame_columns, tables->frames.nr);
	write_table(out, tables, "nodes", node_columns, tables->nodes.nr);
	write_table(out, tables, "threads", thread_columns, tables->threads.nr);
	write_sites(out, tables);
	write_table(out, tables, "leaks", leak_columns, tables->nr_leaks);
}
