/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/statistics/lifetime_sketch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PER_OCTAVE (1u << LIFETIME_SUB_BITS)

void lifetime_sketch_deinit(struct lifetime_sketch *sketch)
{
	free(sketch->counts);
	*sketch = (struct lifetime_sketch){0};
}

uint64_t lifetime_bucket_start(unsigned int bucket)
{
	unsigned int octave = bucket >> LIFETIME_SUB_BITS;

	if (octave == 0)
		return bucket;
	return (uint64_t)(PER_OCTAVE | (bucket & (PER_OCTAVE - 1))) << (octave - 1);
}

double lifetime_bucket_value(unsigned int bucket)
{
	double start = (double)lifetime_bucket_start(bucket), end;
	unsigned int octave = bucket >> LIFETIME_SUB_BITS;

	if (octave == 0)
		return start;
	end = start + (double)(UINT64_C(1) << (octave - 1));
	return 2 * start * end / (start + end);
}

int lifetime_sketch_grow(struct lifetime_sketch *sketch, unsigned int bucket)
{
	unsigned int first = bucket & ~(PER_OCTAVE - 1), end = first + PER_OCTAVE;
	uint32_t *counts;

	if (sketch->nr > 0 && sketch->first < first)
		first = sketch->first;
	if (sketch->nr > 0 && sketch->first + sketch->nr > end)
		end = sketch->first + sketch->nr;
	counts = calloc(end - first, sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	if (sketch->nr > 0)
		memcpy(counts + (sketch->first - first), sketch->counts,
		       sketch->nr * sizeof(*counts));
	free(sketch->counts);
	*sketch = (struct lifetime_sketch){
		.counts = counts,
		.first = (uint16_t)first,
		.nr = (uint16_t)(end - first),
	};
	return 0;
}

void lifetime_sketch_remove(struct lifetime_sketch *sketch, uint64_t ns)
{
	unsigned int index = lifetime_bucket(ns) - sketch->first;

	if (index < sketch->nr && sketch->counts[index] > 0)
		sketch->counts[index]--;
}

int lifetime_sketch_merge(struct lifetime_sketch *sketch, const struct lifetime_sketch *other)
{
	for (unsigned int i = 0; i < other->nr; i++) {
		unsigned int bucket = other->first + i;
		uint32_t *count;

		if (!other->counts[i])
			continue;
		if (bucket - sketch->first >= sketch->nr) {
			int err = lifetime_sketch_grow(sketch, bucket);

			if (err)
				return err;
		}
		count = &sketch->counts[bucket - sketch->first];
		if (__builtin_add_overflow(*count, other->counts[i], count))
			*count = UINT32_MAX;
	}
	return 0;
}

uint32_t lifetime_sketch_count(const struct lifetime_sketch *sketch, unsigned int bucket)
{
	return bucket - sketch->first < sketch->nr ? sketch->counts[bucket - sketch->first] : 0;
}

uint64_t lifetime_sketch_total(const struct lifetime_sketch *sketch)
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < sketch->nr; i++)
		total += sketch->counts[i];
	return total;
}

double lifetime_sketch_quantile(const struct lifetime_sketch *sketch, double quantile)
{
	uint64_t total = lifetime_sketch_total(sketch), seen = 0;
	/* The rank of the quantile, from 0. */
	double rank = quantile * (double)(total ? total - 1 : 0);

	for (unsigned int i = 0; i < sketch->nr; i++) {
		seen += sketch->counts[i];
		if ((double)seen > rank)
			return lifetime_bucket_value(sketch->first + i);
	}
	return 0;
}
