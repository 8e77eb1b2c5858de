/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/report/census_json.h"

#include "common/json/json_text.h"
#include "scan/report/census.h"

#include <inttypes.h>

#define VERSION 1

/* 0 stands for what is not known. */
static void write_known(FILE *out, const char *key, uint64_t value)
{
	json_write_key(out, key);
	if (value)
		fprintf(out, "%" PRIu64, value);
	else
		fputs("null", out);
}

static void write_amount(FILE *out, const char *key, uint64_t blocks, uint64_t bytes)
{
	json_write_key(out, key);
	fprintf(out, "{\"blocks\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", blocks, bytes);
}

static void write_process(FILE *out, const struct scan *scan)
{
	const struct snapshot *snapshot = scan->snapshot;

	/* census_file.h reads this line. */
	fprintf(out, "{\"format\":\"leakscan\",\"version\":%d,", VERSION);
	write_known(out, "pid", (uint64_t)snapshot->pid);
	putc(',', out);
	write_known(out, "start", snapshot->start_ticks);
	putc(',', out);
	write_known(out, "time_s", snapshot->taken_s);
	fprintf(out,
		",\"whole\":%s,\n\"process\":{\"name\":", scan->heap.is_whole ? "true" : "false");
	json_write_string(out, snapshot->name);
	fprintf(out, ",\"threads\":%zu,", snapshot->nr_threads);
	if (snapshot->is_core)
		write_known(out, "pause_us", 0);
	else
		fprintf(out, "\"pause_us\":%" PRIu64, snapshot->max_pause_ns / 1000);
	putc(',', out);
	write_known(out, "anonymous_bytes", snapshot->anon_bytes + snapshot->swap_bytes);
	fputs("},\n", out);
}

static void write_heap(FILE *out, const struct heap *heap)
{
	static const char *const keys[CHUNK_NR_STATES] = {
		[CHUNK_USED] = "used",	   [CHUNK_MAPPED] = "mapped", [CHUNK_BIN] = "bins",
		[CHUNK_FAST] = "fastbins", [CHUNK_CACHED] = "caches", [CHUNK_TOP] = "top",
		[CHUNK_OVERHEAD] = "own",
	};
	struct chunk_count chunks[CHUNK_NR_STATES];

	heap_sum_chunks(heap, chunks);
	fputs("\"heap\":{\"allocator\":", out);
	json_write_string(out, heap->allocator);
	fprintf(out, ",\"arenas\":%zu,\"retained_bytes\":%" PRIu64, heap->nr_arenas,
		heap_retained_bytes(chunks));
	for (int state = 0; state < CHUNK_NR_STATES; state++) {
		putc(',', out);
		write_amount(out, keys[state], chunks[state].nr, chunks[state].bytes);
	}
	fputs("},\n", out);
}

static void write_classes(FILE *out, const struct scan *scan)
{
	fputs("\"why_not_lost\":", out);
	json_write_string(out, scan->may_say_lost ? NULL : scan->why_not);
	fputs(",\"not_seen\":", out);
	json_write_string(out, scan->unseen[0] ? scan->unseen : NULL);
	fputs(",\n\"classes\":{", out);
	for (size_t i = 0; i < REACH_NR_CLASSES; i++) {
		if (!reach_class_words[i])
			continue;
		if (i)
			putc(',', out);
		write_amount(out, reach_class_words[i], scan->totals[i].nr, scan->totals[i].bytes);
	}
	fputs("},\n", out);
}

static void write_lost(FILE *out, struct scan_report *report)
{
	const struct lost_graph *lost = &report->scan->lost;
	size_t nr = report->scan->may_say_lost ? lost->nr_roots : 0;

	fputs("\"lost\":[", out);
	for (size_t i = 0; i < nr; i++) {
		const struct lost_root *root = &lost->roots[i];
		struct heap_block_view view;

		heap_block_view(&report->scan->heap, root->block, &view);
		/* As a string: JavaScript's numbers hold integers of 53 bits. */
		fprintf(out,
			"%s\n{\"address\":\"0x%" PRIx64 "\",\"size\":%" PRIu64
			",\"total_bytes\":%" PRIu64 ",\"through_blocks\":%" PRIu32
			",\"through_bytes\":%" PRIu64 ",\"cycle_blocks\":%" PRIu32 ",\"type\":",
			i ? "," : "", view.address, view.size_bytes, lost_root_total(root),
			root->through_blocks, root->through_bytes, root->cycle_blocks);
		json_write_string(out, object_type(&report->types, &view));
		putc('}', out);
	}
	fputs("\n],\n", out);
}

static int write_rows(FILE *out, struct scan_report *report)
{
	struct census census;
	int err = census_init(&census, report);

	fputs("\"rows\":[", out);
	for (size_t i = 0; i < census.nr; i++) {
		const struct census_row *row = &census.rows[i];

		fprintf(out, "%s\n{\"size\":%" PRIu64 ",\"blocks\":%" PRIu64, i ? "," : "",
			row->size_bytes, row->nr);
		if (report->scan->may_say_lost)
			fprintf(out, ",\"lost\":%" PRIu64 ",\"type\":", row->nr_lost);
		else
			fputs(",\"lost\":null,\"type\":", out);
		json_write_string(out, row->type);
		putc('}', out);
	}
	fputs("\n]}\n", out);
	census_deinit(&census);
	return err;
}

int census_json_write(FILE *out, struct scan_report *report)
{
	write_process(out, report->scan);
	write_heap(out, &report->scan->heap);
	write_classes(out, report->scan);
	write_lost(out, report);
	return write_rows(out, report);
}
