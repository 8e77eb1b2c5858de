/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heaptrack format, for heaptrack_print and heaptrack_gui: data as heaptrack_interpret writes
 * it (file format 2 of heaptrack 1.4's src/analyze/accumulatedtracedata.cpp). It has the
 * allocations of held blocks only, so what these tools report as leaked is what is held.
 *
 * Numbers are hexadecimal. Strings (s), instruction pointers (i) and traces (t) are numbered from 1
 * in the order of their lines, allocations (a) from 0.
 */
#include "common/diag.h"
#include "report/formats/formats.h"
#include "report/names/named_stack.h"
#include "report/names/word_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* A line of a table; its key is its contents. */
struct entry {
	struct entry_key {
		uint64_t words[5];
	} key;
	uint32_t number;
	UT_hash_handle hh;
};

struct writer {
	FILE *out;
	const struct leak_report *report;
	struct name_pool *names;
	uint32_t *strings; /* by name_pool_number(): numbers of this format; 0: not yet written */
	size_t max_strings, nr_strings;
	struct entry *pointers, *traces, *allocations;
	uint32_t *site_traces; /* by verdicts.sites; 0: not listed */
	struct named_stack stack;
};

/* Gets the number of a string and writes it on its first use. Returns 0 or -ENOMEM. */
static int put_string(struct writer *writer, const char *name, uint64_t *ret)
{
	uint32_t number = name ? name_pool_number(name) : 0;

	*ret = 0;
	if (!name)
		return 0;
	if (number >= writer->max_strings) {
		size_t max = 2 * (size_t)number + 64;
		uint32_t *strings = realloc(writer->strings, max * sizeof(*strings));

		if (!strings)
			return -ENOMEM;
		memset(strings + writer->max_strings, 0,
		       (max - writer->max_strings) * sizeof(*strings));
		writer->strings = strings;
		writer->max_strings = max;
	}
	if (!writer->strings[number]) {
		writer->strings[number] = (uint32_t)++writer->nr_strings;
		fputs("s ", writer->out);
		diag_print_escaped(writer->out, name, NULL);
		fputc('\n', writer->out);
	}
	*ret = writer->strings[number];
	return 0;
}

/* Gets the number of a line, from 1. Returns 1 if the line is new, else 0 or -ENOMEM. */
static int put_entry(struct entry **table, const struct entry_key *key, uint32_t *ret)
{
	struct entry *entry;

	WORD_TABLE_FIND(*table, key, entry);
	if (entry) {
		*ret = entry->number;
		return 0;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->key = *key;
	entry->number = HASH_COUNT(*table) + 1;
	*ret = entry->number;
	WORD_TABLE_ADD(*table, key, entry);
	if (hash_added(entry))
		return 1;
	free(entry);
	return -ENOMEM;
}

static int put_pointer(struct writer *writer, const struct named_frame *frame, uint32_t *ret)
{
	struct entry_key key = {
		{frame->address, 0, 0, 0, frame->line > 0 ? (uint64_t)frame->line : 0}};
	int err = put_string(writer, frame->module, &key.words[1]);

	if (!err)
		err = put_string(writer, frame->name, &key.words[2]);
	if (!err)
		err = put_string(writer, frame->file, &key.words[3]);
	if (err)
		return err;
	err = put_entry(&writer->pointers, &key, ret);
	if (err <= 0)
		return err;
	fprintf(writer->out, "i %" PRIx64 " %" PRIx64 " %" PRIx64, key.words[0], key.words[1],
		key.words[2]);
	/* The location of the function. File 0 means none. */
	fprintf(writer->out, " %" PRIx64 " %" PRIx64 "\n", key.words[3], key.words[4]);
	return 0;
}

/* Writes the traces of the stack from main inwards: a trace's parent is its caller. */
static int put_trace(struct writer *writer, uint32_t *ret)
{
	uint32_t parent = 0, pointer;

	for (size_t i = writer->stack.nr; i-- > 0;) {
		struct entry_key key = {{0}};
		int err = put_pointer(writer, &writer->stack.frames[i], &pointer);

		if (err)
			return err;
		key.words[0] = pointer;
		key.words[1] = parent;
		err = put_entry(&writer->traces, &key, &parent);
		if (err < 0)
			return err;
		if (err)
			fprintf(writer->out, "t %" PRIx64 " %" PRIx64 "\n", key.words[0],
				key.words[1]);
	}
	*ret = parent;
	return 0;
}

static bool is_listed(const struct writer *writer, uint32_t site)
{
	return writer->site_traces[site] != 0;
}

/* Writes all traces first, because each allocation refers to one. */
static int put_sites(struct writer *writer)
{
	const struct leak_report *report = writer->report;
	int err = 0;

	for (size_t i = 0; i < report->nr_listed_sites && !err; i++) {
		uint32_t site = report->sites[i].site;

		err = named_stack_load_frames(&writer->stack, report->analysis->stacks,
					      report->verdicts.sites[site].site->stack_id);
		if (!err)
			err = put_trace(writer, &writer->site_traces[site]);
	}
	return err;
}

static int put_block(struct writer *writer, size_t index)
{
	const struct heap_block *block = &writer->report->held[index];
	struct entry_key key = {{block->size_known ? block->size_bytes : 0,
				 writer->site_traces[writer->report->verdicts.blocks[index].site]}};
	uint32_t number;
	int err = put_entry(&writer->allocations, &key, &number);

	if (err < 0)
		return err;
	if (err)
		fprintf(writer->out, "a %" PRIx64 " %" PRIx64 "\n", key.words[0], key.words[1]);
	fprintf(writer->out, "+ %" PRIx32 "\n", number - 1);
	return 0;
}

static int put_blocks(struct writer *writer)
{
	const struct leak_report *report = writer->report;
	uint64_t start_ns = report->analysis->start_ns, last_ms = 0;

	for (size_t i = 0; i < report->nr_held && !ferror(writer->out); i++) {
		uint64_t time_ns = report->held[i].allocated.time_ns;
		uint64_t ms = time_ns > start_ns ? (time_ns - start_ns) / 1000000 : 0;
		int err;

		if (report->choices[i] != LEAK_LISTED ||
		    !is_listed(writer, report->verdicts.blocks[i].site))
			continue;
		if (ms > last_ms)
			fprintf(writer->out, "c %" PRIx64 "\n", ms);
		last_ms = ms > last_ms ? ms : last_ms;
		err = put_block(writer, i);
		if (err)
			return err;
	}
	fprintf(writer->out, "c %" PRIx64 "\n", (report->analysis->end_ns - start_ns) / 1000000);
	return 0;
}

static void free_entries(struct entry *table)
{
	struct entry *entry, *next;

	HASH_ITER (hh, table, entry, next) {
		HASH_DEL(table, entry);
		free(entry);
	}
}

static int write_report(FILE *out, const struct report_input *input)
{
	struct writer writer = {
		.out = out,
		.report = input->report,
		.names = name_pool_create(),
		.site_traces = calloc(input->report->verdicts.nr_sites + 1, sizeof(uint32_t)),
	};
	int err = writer.names && writer.site_traces ? 0 : -ENOMEM;

	writer.stack.names = writer.names;
	fputs("v 10400 2\nX (recorded by leakrec)\nI 1000 0\n", out);
	if (!err)
		err = put_sites(&writer);
	if (!err)
		err = put_blocks(&writer);
	free_entries(writer.pointers);
	free_entries(writer.traces);
	free_entries(writer.allocations);
	free(writer.strings);
	free(writer.site_traces);
	named_stack_deinit(&writer.stack);
	name_pool_destroy(writer.names);
	return err ? err : ferror(out) ? -EIO : 0;
}

const struct report_format heaptrack_format = {.name = "heaptrack", .write = write_report};
