/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report_formats.h"

#include "common/scope.h"
#include "report/formats/formats.h"
#include "report/html/html_format.h"

#include <errno.h>
#include <string.h>

#define FORMAT_ADDRESS(name) &name##_format,

const struct report_format *report_format_find(const char *name)
{
	static const struct report_format *const formats[] = {REPORT_FORMATS(FORMAT_ADDRESS)};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	return NULL;
}

int report_write(FILE *out, const struct report_format *format, const struct report_input *input)
{
	int err = format->write(out, input);

	if (err)
		return err;
	return fflush(out) || ferror(out) ? -EIO : 0;
}
