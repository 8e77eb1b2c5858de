/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/drain/perf_samples.h"

#include "recorder/events/sample_format.h"

#include <string.h>

const struct raw_head *perf_sample_raw(const struct perf_event_header *record)
{
	size_t at = sizeof(struct plain_head);
	const struct raw_head *raw = (const void *)((const char *)record + at);
	uint64_t nr;

	if (record->type != PERF_RECORD_SAMPLE || record->size < at + sizeof(*raw))
		return NULL;
	/* A callchain comes first if half of its length is in the type's place: 0. */
	if (raw->type)
		return raw;
	memcpy(&nr, raw, sizeof(nr));
	if (nr > record->size / sizeof(nr))
		return NULL;
	at += (nr + 1) * sizeof(nr);
	return record->size < at + sizeof(*raw) ? NULL : (const void *)((const char *)record + at);
}

/* Reads the word at *@at, and moves on. 0 if the sample ends before. */
static uint64_t next_word(const struct perf_event_header *sample, size_t *at)
{
	uint64_t word = 0;

	if (*at + sizeof(word) <= sample->size)
		memcpy(&word, (const char *)sample + *at, sizeof(word));
	*at += sizeof(word);
	return word;
}

void perf_sample_set_caller(struct perf_event_header *sample, const struct record_event *event)
{
	const struct raw_head *raw = perf_sample_raw(sample);
	size_t fields = (size_t)((const char *)&raw->type - (const char *)sample);
	size_t at = fields + raw->size, end = at;
	uint64_t stack_bytes, caller;

	if (end > sample->size || raw->size < event->caller_at + sizeof(caller))
		return;
	/* Without an ABI there are no registers. */
	if (event->has_dump && next_word(sample, &at) != PERF_SAMPLE_REGS_ABI_NONE)
		at += sizeof(uint64_t) * (size_t)__builtin_popcountll(RECORD_REGS_MASK);
	stack_bytes = next_word(sample, &at);
	caller = next_word(sample, &at);
	at += stack_bytes - sizeof(caller);
	/* How many bytes were copied; the rest is what the ring had there. */
	if (!stack_bytes || next_word(sample, &at) < sizeof(caller))
		caller = 0;
	memcpy((char *)sample + fields + event->caller_at, &caller, sizeof(caller));
	if (!event->has_dump)
		sample->size = (uint16_t)end;
}
