/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON format (docs/json-format.md), written without building a document in memory. */
#include "common/json/json_text.h"
#include "common/scope.h"
#include "parser/windows/observed_time.h"
#include "report/formats/formats.h"
#include "report/names/named_stack.h"
#include "report/text/cause_holder.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define VERSION 1

static const char *const anomaly_keys[ANOMALY_NR_KINDS] = {
	[ANOMALY_FREE_UNKNOWN] = "free_unknown", [ANOMALY_DOUBLE_FREE] = "double_free",
	[ANOMALY_STILL_HELD] = "still_held",	 [ANOMALY_REALLOC_UNKNOWN] = "realloc_unknown",
	[ANOMALY_ALLOC_FAILED] = "alloc_failed", [ANOMALY_MISMATCH] = "mismatch",
};

static void write_u64(FILE *out, const char *key, uint64_t value)
{
	fprintf(out, "\"%s\":%" PRIu64 ",", key, value);
}

/* JSON cannot express NaN and infinities. */
static void write_number(FILE *out, const char *key, double value)
{
	if (isfinite(value))
		fprintf(out, "\"%s\":%.9g", key, value);
	else
		fprintf(out, "\"%s\":null", key);
}

static void write_double(FILE *out, const char *key, double value, bool is_null)
{
	write_number(out, key, is_null ? (double)NAN : value);
	fputc(',', out);
}

/* Seconds since the recording's first event, with all nine decimals. */
static void write_time(FILE *out, const char *key, const struct analysis *analysis,
		       uint64_t time_ns)
{
	uint64_t since = time_ns > analysis->start_ns ? time_ns - analysis->start_ns : 0;

	fprintf(out, "\"%s\":%" PRIu64 ".%09" PRIu64 ",", key, since / 1000000000,
		since % 1000000000);
}

static void write_doubts(FILE *out, unsigned int doubts)
{
	const char *separator = "";

	fputs("\"doubts\":[", out);
	for (unsigned int i = 0; i < DOUBT_NR; i++) {
		if (!(doubts & 1u << i))
			continue;
		fprintf(out, "%s\"%s\"", separator, doubt_name(i));
		separator = ",";
	}
	fputs("]", out);
}

/* Where the only pointer to a block that a scan calls lost may be. */
static void write_unseen(FILE *out, const struct reach *reach)
{
	const char *what;
	pid_t pid;

	fputs("\"not_seen\":[", out);
	for (size_t i = 0; (what = reach_unseen(reach, i, &pid)); i++) {
		fprintf(out, "%s{\"pid\":%d,\"what\":", i ? "," : "", (int)pid);
		json_write_string(out, what);
		fputc('}', out);
	}
	fputs("],", out);
}

static void write_summary(FILE *out, const struct leak_report *report)
{
	const struct analysis *analysis = report->analysis;
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);

	fputs("\"summary\":{", out);
	write_u64(out, "events", stats->events);
	write_u64(out, "allocations", stats->allocations);
	write_u64(out, "frees", stats->frees);
	write_u64(out, "allocated_bytes", stats->allocated_bytes);
	write_u64(out, "freed_bytes", stats->freed_bytes);
	write_u64(out, "held_blocks", report->held_blocks);
	write_u64(out, "held_bytes", report->held_bytes);
	write_u64(out, "firm_blocks", report->firm_blocks);
	write_u64(out, "suppressed_blocks", report->suppressed_blocks);
	write_u64(out, "suppressed_bytes", report->suppressed_bytes);
	write_u64(out, "stacks", report->nr_sites);
	if (stats->own_mappings) {
		write_u64(out, "own_mappings", stats->own_mappings);
		write_u64(out, "own_mapped_bytes", stats->own_mapped_bytes);
	}
	if (stats->forgetful_children)
		write_u64(out, "forgetful_children", stats->forgetful_children);
	if (analysis->input.command.partial)
		fputs("\"filtered\":true,", out);
	if (analysis->input.command.has_sizes) {
		fputs("\"recorded_size\":\"", out);
		size_range_write(out, &analysis->input.command.sizes);
		fputs("\",", out);
	}
	write_u64(out, "lost", analysis->lost);
	if (analysis->may_miss)
		write_u64(out, "lost_more", 1);
	if (analysis->unguarded_tasks)
		write_u64(out, "unguarded_tasks", analysis->unguarded_tasks);
	write_u64(out, "unwind_failures", analysis_unwind_failures(analysis));
	for (size_t i = 0; i < ANOMALY_NR_KINDS; i++)
		write_u64(out, anomaly_keys[i], report->anomalies[i]);
	write_time(out, "duration_s", analysis, analysis->end_ns);
	if (report->reach)
		write_unseen(out, analysis->reach);
	fprintf(out, "\"truncated\":%s,\"narrowed\":%s},\n",
		analysis->input.truncated ? "true" : "false",
		leak_report_is_narrowed(report) || report->options->size ? "true" : "false");
}

