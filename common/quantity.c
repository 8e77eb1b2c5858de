/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/quantity.h"

#include "common/scope.h"

#include <inttypes.h>
#include <stdbool.h>
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

#define MAX_DIGITS 1e15 /* a double has no more */

/* The place of the last digit of an estimate: the error then has one digit, or two up to 29. */
static double last_place(double error)
{
	double place = 1;

	while (place > error)
		place /= 10;
	while (place * 10 <= error)
		place *= 10;
	return error < 2.95 * place ? place / 10 : place;
}

static bool is_estimate(double value, double error)
{
	return value >= 0 && error > 0 && error < MAX_DIGITS &&
	       value / last_place(error) < MAX_DIGITS;
}

double quantity_estimate(double value, double error)
{
	double place;

	if (!is_estimate(value, error))
		return value;
	place = last_place(error);
	return (double)(uint64_t)(value / place + 0.5) * place;
}

static int estimate_decimals(double number, double error)
{
	int decimals = 0;

	if (!is_estimate(number, error))
		return significant_decimals(number);
	for (double place = last_place(error);
	     place < 0.99 && decimals < significant_decimals(number); place *= 10)
		decimals++;
	return decimals;
}

struct quantity_text quantity_number_estimate(double number, double error)
{
	struct quantity_text text;

	snprintf(text.text, sizeof(text.text), "%.*f", estimate_decimals(number, error),
		 quantity_estimate(number, error));
	return text;
}

struct quantity_text quantity_bytes_estimate(double bytes, double error)
{
	struct quantity_text text;
	size_t i = 0;

	if (bytes < 1023.5)
		return quantity_bytes(quantity_estimate(bytes, error));
	for (; bytes >= 1023.5 && i < ARRAY_SIZE(unit_names) - 1; i++) {
		bytes /= 1024;
		error /= 1024;
	}
	snprintf(text.text, sizeof(text.text), "%.*f %s", estimate_decimals(bytes, error),
		 quantity_estimate(bytes, error), unit_names[i]);
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

	if (value >= 1023.95) {
		unit = quantity_unit_for((uint64_t)unit.bytes << 10);
		value /= 1024;
	}
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
		/* "90 s" says more than "1.5 min", and "1.00 s" more than "1000 ms". */
		if (seconds < units[i].length_s * (units[i].length_s > 1 ? 2 : 0.9995))
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
