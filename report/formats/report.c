/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/formats/report.h"

#include "report/formats/formats.h"

#include <errno.h>
#include <string.h>

static const struct report_format formats[] = {
	{.name = "tree", .write = tree_format_write},
	{.name = "json", .write = json_format_write},
	{.name = "html", .needs_history = true, .write = html_format_write},
	{.name = "csv", .write = csv_format_write},
	{.name = "folded", .write = folded_format_write},
	{.name = "gprof2dot", .write = gprof2dot_format_write},
	{.name = "callgrind", .write = callgrind_format_write},
	{.name = "heaptrack", .write = heaptrack_format_write},
	{.name = "massif", .needs_history = true, .is_of_all = true, .write = massif_format_write},
	{.name = "pprof", .is_binary = true, .write = pprof_format_write},
	{0},
};

const struct report_format *report_format_list(void)
{
	return formats;
}

const struct report_format *report_format_find(const char *name)
{
	for (const struct report_format *format = formats; format->name; format++)
		if (strcmp(format->name, name) == 0)
			return format;
	return NULL;
}

int report_write(FILE *out, const struct report_format *format, const struct report_input *input)
{
	int err = format->write(out, input);

	if (err)
		return err;
	return fflush(out) || ferror(out) ? -EIO : 0;
}
