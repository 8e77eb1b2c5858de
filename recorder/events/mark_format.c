/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/events/mark_format.h"

#include "common/schema/probe_schema.h"

#include <stdio.h>

char *mark_format_text(const char *event, uint64_t type)
{
	static const char format[] =
		"name: %s\nID: %" PRIu64 "\nformat:\n" COMMON_FIELDS
		"\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"
		"\tfield:__data_loc char[] " PROBE_FIELD_TEXT
		";\toffset:16;\tsize:4;\tsigned:1;\n\n"
		"print fmt: \"(%%lx) " PROBE_FIELD_TEXT
		"=\\\"%%s\\\"\", REC->__probe_ip, __get_str(" PROBE_FIELD_TEXT ")\n";
	char *text = NULL;

	return asprintf(&text, format, event, type) < 0 ? NULL : text;
}