/* What the listed blocks stand for. */
static void write_estimate(FILE *out, const struct leak_estimate *estimate)
{
	write_double(out, "estimated_blocks", estimate->blocks, false);
	write_double(out, "estimated_blocks_error", sqrt(estimate->blocks_variance), false);
	write_double(out, "estimated_bytes", estimate->bytes, false);
	write_double(out, "estimated_bytes_error", sqrt(estimate->bytes_variance), false);
}

/* Nothing if all time was observed. */
static void write_windows(FILE *out, const struct leak_report *report)
{
	const struct heap_tracker_stats *stats = heap_tracker_stats(report->analysis->heaps);

	if (!report->in_windows)
		return;
	fputs("\"windows\":{", out);
	write_u64(out, "opened", heap_tracker_observed(report->analysis->heaps)->nr_opened);
	write_double(out, "observed", analysis_observed_share(report->analysis), false);
	write_estimate(out, &report->estimate);
	write_u64(out, "unobserved_blocks", stats->unobserved_blocks);
	write_u64(out, "followed_blocks", stats->followed_blocks);
	fprintf(out, "\"looks\":%" PRIu64 "},\n", stats->looks);
}

static void write_i64(FILE *out, const char *key, int64_t value)
{
	fprintf(out, "\"%s\":%" PRId64 ",", key, value);
}

static void write_point(FILE *out, const struct analysis *analysis,
			const struct memory_point *point)
{
	static const char *const names[MEMORY_NR_VALUES] = MEMORY_VALUE_NAMES;

	fputc('{', out);
	write_time(out, "time_s", analysis, point->time_ns);
	for (size_t i = 0; i < MEMORY_NR_VALUES; i++)
		write_u64(out, names[i], point->bytes[i]);
	fprintf(out, "\"recorded\":%" PRIu64 "}", point->recorded.bytes);
}

static void write_process_memory(FILE *out, const struct analysis *analysis,
				 const struct memory_process *process)
{
	const char *comm = heap_tracker_comm_of(analysis->heaps, process->pid);

	fprintf(out, "{\"pid\":%d,\"comm\":", process->pid);
	json_write_string(out, *comm ? comm : process->comm);
	fputs(",\"peak\":", out);
	write_point(out, analysis, &process->peak);
	fputs(",\"last\":", out);
	write_point(out, analysis, &process->last);
	fputs(",\n \"points\":[", out);
	for (size_t i = 0; i < process->nr_points; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		write_point(out, analysis, &process->points[i]);
	}
	fputs("]}", out);
}

