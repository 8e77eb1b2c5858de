/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/report/block_lines.h"

#include "common/diag.h"
#include "scan/report/holders.h"

#include <errno.h>
#include <inttypes.h>

/* Of a path; long lists would fill the screen. */
#define MAX_STEPS_SHOWN 32

static void write_comments(FILE *out, const struct scan *scan)
{
	const struct snapshot *snapshot = scan->snapshot;
	uint64_t stopped_ns = snapshot->taken_ns - snapshot->pause_ns;

	if (snapshot->taken_ns)
		fprintf(out, "# stopped %" PRIu64 ".%09" PRIu64 "\n", stopped_ns / 1000000000,
			stopped_ns % 1000000000);
	if (!scan->may_say_lost) {
		fputs("# no block is called lost: ", out);
		diag_print_escaped(out, scan->why_not, NULL);
		putc('\n', out);
	} else if (scan->unseen[0]) {
		fprintf(out, "# not seen: %s\n", scan->unseen);
	}
}

/* Last: a reader that has read a heap's line knows of all that is in it. */
static void write_heaps(FILE *out, const struct scan *scan)
{
	for (size_t i = 0; i < scan->heap.map.nr_segments; i++) {
		const struct heap_segment *segment = &scan->heap.map.segments[i];

		fprintf(out, "# %s %" PRIu64 " 0x%" PRIx64 "\n",
			scan->heap.is_traced ? "traced" : "heap", segment->end - segment->start,
			segment->start);
	}
}

void block_lines_write(FILE *out, struct scan_report *report, bool without_held)
{
	const struct scan *scan = report->scan;
	const struct lost_block *lost;

	if (without_held)
		write_comments(out, scan);
	for (uint32_t i = 0; i < scan->heap.map.nr_blocks; i++) {
		enum reach_class class = scan_class_of(scan, i, &lost);
		struct heap_block_view view;

		if (without_held && (class == REACH_HELD || class == REACH_POINTED))
			continue;
		heap_block_view(&scan->heap, i, &view);
		fprintf(out, "%s %" PRIu64 " 0x%" PRIx64 " ", reach_class_words[class],
			view.size_bytes, view.address);
		holder_write(out, report, i);
		putc('\n', out);
	}
	/* Nobody is asked about blocks of a heap that is not whole. */
	if (without_held && scan->heap.is_whole) {
		holders_write(out, report);
		write_heaps(out, scan);
	}
}

static void write_block(FILE *out, struct scan_report *report, uint32_t block)
{
	struct heap_block_view view;
	const char *type;

	heap_block_view(&report->scan->heap, block, &view);
	fprintf(out, "block 0x%" PRIx64 " of %" PRIu64 " bytes", view.address, view.size_bytes);
	type = object_type(&report->types, &view);
	if (type) {
		fputs(", ", out);
		diag_print_escaped(out, type, NULL);
	}
}

/* Holders lead to a root in the order in which blocks were found, so never back. */
static void write_steps(FILE *out, struct scan_report *report, uint32_t block)
{
	const struct scan *scan = report->scan;
	uint64_t slot, steps = 0;

	for (;;) {
		uint32_t holder = scan->marking.holders[block];

		if (holder_find_root(scan, block, &slot) || (holder & HOLDER_ROOT))
			break;
		block = holder;
		if (++steps > MAX_STEPS_SHOWN)
			continue;
		fputs("  in ", out);
		write_block(out, report, block);
		putc('\n', out);
	}
	if (steps > MAX_STEPS_SHOWN)
		fprintf(out, "  and %" PRIu64 " more blocks\n", steps - MAX_STEPS_SHOWN);
	fputs("  in ", out);
	holder_write(out, report, block);
	putc('\n', out);
}

int block_path_write(FILE *out, struct scan_report *report, uint64_t address)
{
	static const char *const phrases[REACH_NR_CLASSES] = {
		[REACH_LOST] = "lost: nothing points to it",
		[REACH_CYCLE] = "lost in a cycle: only blocks that it leads to lead to it",
		[REACH_THROUGH] = "lost through another block",
		[REACH_POSSIBLE] = "possibly held: a pointer on the way is not to a block's start",
		[REACH_WEAK] = "weakly held: from below a stack pointer only",
		[REACH_HELD] = "held",
		[REACH_UNKNOWN] = "not known: no holder was found",
		[REACH_NO_HOLDER] = "no holder found",
		[REACH_POINTED] = "something points to it",
	};
	const struct scan *scan = report->scan;
	const struct lost_block *lost;
	uint64_t offset;
	uint32_t block = heap_find_block(&scan->heap, address, &offset);
	enum reach_class class;

	if (block == HEAP_NONE) {
		diag_error("no block in use is at 0x%" PRIx64, address);
		return -ENOENT;
	}
	write_block(out, report, block);
	class = scan_class_of(scan, block, &lost);
	fprintf(out, ": %s\n", phrases[class]);
	if (class == REACH_THROUGH) {
		fputs("  through ", out);
		write_block(out, report, lost->root);
		putc('\n', out);
	} else if (class == REACH_HELD || class == REACH_POSSIBLE || class == REACH_WEAK) {
		write_steps(out, report, block);
	}
	return 0;
}
