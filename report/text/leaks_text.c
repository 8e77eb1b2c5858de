/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/leaks_text.h"

#include "common/diag.h"

#include <inttypes.h>

void leaks_write_time(FILE *out, uint64_t time_ns)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64, time_ns / 1000000000, time_ns % 1000000000);
}

void leaks_write_time_since_start(FILE *out, const struct analysis *analysis, uint64_t time_ns)
{
	leaks_write_time(out, time_ns > analysis->start_ns ? time_ns - analysis->start_ns : 0);
}

void leaks_write_window(FILE *out, const struct analysis *analysis,
			const struct loss_window *window)
{
	leaks_write_time_since_start(out, analysis, window->start_ns);
	fputs("..", out);
	leaks_write_time_since_start(out, analysis, window->end_ns);
}

void leaks_write_operation(FILE *out, const struct heap_block *block, const struct heap_op *op)
{
	if (block->size_known)
		fprintf(out, "%" PRIu64, block->size_bytes);
	else
		fputc('?', out);
	fprintf(out, " 0x%" PRIx64 " ", block->address);
	leaks_write_time(out, op->time_ns);
	fprintf(out, " %" PRIu64 " %d %d", op->sequence, op->pid, op->tid);
}

void leaks_write_columns(FILE *out, const struct analysis *analysis, const struct heap_block *block,
			 const struct heap_op *op)
{
	const char *comm = heap_tracker_comm_of(analysis->heaps, op->tid);

	leaks_write_operation(out, block, op);
	fputc(' ', out);
	diag_print_escaped(out, *comm ? comm : "?", " \t");
	fprintf(out, " %s %" PRIu32, op->schema->function, op->stack_id);
}

void leaks_write_stack(FILE *out, const struct analysis *analysis, uint32_t stack_id, size_t first)
{
	size_t nr = stack_store_nr_frames(analysis->stacks, stack_id), nr_before = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct stack_frame *frames;
		size_t nr_frames;

		if (stack_store_frames(analysis->stacks, stack_id, i, &frames, &nr_frames)) {
			fputs("\t\n", out);
			continue;
		}
		for (size_t k = 0; k < nr_frames; k++) {
			if (nr_before++ < first)
				continue;
			fputc('\t', out);
			stack_frame_print(&frames[k], out);
			fputc('\n', out);
		}
	}
}