/* Nothing if leakrec has not sampled the processes' memory. */
static void write_memory(FILE *out, const struct analysis *analysis)
{
	const struct memory_process *process = memory_usage_next(analysis->memory, NULL);
	const char *separator = "\n";
	struct memory_balance balance;

	if (!process)
		return;
	memory_usage_balance(analysis->memory, &balance);
	fputs("\"memory\":{", out);
	write_u64(out, "processes", balance.nr_processes);
	write_u64(out, "ended", balance.nr_ended);
	write_time(out, "until_s", analysis, balance.until_ns);
	write_i64(out, "rss", balance.rss);
	write_i64(out, "recorded", balance.recorded);
	write_i64(out, "other", balance.other);
	write_i64(out, "file", balance.file);
	write_i64(out, "shared", balance.shared);
	write_i64(out, "swap", balance.swap);
	write_i64(out, "data", balance.data);
	fputs("\"samples\":[", out);
	for (; process; process = memory_usage_next(analysis->memory, process)) {
		fputs(separator, out);
		separator = ",\n";
		write_process_memory(out, analysis, process);
	}
	fputs("]},\n", out);
}

static void write_frame(FILE *out, const struct named_frame *frame)
{
	fputs("{\"name\":", out);
	json_write_string(out, frame->name);
	fputs(",\"module\":", out);
	json_write_string(out, frame->module);
	fputs(",\"file\":", out);
	json_write_string(out, frame->file);
	if (frame->line > 0)
		fprintf(out, ",\"line\":%d", frame->line);
	else
		fputs(",\"line\":null", out);
	if (frame->module)
		fprintf(out, ",\"offset\":%" PRIu64, frame->module_offset);
	fprintf(out, ",\"inlined\":%s}", frame->inlined ? "true" : "false");
}

static void write_rate(FILE *out, const struct site_verdict *verdict)
{
	if (!verdict->has_rate) {
		fputs("\"growth\":null,", out);
		return;
	}
	fputs("\"growth\":{", out);
	write_double(out, "blocks_per_s", verdict->rate.blocks_per_s, false);
	write_double(out, "blocks_error", verdict->rate.blocks_error, false);
	write_double(out, "bytes_per_s", verdict->rate.bytes_per_s, false);
	write_double(out, "bytes_error", verdict->rate.bytes_error, false);
	write_double(out, "from_s", verdict->rate.from_s, false);
	write_double(out, "to_s", verdict->rate.to_s, false);
	fprintf(out, "\"counted\":%s},", verdict->counted_call ? "true" : "false");
}

/* Memory has none. */
static void write_kind(FILE *out, const struct resource_kind *kind)
{
	if (!kind)
		return;
	fputs("\"kind\":", out);
	json_write_string(out, kind->name);
	fputc(',', out);
}

/* What leads to blocks that are still reachable; NULL: that is not known. */
static void write_holder(FILE *out, const char *name)
{
	if (!name)
		return;
	fputs("\"holder\":", out);
	json_write_string(out, name);
	fputc(',', out);
}

/* What a scan has said; nothing without one. */
static void write_reach(FILE *out, const struct leak_report *report, const struct leak_reach *reach,
			const char *holder)
{
	if (!report->reach)
		return;
	write_u64(out, "lost_blocks", reach->blocks[REACH_GROUP_LOST]);
	write_u64(out, "lost_bytes", reach->bytes[REACH_GROUP_LOST]);
	write_u64(out, "reached_blocks", reach->blocks[REACH_GROUP_REACHABLE]);
	write_u64(out, "no_holder_blocks", reach->blocks[REACH_GROUP_NO_HOLDER]);
	write_u64(out, "no_holder_bytes", reach->bytes[REACH_GROUP_NO_HOLDER]);
	write_u64(out, "pointed_blocks", reach->blocks[REACH_GROUP_POINTED]);
	write_holder(out, holder);
}

