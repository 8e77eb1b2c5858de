/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks/history_parser.h"

#include "plot/leaks/line_fields.h"

#include <errno.h>
#include <string.h>

const char *history_parse_periods(char *cursor, struct leaks_periods *ret)
{
	struct leaks_periods periods;
	uint64_t nr, end_ns;

	if (field_parse_number(line_next_field(&cursor), 10, LEAKS_PERIODS_MAX, &nr) || nr == 0)
		return "NR is not a number of periods";
	periods.nr = nr;
	if (field_parse_time(line_next_field(&cursor), &periods.begin_ns) ||
	    field_parse_time(line_next_field(&cursor), &periods.length_ns) || !periods.length_ns ||
	    __builtin_mul_overflow(periods.length_ns, nr, &end_ns) ||
	    __builtin_add_overflow(periods.begin_ns, end_ns, &end_ns))
		return "BEGIN and LENGTH are not times in seconds with nine decimals";
	for (char *word; (word = line_next_field(&cursor));)
		if (strncmp(word, "peak=", 5) == 0 && field_parse_time(word + 5, &periods.peak_ns))
			return "the peak is not a time in seconds with nine decimals";
	*ret = periods;
	return NULL;
}

/* "1,2,3": exactly @nr numbers. */
static int parse_amounts(char *text, uint64_t *amounts, size_t nr)
{
	size_t i = 0;

	for (char *amount; (amount = strsep(&text, ",")); i++)
		if (i == nr || field_parse_number(amount, 10, INT64_MAX, &amounts[i]))
			return -EINVAL;
	return i == nr ? 0 : -EINVAL;
}

/* "1024:3,1536:1", in ascending order. */
static int parse_lifetimes(char *text, struct leaks_history *history)
{
	for (char *pair; (pair = strsep(&text, ","));) {
		struct leaks_lifetime *lifetime = &history->lifetimes[history->nr_lifetimes];
		char *ns = strsep(&pair, ":");

		if (history->nr_lifetimes == LEAKS_LIFETIMES_MAX ||
		    field_parse_number(ns, 10, INT64_MAX, &lifetime->ns) ||
		    field_parse_number(pair, 10, INT64_MAX, &lifetime->nr_blocks) ||
		    (history->nr_lifetimes && lifetime->ns <= lifetime[-1].ns))
			return -EINVAL;
		history->nr_lifetimes++;
	}
	return 0;
}

const char *history_parse(char *cursor, const struct leaks_periods *periods, bool is_cause,
			  struct leaks_history *ret)
{
	char *word = line_next_field(&cursor);
	bool has_bytes = false;

	if (!periods->nr)
		return "the history comes before the periods";
	*ret = (struct leaks_history){.nr = periods->nr, .is_cause = is_cause};
	ret->is_all = !is_cause && word && strcmp(word, "all") == 0;
	if (!ret->is_all && field_parse_u32(word, &ret->stack))
		return is_cause ? "NR is not a number" : "STACK is neither a number nor 'all'";
	while ((word = line_next_field(&cursor))) {
		char *value = strchr(word, '=');
		int err = 0;

		if (!value)
			continue;
		*value++ = '\0';
		if (strcmp(word, "held_bytes") == 0) {
			err = parse_amounts(value, ret->held_bytes, ret->nr);
			has_bytes = true;
		} else if (strcmp(word, "held_blocks") == 0) {
			err = parse_amounts(value, ret->held_blocks, ret->nr);
		} else if (strcmp(word, "at_peak_bytes") == 0) {
			err = field_parse_number(value, 10, INT64_MAX, &ret->at_peak_bytes);
		} else if (strcmp(word, "at_peak_blocks") == 0) {
			err = field_parse_number(value, 10, INT64_MAX, &ret->at_peak_blocks);
		} else if (strcmp(word, "lifetimes") == 0) {
			ret->nr_lifetimes = 0;
			err = parse_lifetimes(value, ret);
		}
		if (err)
			return "the history has an invalid number, or too many or too few numbers";
	}
	return has_bytes ? NULL : "the history has no held_bytes";
}
