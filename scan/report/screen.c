/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/report/screen.h"

#include "common/diag.h"
#include "common/quantity.h"
#include "scan/report/census.h"

#include <inttypes.h>

static void write_amount(FILE *out, uint64_t nr, uint64_t bytes, const char *one, const char *many)
{
	fprintf(out, "%s %s, %s", quantity_count(nr).text, quantity_word(nr, one, many),
		quantity_bytes((double)bytes).text);
}

bool screen_begin(FILE *out, const struct scan *scan)
{
	const struct snapshot *snapshot = scan->snapshot;

	if (snapshot->pid)
		fprintf(out, "process %d", snapshot->pid);
	else
		fputs("a process", out);
	if (snapshot->name[0]) {
		fputs(" (", out);
		diag_print_escaped(out, snapshot->name, NULL);
		putc(')', out);
	}
	fprintf(out, ": %zu thread%s", snapshot->nr_threads, quantity_plural(snapshot->nr_threads));
	if (snapshot->max_pause_ns)
		fprintf(out, "; it stood still for %s",
			quantity_duration((double)snapshot->max_pause_ns / 1e9).text);
	else if (!snapshot->is_core)
		fputs("; it slept, and was not stopped", out);
	putc('\n', out);
	if (!scan->heap.allocator)
		fputs("No allocator that leakscan knows was found: it knows glibc's malloc. Of "
		      "others, leakrec and\nleakparse --summary show what grows, but not what "
		      "leads to it.\n",
		      out);
	return scan->heap.allocator;
}

/* Leak or fragmentation: what is in use, what the allocator keeps, what is neither. */
static void write_heap(FILE *out, const struct scan *scan)
{
	const struct snapshot *snapshot = scan->snapshot;
	struct chunk_count chunks[CHUNK_NR_STATES];
	uint64_t memory = snapshot->anon_bytes + snapshot->swap_bytes, retained, known;

	heap_sum_chunks(&scan->heap, chunks);
	retained = heap_retained_bytes(chunks);
	fprintf(out, "\nHeap (%s, %zu arena%s):\n", scan->heap.allocator, scan->heap.nr_arenas,
		quantity_plural(scan->heap.nr_arenas));
	fputs("  in use    ", out);
	write_amount(out, chunks[CHUNK_USED].nr + chunks[CHUNK_MAPPED].nr,
		     chunks[CHUNK_USED].bytes + chunks[CHUNK_MAPPED].bytes, "block", "blocks");
	if (chunks[CHUNK_MAPPED].nr)
		fprintf(out, ", %s of it in %s mapped on their own",
			quantity_bytes((double)chunks[CHUNK_MAPPED].bytes).text,
			quantity_count(chunks[CHUNK_MAPPED].nr).text);
	fprintf(out, "\n  retained  %s, free: %s in bins", quantity_bytes((double)retained).text,
		quantity_bytes((double)chunks[CHUNK_BIN].bytes).text);
	fprintf(out, ", %s in fastbins", quantity_bytes((double)chunks[CHUNK_FAST].bytes).text);
	fprintf(out, ", %s in threads' caches",
		quantity_bytes((double)chunks[CHUNK_CACHED].bytes).text);
	fprintf(out, ", %s at the top\n", quantity_bytes((double)chunks[CHUNK_TOP].bytes).text);
	if (!memory)
		return;
	known = chunks[CHUNK_USED].bytes + chunks[CHUNK_MAPPED].bytes + retained;
	fprintf(out, "  anonymous memory in RAM and swap: %s", quantity_bytes((double)memory).text);
	/* A part of the heap that was never touched is in neither. */
	if (memory > known)
		fprintf(out, ", %s of it outside of the heap",
			quantity_bytes((double)(memory - known)).text);
	putc('\n', out);
}

static int write_census(FILE *out, struct scan_report *report, bool all)
{
	struct census census;
	int err = census_init(&census, report);
	size_t nr = all || census.nr < SCREEN_ROWS ? census.nr : SCREEN_ROWS;

	if (nr)
		fputs("\nIn use, by size and type:\n       BYTES      BLOCKS        SIZE        LOST  TYPE\n",
		      out);
	for (size_t i = 0; i < nr; i++) {
		const struct census_row *row = &census.rows[i];

		fprintf(out, "%12s %11s %11" PRIu64 " %11s  ",
			quantity_bytes((double)(row->nr * row->size_bytes)).text,
			quantity_count(row->nr).text, row->size_bytes,
			report->scan->may_say_lost ? quantity_count(row->nr_lost).text : "-");
		diag_print_escaped(out, row->type ? row->type : "-", NULL);
		putc('\n', out);
	}
	if (nr < census.nr)
		fprintf(out, "  and %zu more; --all shows them\n", census.nr - nr);
	census_deinit(&census);
	return err;
}

