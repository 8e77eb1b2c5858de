/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/quantity.h"

#include "common/scope.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const unit_names[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

static int significant_decimals(double number)
{
	return number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
}

struct quantity_text quantity_number(double number)
{
	struct quantity_text text;

	snprintf(text.text, sizeof(text.text), "%.*f", significant_decimals(number), number);
	return text;
}

struct quantity_text quantity_bytes(double bytes)
{
	struct quantity_text text;
	size_t i = 0;

	if (bytes < 1023.5) {
		snprintf(text.text, sizeof(text.text), "%.0f byte%s", bytes,
			 bytes >= 0.5 && bytes < 1.5 ? "" : "s");
		return text;
	}
	for (; bytes >= 1023.5 && i < ARRAY_SIZE(unit_names) - 1; i++)
		bytes /= 1024;
	snprintf(text.text, sizeof(text.text), "%.*f %s", significant_decimals(bytes), bytes,
		 unit_names[i]);
	return text;
}

struct quantity_unit quantity_unit_for(uint64_t size_bytes)
{
	struct quantity_unit unit = {unit_names[0], 1};

	for (size_t i = 1; i < ARRAY_SIZE(unit_names) && size_bytes >> (10 * i); i++)
		unit = (struct quantity_unit){unit_names[i], (double)(UINT64_C(1) << (10 * i))};
	return unit;
}

struct quantity_text quantity_size(uint64_t size_bytes)
{
	struct quantity_unit unit = quantity_unit_for(size_bytes);
	double value = (double)size_bytes / unit.bytes;
	struct quantity_text text;

	if (size_bytes == 1)
		snprintf(text.text, sizeof(text.text), "1 byte");
	else if (value == (double)(uint64_t)value)
		snprintf(text.text, sizeof(text.text), "%.0f %s", value, unit.name);
	else
		snprintf(text.text, sizeof(text.text), "%.1f %s", value, unit.name);
	return text;
}

struct quantity_text quantity_duration(double seconds)
{
	static const struct {
		double length_s;
		const char *name;
	} units[] = {{86400, "days"}, {3600, "h"},  {60, "min"},
		     {1, "s"},	      {1e-3, "ms"}, {1e-6, "us"}};
	struct quantity_text text;

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		/* "90 s" says more than "1.5 min". */
		if (seconds < units[i].length_s * (units[i].length_s > 1 ? 2 : 1))
			continue;
		seconds /= units[i].length_s;
		snprintf(text.text, sizeof(text.text), "%.*f %s", significant_decimals(seconds),
			 seconds, units[i].name);
		return text;
	}
	snprintf(text.text, sizeof(text.text), "%.0f ns", seconds * 1e9);
	return text;
}

struct quantity_text quantity_count(uint64_t count)
{
	char digits[24];
	struct quantity_text text;
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count), to = 0;

	for (size_t i = 0; i < len; i++) {
		if (i && count >= 10000 && (len - i) % 3 == 0)
			text.text[to++] = ',';
		text.text[to++] = digits[i];
	}
	text.text[to] = '\0';
	return text;
}
