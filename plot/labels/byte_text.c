/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/labels/byte_text.h"

#include "common/scope.h"

#include <inttypes.h>

static const char *const unit_names[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

struct byte_unit byte_unit_for(uint64_t size_bytes)
{
	struct byte_unit unit = {unit_names[0], 1};

	for (size_t i = 1; i < ARRAY_SIZE(unit_names) && size_bytes >> (10 * i); i++)
		unit = (struct byte_unit){unit_names[i], (double)(UINT64_C(1) << (10 * i))};
	return unit;
}

struct byte_text byte_text_format(uint64_t size_bytes)
{
	struct byte_unit unit = byte_unit_for(size_bytes);
	double value = (double)size_bytes / unit.bytes;
	struct byte_text text;

	if (size_bytes == 1)
		snprintf(text.text, sizeof(text.text), "1 byte");
	else if (value == (double)(uint64_t)value)
		snprintf(text.text, sizeof(text.text), "%.0f %s", value, unit.name);
	else
		snprintf(text.text, sizeof(text.text), "%.1f %s", value, unit.name);
	return text;
}

struct byte_text count_text_format(uint64_t count)
{
	char digits[24];
	struct byte_text text;
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count), to = 0;

	for (size_t i = 0; i < len; i++) {
		if (i && count >= 10000 && (len - i) % 3 == 0)
			text.text[to++] = ',';
		text.text[to++] = digits[i];
	}
	text.text[to] = '\0';
	return text;
}
