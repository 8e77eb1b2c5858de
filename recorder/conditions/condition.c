/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/conditions/condition.h"

#include "common/number.h"
#include "common/scope.h"
#include "common/size_range.h"

#include <errno.h>
#include <string.h>

#define MINUTE_NS   60000000000ULL
#define HOUR_NS	    (60 * MINUTE_NS)
#define MAX_PERCENT 100

static const struct {
	const char *text;
	enum condition_kind kind;
} words[] = {
	{"memory.high", CONDITION_HIGH}, {"memory.max", CONDITION_MAX},
	{"memory.oom", CONDITION_OOM},	 {"signal", CONDITION_SIGNAL},
	{"end", CONDITION_END},
};

/* Returns what follows @prefix, or NULL. */
static const char *after(const char *text, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

static int parse_rss(const char *text, struct condition *ret)
{
	ret->kind = CONDITION_RSS;
	return size_parse(text, &ret->limit) || !ret->limit ? -EINVAL : 0;
}

/* "100M/m" */
static int parse_growth(const char *text, struct condition *ret)
{
	const char *slash = strchr(text, '/');
	char size[32];

	if (!slash || (size_t)(slash - text) >= sizeof(size))
		return -EINVAL;
	if (strcmp(slash, "/m") == 0)
		ret->within_ns = MINUTE_NS;
	else if (strcmp(slash, "/h") == 0)
		ret->within_ns = HOUR_NS;
	else
		return -EINVAL;
	memcpy(size, text, (size_t)(slash - text));
	size[slash - text] = '\0';
	ret->kind = CONDITION_RSS_GROWTH;
	return size_parse(size, &ret->limit) || !ret->limit ? -EINVAL : 0;
}

/* "10%" */
static int parse_pressure(const char *text, struct condition *ret)
{
	size_t len = strlen(text);
	char number[16];
	double percent;

	if (len < 2 || len > sizeof(number) || text[len - 1] != '%')
		return -EINVAL;
	memcpy(number, text, len - 1);
	number[len - 1] = '\0';
	if (number_parse_fraction(number, &percent) || !(percent <= MAX_PERCENT))
		return -EINVAL;
	ret->kind = CONDITION_PRESSURE;
	ret->limit = (uint64_t)(percent * 100 + 0.5);
	return ret->limit ? 0 : -EINVAL;
}

int condition_parse(const char *text, struct condition *ret)
{
	const char *value;

	*ret = (struct condition){.text = text};
	if ((value = after(text, "rss=")))
		return parse_rss(value, ret);
	if ((value = after(text, "rss+=")))
		return parse_growth(value, ret);
	if ((value = after(text, "pressure=")))
		return parse_pressure(value, ret);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		ret->kind = words[i].kind;
		if (strcmp(text, words[i].text) == 0)
			return 0;
	}
	return -EINVAL;
}

/* How much more @bytes is than it was when the condition's time began. */
static uint64_t growth(struct condition *condition, uint64_t now_ns, uint64_t bytes)
{
	struct condition_sample *samples = condition->samples;
	uint64_t step_ns = condition->within_ns / (CONDITION_SAMPLES - 1);
	size_t nr_old = 0;

	/* The oldest one that is kept is from when that time began, or before. */
	while (nr_old + 1 < condition->nr_samples &&
	       samples[nr_old + 1].time_ns + condition->within_ns <= now_ns)
		nr_old++;
	condition->nr_samples -= nr_old;
	memmove(samples, samples + nr_old, condition->nr_samples * sizeof(*samples));
	if (!condition->nr_samples ||
	    (condition->nr_samples < CONDITION_SAMPLES &&
	     now_ns - samples[condition->nr_samples - 1].time_ns >= step_ns))
		samples[condition->nr_samples++] = (struct condition_sample){now_ns, bytes};
	return bytes > samples[0].bytes ? bytes - samples[0].bytes : 0;
}

/* Compares with a limit; once that is reached, the value has to fall below @rearm. */
static bool reaches(struct condition *condition, uint64_t value, uint64_t rearm)
{
	bool was_met = condition->is_met;

	if (value == UINT64_MAX)
		return false;
	if (value >= condition->limit)
		condition->is_met = true;
	else if (value < rearm)
		condition->is_met = false;
	return condition->is_met && !was_met;
}

/* True if there were more events than at the last check. */
static bool rises(struct condition *condition, uint64_t value)
{
	bool rose = condition->has_before && value > condition->before;

	if (value == UINT64_MAX)
		return false;
	condition->before = value;
	condition->has_before = true;
	return rose;
}

bool condition_check(struct condition *condition, const struct condition_values *values)
{
	uint64_t limit = condition->limit;

	switch (condition->kind) {
	case CONDITION_RSS:
		return reaches(condition, values->rss_bytes, limit - limit / 10);
	case CONDITION_RSS_GROWTH:
		return values->rss_bytes != UINT64_MAX &&
		       reaches(condition, growth(condition, values->now_ns, values->rss_bytes),
			       limit / 2);
	case CONDITION_PRESSURE:
		return reaches(condition, values->pressure, limit / 2);
	case CONDITION_HIGH:
		return rises(condition, values->high);
	case CONDITION_MAX:
		return rises(condition, values->max);
	case CONDITION_OOM:
		return rises(condition, values->oom);
	default:
		return false;
	}
}
