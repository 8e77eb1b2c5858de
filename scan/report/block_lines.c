/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/report/block_lines.h"

#include "common/diag.h"

#include <errno.h>
#include <inttypes.h>

/* Of a path; long lists would fill the screen. */
#define MAX_STEPS_SHOWN 32

void block_lines_write(FILE *out, struct scan_report *report)
{
	const struct scan *scan = report->scan;
	const struct lost_block *lost;

	for (uint32_t i = 0; i < scan->heap.map.nr_blocks; i++) {
		struct heap_block_view view;

		heap_block_view(&scan->heap, i, &view);
		fprintf(out, "%s %" PRIu64 " 0x%" PRIx64 " ",
			scan_class_words[scan_class_of(scan, i, &lost)], view.size_bytes,
			view.address);
		holder_write(out, report, i);
		putc('\n', out);
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
	static const char *const phrases[SCAN_NR_CLASSES] = {
		[SCAN_LOST] = "lost: nothing points to it",
		[SCAN_CYCLE] = "lost in a cycle: only blocks that it leads to lead to it",
		[SCAN_THROUGH] = "lost through another block",
		[SCAN_POSSIBLE] = "possibly held: a pointer on the way leads into a block",
		[SCAN_WEAK] = "weakly held: from below a stack pointer only",
		[SCAN_HELD] = "held",
		[SCAN_UNKNOWN] = "not known: no holder was found",
	};
	const struct scan *scan = report->scan;
	const struct lost_block *lost;
	uint64_t offset;
	uint32_t block = heap_find_block(&scan->heap, address, &offset);
	enum scan_class class;

	if (block == HEAP_NONE) {
		diag_error("no block in use is at 0x%" PRIx64, address);
		return -ENOENT;
	}
	write_block(out, report, block);
	class = scan_class_of(scan, block, &lost);
	fprintf(out, ": %s\n", phrases[class]);
	if (class == SCAN_THROUGH) {
		fputs("  through ", out);
		write_block(out, report, lost->root);
		putc('\n', out);
	} else if (class == SCAN_HELD || class == SCAN_POSSIBLE || class == SCAN_WEAK) {
		write_steps(out, report, block);
	}
	return 0;
}
