/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/names/stack_frame.h"

#include "common/diag.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

int stack_frame_print(const struct stack_frame *frame, FILE *out)
{
	static const char *const marks[] = {
		[STACK_TRUNCATED] = "(truncated: the stack is longer than the recorded part)",
		[STACK_INCOMPLETE] = "(incomplete: the next frame is not known)",
		[STACK_ELSEWHERE] = "(elsewhere: the caller is on another stack)",
	};
	const char *slash;

	if (!frame->module && frame->address <= STACK_LAST_MARK) {
		fputs(marks[frame->address], out);
		return ferror(out) ? -EIO : 0;
	}
	if (!frame->module) {
		fprintf(out, "0x%" PRIx64 "  (unknown)", frame->address);
		return ferror(out) ? -EIO : 0;
	}
	if (frame->function) {
		diag_print_escaped(out, frame->function, NULL);
		fprintf(out, "+0x%" PRIx64, frame->function_offset);
	} else {
		slash = strrchr(frame->module, '/');
		diag_print_escaped(out, slash ? slash + 1 : frame->module, NULL);
		fprintf(out, "+0x%" PRIx64, frame->module_offset);
	}
	if (frame->file) {
		fputs("  ", out);
		diag_print_escaped(out, frame->file, NULL);
		fprintf(out, ":%d", frame->line);
	}
	fputs("  (", out);
	diag_print_escaped(out, frame->module, NULL);
	fputs(frame->inlined ? ")  inlined" : ")", out);
	return ferror(out) ? -EIO : 0;
}
