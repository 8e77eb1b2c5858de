/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/report/holder_text.h"

#include "common/diag.h"

#include <inttypes.h>

static void write_memory(FILE *out, struct scan_report *report, const struct scan_region *region,
			 uint64_t address)
{
	const struct snapshot *snapshot = report->scan->snapshot;
	struct module_place place;

	module_symbols_find(report->symbols, snapshot, address, &place);
	if (!place.module) {
		fprintf(out, "mapping 0x%" PRIx64, region->start);
		if (region->path[0]) {
			putc(' ', out);
			diag_print_escaped(out, region->path, " \t");
		}
		fprintf(out, " +0x%" PRIx64, address - region->start);
		return;
	}
	diag_print_escaped(out, place.module, " \t");
	if (place.symbol) {
		putc(' ', out);
		diag_print_escaped(out, place.symbol, " \t");
	}
	if (place.offset || !place.symbol)
		fprintf(out, "+0x%" PRIx64, place.offset);
}

static void write_kernel(FILE *out, const struct kernel_pointer *pointer)
{
	if (pointer->kind == KERNEL_POINTER_EPOLL)
		fprintf(out, "epoll descriptor %d", pointer->id);
	else
		fprintf(out, "timer %d", pointer->id);
}

void holder_write_root(FILE *out, struct scan_report *report, uint64_t slot)
{
	const struct roots *roots = &report->scan->roots;
	const struct snapshot *snapshot = report->scan->snapshot;
	const struct root_range *range = roots_range_of(roots, slot);
	uint64_t offset = (slot - range->first_slot) * 8;
	const struct scan_thread none = {0};
	const struct scan_thread *thread =
		range->owner < snapshot->nr_threads ? &snapshot->threads[range->owner] : &none;

	switch (range->kind) {
	case ROOT_REGISTER:
		fprintf(out, "register %s of thread %d", thread->registers.general[offset / 8].name,
			thread->tid);
		break;
	case ROOT_VECTOR:
		fprintf(out, "vector register of thread %d", thread->tid);
		break;
	case ROOT_STACK:
		fprintf(out, "stack of thread %d, sp+0x%" PRIx64, thread->tid,
			range->address + offset - thread->registers.sp);
		break;
	case ROOT_RED_ZONE:
		fprintf(out, "stack of thread %d, sp-0x%" PRIx64, thread->tid,
			thread->registers.sp - range->address - offset);
		break;
	case ROOT_DTV:
		if (thread->tid)
			fprintf(out, "thread-local variables of thread %d", thread->tid);
		else
			fputs("thread-local variables of a thread that has ended", out);
		break;
	case ROOT_THREAD:
		fputs("a thread that has ended and is not joined", out);
		break;
	case ROOT_KERNEL:
		write_kernel(out, &snapshot->kernel_pointers[range->owner]);
		break;
	case ROOT_DATA:
	case ROOT_CODE:
		write_memory(out, report, &snapshot->regions[range->owner],
			     range->address + offset);
		break;
	}
}

bool holder_find_root(const struct scan *scan, uint32_t block, uint64_t *ret_slot)
{
	uint32_t holder = scan->marking.holders[block];

	if (!(holder & HOLDER_ROOT) || holder >= HOLDER_UNSEEN)
		return false;
	*ret_slot = holder & ~HOLDER_ROOT;
	return true;
}

void holder_write(FILE *out, struct scan_report *report, uint32_t block)
{
	static const char *const hidden[] = {
		[HIDDEN_NOT] = "",
		[HIDDEN_OUTSIDE] = ", just outside of the block",
		[HIDDEN_TAGGED] = ", with a tag",
		[HIDDEN_UNALIGNED] = ", unaligned",
	};
	const struct scan *scan = report->scan;
	uint32_t holder = scan->marking.holders[block];
	const struct lost_block *lost = NULL;
	struct heap_block_view view;
	uint64_t slot;

	if (scan_class_of(scan, block, &lost) != REACH_UNKNOWN && lost) {
		heap_block_view(&scan->heap, lost->root, &view);
		if (lost->root == block)
			fputs("nothing", out);
		else
			fprintf(out, "block 0x%" PRIx64, view.address);
	} else if (holder_find_root(scan, block, &slot)) {
		holder_write_root(out, report, slot);
	} else if (holder == HOLDER_UNSEEN) {
		fputs("a root", out);
	} else if (holder == HOLDER_NONE || lost) {
		fputs("nothing", out);
	} else {
		heap_block_view(&scan->heap, holder, &view);
		fprintf(out, "block 0x%" PRIx64, view.address);
	}
	fputs(hidden[marking_hidden_kind(&scan->marking, block)], out);
}