static void write_total(FILE *out, const struct scan *scan, enum reach_class class,
			const char *explanation)
{
	const struct scan_class_total *total = &scan->totals[class];

	if (!total->nr)
		return;
	fprintf(out, "  %-13s ", reach_class_words[class]);
	write_amount(out, total->nr, total->bytes, "block", "blocks");
	fprintf(out, ": %s\n", explanation);
}

void screen_write_limits(FILE *out, const struct scan *scan)
{
	if (!scan->may_say_lost) {
		fputs("No block is called lost: ", out);
		diag_print_escaped(out, scan->why_not, NULL);
		fputs(".\n", out);
	} else if (scan->unseen[0]) {
		fprintf(out,
			"Not seen: %s.\nA block whose only pointer is in there counts as held by nothing.\n",
			scan->unseen);
	}
}

/* What the second look has found. */
static void write_hidden(FILE *out, const struct scan *scan)
{
	if (scan->nr_hidden)
		fprintf(out,
			"    %s of them only by an address with a tag, unaligned, or just outside of "
			"the block\n",
			quantity_count(scan->nr_hidden).text);
}

static void write_totals(FILE *out, const struct scan *scan)
{
	fputs("\nWhat points to them:\n", out);
	write_total(out, scan, REACH_HELD, "the program can get to it");
	write_total(out, scan, REACH_POSSIBLE,
		    "held only through pointers into blocks, not to their starts");
	write_hidden(out, scan);
	write_total(out, scan, REACH_WEAK, "held only from below a stack pointer");
	write_total(out, scan, REACH_LOST, "nothing points to it");
	write_total(out, scan, REACH_CYCLE, "only blocks that it leads to point to it");
	write_total(out, scan, REACH_THROUGH, "only lost blocks lead to it");
	write_total(out, scan, REACH_UNKNOWN,
		    scan->may_say_lost ? "no holder was found, but the first snapshot had one, or "
					 "not yet this block"
				       : "no holder was found");
	screen_write_limits(out, scan);
}

static void write_lost(FILE *out, struct scan_report *report, bool all)
{
	const struct lost_graph *lost = &report->scan->lost;
	size_t nr = all || lost->nr_roots < SCREEN_ROWS ? lost->nr_roots : SCREEN_ROWS;

	if (!report->scan->may_say_lost || !nr)
		return;
	fputs("\nLost, with what is lost through it:\n"
	      "       TOTAL        SIZE     THROUGH  ADDRESS             TYPE\n",
	      out);
	for (size_t i = 0; i < nr; i++) {
		const struct lost_root *root = &lost->roots[i];
		struct heap_block_view view;
		const char *type;

		heap_block_view(&report->scan->heap, root->block, &view);
		type = object_type(&report->types, &view);
		fprintf(out, "%12s %11" PRIu64 " %11s  0x%-16" PRIx64 "  ",
			quantity_bytes((double)lost_root_total(root)).text, view.size_bytes,
			quantity_count(root->through_blocks).text, view.address);
		diag_print_escaped(out, type ? type : "-", NULL);
		if (root->cycle_blocks)
			fprintf(out, ", a cycle of %s blocks",
				quantity_count(root->cycle_blocks).text);
		putc('\n', out);
	}
	if (nr < lost->nr_roots)
		fprintf(out, "  and %zu more; --all shows them\n", lost->nr_roots - nr);
	fprintf(out,
		"When the memory was copied, no register, stack, thread-local, global variable, "
		"mapping\nor reachable block held the address of these blocks. Unless the program "
		"hides addresses,\nthey can never be freed%s (docs/reachability.md).\n",
		report->scan->unseen[0] ? ", except as said at \"Not seen\"" : "");
}

int screen_write(FILE *out, struct scan_report *report, bool all)
{
	const struct scan *scan = report->scan;
	int err;

	if (!screen_begin(out, scan))
		return 0;
	write_heap(out, scan);
	write_totals(out, scan);
	write_lost(out, report, all);
	err = write_census(out, report, all);
	return err;
}