static void write_cause(FILE *out, const struct leak_report *report, size_t number)
{
	const struct leak_cause *cause = &report->causes[number - 1];
	const struct leak_site *first = &report->sites_by_cause[cause->first];
	const struct site_verdict *verdict = &report->verdicts.causes[cause->cause].verdict;

	fputc('{', out);
	write_u64(out, "cause", number);
	fprintf(out, "\"verdict\":\"%s\",", verdict_name(verdict->verdict));
	write_kind(out, leak_report_kind_of(report, first));
	write_doubts(out, verdict->doubts);
	fputc(',', out);
	write_u64(out, "held_blocks", cause->blocks);
	write_u64(out, "held_bytes", cause->bytes);
	if (report->in_windows)
		write_estimate(out, &cause->estimate);
	write_reach(out, report, &cause->reach, cause_holder_find(report, first, cause->nr).name);
	write_rate(out, verdict);
	fprintf(out, "\"stacks\":%zu,\"stack_id\":%" PRIu32 "}", cause->nr,
		report->verdicts.sites[first->site].site->stack_id);
}

/*
 * Those that listed stacks have. Sets @numbers, by verdicts.causes, to the causes' numbers in the
 * summary. It is all 0 before.
 */
static void write_causes(FILE *out, const struct leak_report *report, size_t *numbers)
{
	const char *separator = "\n";

	for (size_t i = 0; i < report->nr_listed_sites; i++)
		numbers[report->verdicts.sites[report->sites[i].site].cause] = SIZE_MAX;
	fputs("\"causes\":[", out);
	for (size_t i = 0; i < report->nr_causes && !ferror(out); i++) {
		if (!numbers[report->causes[i].cause])
			continue;
		numbers[report->causes[i].cause] = i + 1;
		fputs(separator, out);
		separator = ",\n";
		write_cause(out, report, i + 1);
	}
	fputs("],\n", out);
}

static void write_site(FILE *out, const struct leak_report *report, const struct leak_site *listed,
		       size_t cause, const struct named_stack *stack)
{
	const struct site_verdict *verdict = &report->verdicts.sites[listed->site];
	const struct site *site = verdict->site;
	const struct heap_block *first = &report->held[report->verdicts.order[verdict->first]];

	fputs("{", out);
	write_u64(out, "stack_id", site->stack_id);
	write_u64(out, "cause", cause);
	fprintf(out, "\"verdict\":\"%s\",\"allocator\":", verdict_name(verdict->verdict));
	json_write_string(out, first->allocated.schema->function);
	fputc(',', out);
	write_kind(out, leak_report_kind_of(report, listed));
	write_doubts(out, verdict->doubts);
	fputc(',', out);
	write_u64(out, "held_blocks", listed->blocks);
	write_u64(out, "held_bytes", listed->bytes);
	write_u64(out, "firm_blocks", listed->firm_blocks);
	write_u64(out, "suspect_blocks", verdict->suspect_blocks);
	write_u64(out, "suspect_bytes", verdict->suspect_bytes);
	write_reach(out, report, &listed->reach, cause_holder_find(report, listed, 1).name);
	write_u64(out, "allocations", site->allocations);
	write_u64(out, "frees", site->frees);
	write_u64(out, "allocated_bytes", site->allocated_bytes);
	if (report->in_windows) {
		write_estimate(out, &listed->estimate);
		write_double(out, "stays", verdict->stays, verdict->stays < 0);
	} else {
		write_u64(out, "peak_blocks", site->peak_blocks);
		write_u64(out, "peak_bytes", site->peak_bytes);
	}
	write_time(out, "first_s", report->analysis, site->first_ns);
	write_time(out, "last_s", report->analysis, site->last_ns);
	write_double(out, "oldest_s", verdict->oldest_s, false);
	write_double(out, "median_lifetime_s", verdict->median_s, verdict->median_s < 0);
	write_double(out, "p99_lifetime_s", verdict->p99_s, verdict->p99_s < 0);
	write_rate(out, verdict);
	fprintf(out, "\"exited\":%s,\n \"frames\":[", verdict->exited ? "true" : "false");
	for (size_t i = 0; i < stack->nr; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		write_frame(out, &stack->frames[i]);
	}
	fputs("]}", out);
}

