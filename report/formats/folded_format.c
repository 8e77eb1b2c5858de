/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The folded format, which flamegraph.pl, inferno and speedscope read: a line per stack with its
 * frames, main first and joined by semicolons, and its held bytes.
 */
#include "common/diag.h"
#include "report/formats/formats.h"
#include "report/names/named_stack.h"

#include <errno.h>
#include <inttypes.h>

static void write_stack(FILE *out, const struct named_stack *stack, uint64_t weight)
{
	for (size_t i = stack->nr; i-- > 0;) {
		/* A semicolon would split the frame. */
		diag_print_escaped(out, stack->frames[i].name, ";");
		if (i)
			fputc(';', out);
	}
	fprintf(out, " %" PRIu64 "\n", weight);
}

/* Descriptors and objects have no bytes: the weight is then the number of blocks. */
static bool has_bytes(const struct leak_report *report)
{
	for (size_t i = 0; i < report->nr_listed_sites; i++)
		if (report->sites[i].bytes)
			return true;
	return false;
}

static int write_report(FILE *out, const struct report_input *input)
{
	const struct leak_report *report = input->report;
	struct named_stack stack = {.names = name_pool_create()};
	bool by_bytes = has_bytes(report);
	int err = stack.names ? 0 : -ENOMEM;

	for (size_t i = 0; i < report->nr_listed_sites && !err; i++) {
		const struct leak_site *site = &report->sites[i];

		err = named_stack_load_frames(&stack, report->analysis->stacks,
					      report->verdicts.sites[site->site].site->stack_id);
		if (!err)
			write_stack(out, &stack, by_bytes ? site->bytes : site->blocks);
	}
	name_pool_destroy(stack.names);
	named_stack_deinit(&stack);
	return err ? err : ferror(out) ? -EIO : 0;
}

const struct report_format folded_format = {.name = "folded", .write = write_report};
