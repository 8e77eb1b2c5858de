/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The format of marks in recordings: that of tracefs for a probe with a string. */
#ifndef LEAKTOOLS_RECORDER_MARK_FORMAT_H
#define LEAKTOOLS_RECORDER_MARK_FORMAT_H

#include <stdint.h>

/* The fields that all tracepoints have. */
#define COMMON_FIELDS                                                                              \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"             \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

/* The text of the format file of @event. The caller frees it. NULL: out of memory. */
char *mark_format_text(const char *event, uint64_t type);

#endif
