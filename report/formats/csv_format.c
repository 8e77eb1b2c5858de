/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CSV format (RFC 4180), for spreadsheets: a line per stack, in the report's order. Names are
 * untrusted, so text that a spreadsheet would take for a formula gets an apostrophe in front.
 */
#include "common/diag.h"
#include "report/formats/formats.h"
#include "report/text/leak_words.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Writes text within a quoted field. Quotes and line breaks become \xNN. */
static void write_text(FILE *out, const char *text)
{
	if (text)
		diag_print_escaped(out, text, "\"");
}

static void write_field(FILE *out, const char *text)
{
	fputs(text && *text && strchr("=+-@", *text) ? ",\"'" : ",\"", out);
	write_text(out, text);
	fputc('"', out);
}

/* Seconds; an empty field if they are unknown. */
static void write_seconds(FILE *out, double seconds, bool is_known)
{
	if (is_known)
		fprintf(out, ",%.9g", seconds);
	else
		fputc(',', out);
}

static void write_stack(FILE *out, const struct named_stack *stack)
{
	if (stack->nr && strchr("=+-@", *stack->frames[0].name))
		fputs(",\"'", out);
	else
		fputs(",\"", out);
	for (size_t i = 0; i < stack->nr; i++) {
		if (i)
			fputs(" < ", out);
		write_text(out, stack->frames[i].name);
	}
	fputc('"', out);
}

static double since_start(const struct leak_report *report, uint64_t time_ns)
{
	uint64_t start_ns = report->analysis->start_ns;

	return time_ns > start_ns ? (double)(time_ns - start_ns) / 1e9 : 0;
}

static void write_site(FILE *out, const struct leak_report *report, size_t rank,
		       const struct named_stack *stack)
{
	const struct leak_site *listed = &report->sites[rank];
	const struct site_verdict *verdict = &report->verdicts.sites[listed->site];
	const struct site *site = verdict->site;
	const struct heap_block *first = &report->held[report->verdicts.order[verdict->first]];
	size_t user = named_stack_user_frame(stack, first->allocated.schema->function);
	const struct named_frame *frame = stack->nr ? &stack->frames[user] : NULL;

	fprintf(out, "%zu,%s,\"", rank + 1, verdict_name(verdict->verdict));
	leak_words_certainty(out, verdict->doubts);
	fprintf(out, "\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
		listed->blocks, listed->bytes, listed->firm_blocks, site->allocations, site->frees,
		site->allocated_bytes);
	if (report->in_windows)
		fputs(",,", out);
	else
		fprintf(out, ",%" PRIu64 ",%" PRIu64, site->peak_blocks, site->peak_bytes);
	write_seconds(out, since_start(report, site->first_ns), true);
	write_seconds(out, since_start(report, site->last_ns), true);
	write_seconds(out, verdict->oldest_s, true);
	write_seconds(out, verdict->median_s, verdict->median_s >= 0);
	write_seconds(out, verdict->p99_s, verdict->p99_s >= 0);
	write_seconds(out, verdict->rate.blocks_per_s, verdict->has_rate);
	write_seconds(out, verdict->rate.bytes_per_s, verdict->has_rate);
	write_field(out, frame ? frame->name : NULL);
	write_field(out, frame ? frame->file : NULL);
	if (frame && frame->line > 0)
		fprintf(out, ",%d", frame->line);
	else
		fputc(',', out);
	write_field(out, frame ? frame->module : NULL);
	write_stack(out, stack);
	fputs("\r\n", out);
}

static int write_report(FILE *out, const struct report_input *input)
{
	const struct leak_report *report = input->report;
	struct named_stack stack = {.names = name_pool_create(), .wrappers = &report->wrappers};
	int err = stack.names ? 0 : -ENOMEM;

	fputs("rank,verdict,certainty,held_blocks,held_bytes,firm_blocks,allocations,frees,"
	      "allocated_bytes,peak_blocks,peak_bytes,first_s,last_s,oldest_s,median_lifetime_s,"
	      "p99_lifetime_s,blocks_per_s,bytes_per_s,function,file,line,module,stack\r\n",
	      out);
	for (size_t i = 0; i < report->nr_listed_sites && !err && !ferror(out); i++) {
		const struct site_verdict *verdict = &report->verdicts.sites[report->sites[i].site];

		err = named_stack_load(&stack, report->analysis->stacks, verdict->site->stack_id);
		if (!err)
			write_site(out, report, i, &stack);
	}
	name_pool_destroy(stack.names);
	named_stack_deinit(&stack);
	return err ? err : ferror(out) ? -EIO : 0;
}

const struct report_format csv_format = {.name = "csv", .write = write_report};
