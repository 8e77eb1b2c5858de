/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes, times and counts as text for people. Units of bytes are powers of 1024. */
#ifndef LEAKTOOLS_COMMON_QUANTITY_H
#define LEAKTOOLS_COMMON_QUANTITY_H

#include <stdint.h>

#define QUANTITY_TEXT_SIZE 32

struct quantity_text {
	char text[QUANTITY_TEXT_SIZE];
};

/* A unit of size: its name, and how many bytes it has. */
struct quantity_unit {
	const char *name;
	double bytes;
};

/* A unit of time for rates: its name, and its length. */
struct quantity_period {
	const char *name;
	double length_s;
};

/* Three significant digits: "3.00", "15.2", "130". */
struct quantity_text quantity_number(double number);

/* Three significant digits, for amounts that are compared: "512 bytes", "3.00 KiB", "15.2 MiB". */
struct quantity_text quantity_bytes(double bytes);

/*
 * An estimate, without the digits that its standard error makes meaningless: 53203 with an error of
 * 10286 is 53000, and the error 10000. Without an error it is exact.
 */
double quantity_estimate(double value, double error);

/* quantity_number() of an estimate: 10.04 with an error of 1.3 is "10.0", the error "1.3". */
struct quantity_text quantity_number_estimate(double number, double error);

/* quantity_bytes() of an estimate: 3254780 with an error of 627700 is "3.1 MiB". */
struct quantity_text quantity_bytes_estimate(double bytes, double error);

/* Short, for titles and axes: "3 KiB"; one decimal if @size_bytes is no multiple: "1.5 MiB". */
struct quantity_text quantity_size(uint64_t size_bytes);

/* Three significant digits: "21.0 us", "3.90 s", "90.0 s", "2.10 h". */
struct quantity_text quantity_duration(double seconds);

/* From 10,000 on with a comma for each three digits. */
struct quantity_text quantity_count(uint64_t count);

/* The largest unit of which @size_bytes has at least one. */
struct quantity_unit quantity_unit_for(uint64_t size_bytes);

/* The shortest of a second, a minute, an hour and a day in which a rate reaches 1; else a day. */
static inline struct quantity_period quantity_period_for(double per_s)
{
	if (per_s >= 1 || per_s <= 0)
		return (struct quantity_period){"s", 1};
	if (per_s >= 1.0 / 60)
		return (struct quantity_period){"min", 60};
	if (per_s >= 1.0 / 3600)
		return (struct quantity_period){"h", 3600};
	return (struct quantity_period){"day", 86400};
}

/* @one for 1, otherwise @many, as in quantity_word(nr, "process", "processes"). */
static inline const char *quantity_word(uint64_t nr, const char *one, const char *many)
{
	return nr == 1 ? one : many;
}

/* The "s" of a regular plural. */
static inline const char *quantity_plural(uint64_t nr)
{
	return quantity_word(nr, "", "s");
}

#endif