static int write_sites(FILE *out, const struct leak_report *report, const size_t *numbers)
{
	struct named_stack stack = {.names = name_pool_create()};
	int err = stack.names ? 0 : -ENOMEM;

	fputs("\"stacks\":[", out);
	for (size_t i = 0; i < report->nr_listed_sites && !err && !ferror(out); i++) {
		const struct leak_site *site = &report->sites[i];
		const struct site_verdict *verdict = &report->verdicts.sites[site->site];

		err = named_stack_load(&stack, report->analysis->stacks, verdict->site->stack_id);
		if (err)
			break;
		fputs(i ? ",\n" : "\n", out);
		write_site(out, report, site, numbers[verdict->cause], &stack);
	}
	fputs("],\n", out);
	name_pool_destroy(stack.names);
	named_stack_deinit(&stack);
	return err;
}

static void write_block(FILE *out, const struct leak_report *report, size_t index)
{
	const struct heap_block *block = &report->held[index];
	const struct block_verdict *verdict = &report->verdicts.blocks[index];
	const struct resource_call *call = resource_call_of(block->allocated.schema);

	if (block->size_known)
		fprintf(out, "{\"size\":%" PRIu64 ",", block->size_bytes);
	else
		fputs("{\"size\":null,", out);
	/* As a string: JavaScript's numbers hold integers of 53 bits. */
	fprintf(out, "\"address\":\"0x%" PRIx64 "\",", block->address);
	write_time(out, "time_s", report->analysis, block->allocated.time_ns);
	write_double(out, "age_s", (double)leak_report_age_ns(report, block) / 1e9, false);
	fprintf(out, "\"pid\":%d,\"tid\":%d,\"comm\":", block->allocated.pid, block->allocated.tid);
	json_write_string(out, heap_tracker_comm_of(report->analysis->heaps, block->allocated.tid));
	fputs(",\"allocator\":", out);
	json_write_string(out, block->allocated.schema->function);
	fputc(',', out);
	write_kind(out, call ? call->kind : NULL);
	fprintf(out, "\"stack_id\":%" PRIu32 ",\"verdict\":\"%s\",", block->allocated.stack_id,
		verdict_name(verdict->verdict));
	if (report->reach && report->reach[index] < REACH_NR_CLASSES)
		fprintf(out, "\"reach\":\"%s\",", reach_class_words[report->reach[index]]);
	if (report->holders)
		write_holder(out,
			     reach_holder_name(report->analysis->reach, report->holders[index]));
	write_doubts(out, verdict->doubts);
	fputs("}", out);
}

static void write_blocks(FILE *out, const struct leak_report *report)
{
	const char *separator = "\n";

	fputs("\"blocks\":[", out);
	for (size_t i = 0; i < report->nr_listed_sites && !ferror(out); i++) {
		const struct site_verdict *site = &report->verdicts.sites[report->sites[i].site];

		for (size_t k = 0; k < site->held_blocks; k++) {
			uint32_t index = report->verdicts.order[site->first + k];

			if (report->choices[index] != LEAK_LISTED)
				continue;
			fputs(separator, out);
			separator = ",\n";
			write_block(out, report, index);
		}
	}
	fputs("]}\n", out);
}

static int write_report(FILE *out, const struct report_input *input)
{
	_cleanup_free_ size_t *numbers =
		calloc(input->report->verdicts.nr_causes + 1, sizeof(*numbers));
	int err;

	if (!numbers)
		return -ENOMEM;
	fprintf(out, "{\"format\":\"leaktools\",\"version\":%d,\n", VERSION);
	write_summary(out, input->report);
	write_windows(out, input->report);
	write_memory(out, input->report->analysis);
	write_causes(out, input->report, numbers);
	err = write_sites(out, input->report, numbers);
	if (err)
		return err;
	write_blocks(out, input->report);
	return ferror(out) ? -EIO : 0;
}

const struct report_format json_format = {.name = "json", .write = write_report};
