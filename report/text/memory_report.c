/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/memory_report.h"

#include "common/quantity.h"
#include "common/scope.h"

#include <inttypes.h>
#include <stdlib.h>

/* Smaller amounts need no explanation: threads' stacks, the C library's own buffers. */
#define WORTH_BYTES   (INT64_C(1) << 20)
#define WORTH_PART    10 /* of the growth */
#define SMALL_PART    64 /* of the largest sum; smaller ones are left out */
#define NEARLY_ALL(x) ((x) - (x) / 20)

static void write_signed(FILE *out, int64_t bytes)
{
	if (bytes)
		fputc(bytes < 0 ? '-' : '+', out);
	fputs(quantity_bytes((double)llabs(bytes)).text, out);
}

/* "RSS grew by 276 MiB", with "of 3 processes" or "in the first 3.10 s" if that is not all. */
static void write_rss(FILE *out, const struct analysis *analysis,
		      const struct memory_balance *balance)
{
	uint64_t length_ns =
		analysis->end_ns > analysis->start_ns ? analysis->end_ns - analysis->start_ns : 0;
	uint64_t sampled_ns =
		balance->until_ns > analysis->start_ns ? balance->until_ns - analysis->start_ns : 0;

	fputs("RSS", out);
	if (balance->nr_processes > 1)
		fprintf(out, " of %zu processes", balance->nr_processes);
	fputs(balance->rss < 0 ? " shrank by " : " grew by ", out);
	fputs(quantity_bytes((double)llabs(balance->rss)).text, out);
	if (sampled_ns < NEARLY_ALL(length_ns)) {
		fputs(" in the first ", out);
		fputs(quantity_duration((double)sampled_ns / 1e9).text, out);
	}
}

/* The sums that make up RSS, with those that matter. */
static void write_parts(FILE *out, const struct memory_balance *balance)
{
	const struct {
		int64_t bytes;
		const char *where;
		bool always;
	} parts[] = {
		{balance->recorded, "in recorded blocks", true},
		{balance->other, "in other anonymous memory", true},
		{balance->file, "in mapped files", false},
		{balance->shared, "in shared memory", false},
		{balance->swap, "by swapping", false},
	};
	const char *separator = ": ";
	int64_t most = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (llabs(parts[i].bytes) > most)
			most = llabs(parts[i].bytes);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!parts[i].always &&
		    (!parts[i].bytes || llabs(parts[i].bytes) < most / SMALL_PART))
			continue;
		fputs(separator, out);
		write_signed(out, parts[i].bytes);
		fprintf(out, " %s", parts[i].where);
		separator = ", ";
	}
	fputc('\n', out);
}

static bool is_worth_it(const struct memory_balance *balance, int64_t bytes)
{
	return bytes >= WORTH_BYTES && bytes >= llabs(balance->rss) / WORTH_PART;
}

/* What @bytes may be, and how to find out. */
static void write_sources(FILE *out, const struct analysis *analysis,
			  const struct memory_balance *balance, int64_t bytes)
{
	if (analysis->has_mappings)
		fputs("  leakparse --kind mapping shows what was mapped\n", out);
	else if (balance->data - balance->recorded < bytes / 2)
		fprintf(out, "  Hardly any memory was mapped: %s\n",
			analysis->input.command.starts_command
				? "the program may have begun to use large variables"
				: "the process may have begun to use memory that it had before");
	else
		fputs("  Record with --with mmap to see who maps memory: the program, a runtime such\n"
		      "  as Go's or Java's, or an allocator that is not recorded\n",
		      out);
}

/* What explains the parts, or may explain them. */
static void write_reason(FILE *out, const struct analysis *analysis,
			 const struct memory_balance *balance)
{
	int64_t anonymous = balance->recorded + balance->other;
	int64_t foreign = anonymous - balance->allocated;
	const struct perf_command *command = &analysis->input.command;

	if (command->has_sizes || command->partial) {
		fputs("  Only a part was recorded (--size, --filter or --narrow): other blocks may take the "
		      "rest\n",
		      out);
		return;
	}
	if (is_worth_it(balance, foreign)) {
		fputs("  No recorded allocation can explain ", out);
		fputs(quantity_bytes((double)foreign).text, out);
		fputs(" of the other anonymous memory\n", out);
		write_sources(out, analysis, balance, foreign);
	} else if (is_worth_it(balance, anonymous - balance->most)) {
		fputs("  Recorded blocks never took that much at one time: it may be free memory\n"
		      "  between them (fragmentation), or memory from elsewhere\n",
		      out);
		write_sources(out, analysis, balance, balance->other);
	} else if (is_worth_it(balance, balance->other)) {
		fputs("  The allocator may keep freed memory, and each block takes some bytes more\n",
		      out);
	} else if (is_worth_it(balance, -balance->other) && balance->recorded > 0) {
		fputs("  Blocks that are not written to take no RAM; or other memory was given back\n",
		      out);
	}
}

/* Returns the number of lines in @text. */
static int count_lines(const char *text)
{
	int nr = 0;

	for (; *text; text++)
		nr += *text == '\n';
	return nr;
}

int memory_report_write(FILE *out, const struct leak_report *report)
{
	const struct analysis *analysis = report->analysis;
	_cleanup_free_ char *text = NULL;
	struct memory_balance balance;
	size_t size;
	FILE *lines;

	memory_usage_balance(analysis->memory, &balance);
	if (!balance.nr_processes)
		return 0;
	lines = open_memstream(&text, &size);
	if (!lines)
		return 0;
	write_rss(lines, analysis, &balance);
	/* What the blocks took at a time is not known in windows. */
	if (report->in_windows) {
		fputc('\n', lines);
	} else {
		write_parts(lines, &balance);
		write_reason(lines, analysis, &balance);
	}
	if (fclose(lines))
		return 0;
	fputs(text, out);
	return count_lines(text);
}
