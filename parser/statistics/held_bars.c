/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/statistics/held_bars.h"

bool held_bars(const struct site *site, uint64_t origin_ns, uint64_t end_ns, uint16_t *ret,
	       size_t nr)
{
	const struct site_history *history = site->history;
	int64_t held[SITE_PERIODS] = {0}, most = 1, sum = 0;
	size_t nr_periods;

	if (!history || end_ns <= origin_ns)
		return false;
	nr_periods = ((end_ns - origin_ns) >> history->shift) + 1;
	if (nr_periods > SITE_PERIODS)
		nr_periods = SITE_PERIODS;
	for (size_t i = 0; i < nr_periods; i++) {
		sum += (int64_t)history->periods[i].allocated - (int64_t)history->periods[i].ended;
		held[i] = sum > 0 ? sum : 0;
		if (held[i] > most)
			most = held[i];
	}
	for (size_t i = 0; i < nr; i++) {
		int64_t value = held[((i + 1) * nr_periods - 1) / nr];

		ret[i] = (uint16_t)(value * HELD_BARS_UNITS / most);
		if (value && !ret[i])
			ret[i] = 1;
	}
	return true;
}

const char *held_bar_text(uint16_t height, bool utf8)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const digits[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};

	if (!height)
		return utf8 ? " " : ".";
	return utf8 ? bars[height * 7 / HELD_BARS_UNITS] : digits[height * 8 / HELD_BARS_UNITS];
}
