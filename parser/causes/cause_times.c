/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/causes/cause_times.h"

#include <math.h>
#include <stdlib.h>

#define MAX_RATIO 64   /* of their blocks; it is a whole number */
#define MAX_KS	  0.35 /* independent causes agree so well in 3 of 10,000 cases */

void cause_times_add(const struct cause_finder *finder, struct cause_times *times, size_t member)
{
	const struct verdicts *verdicts = finder->verdicts;
	const struct site_verdict *site = finder->members[member].site;

	for (size_t k = 0; site && k < site->held_blocks; k++) {
		uint32_t index = verdicts->order[site->first + k];

		if (verdicts->blocks[index].verdict != VERDICT_NOT_YET)
			times->ns[times->nr++] = finder->input->held[index].allocated.time_ns;
	}
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void cause_times_sort(struct cause_times *times)
{
	qsort(times->ns, times->nr, sizeof(*times->ns), compare_times);
}

double cause_times_distance(const struct cause_times *a, const struct cause_times *b)
{
	double most = 0;
	size_t i = 0, k = 0;

	while (i < a->nr && k < b->nr) {
		uint64_t now = a->ns[i] < b->ns[k] ? a->ns[i] : b->ns[k];

		while (i < a->nr && a->ns[i] == now)
			i++;
		while (k < b->nr && b->ns[k] == now)
			k++;
		most = fmax(most, fabs((double)i / (double)a->nr - (double)k / (double)b->nr));
	}
	return most;
}

bool cause_times_are_multiples(size_t nr, size_t nr_other)
{
	double more = (double)(nr > nr_other ? nr : nr_other);
	double fewer = (double)(nr > nr_other ? nr_other : nr), ratio = round(more / fewer);

	return ratio <= MAX_RATIO && fabs(more - ratio * fewer) <= fmax(2, 0.01 * more);
}

bool cause_times_are_alike(const struct cause_times *a, const struct cause_times *b)
{
	double n = (double)a->nr, m = (double)b->nr;

	return cause_times_distance(a, b) * sqrt(n * m / (n + m)) <= MAX_KS;
}
