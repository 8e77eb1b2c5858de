/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/statistics/release_counts.h"

#include "common/hash.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>

struct release_pair {
	uint64_t key; /* key_of() */
	uint64_t count;
	UT_hash_handle hh;
};

struct release_counts {
	struct release_pair *pairs;
	uint64_t seed;
	uint64_t uncounted;
};

static uint64_t key_of(uint32_t allocated, uint32_t released)
{
	return (uint64_t)allocated << 32 | released;
}

static uint32_t allocated_of(const struct release_pair *pair)
{
	return (uint32_t)(pair->key >> 32);
}

struct release_counts *release_counts_create(void)
{
	struct release_counts *counts = calloc(1, sizeof(*counts));

	if (counts)
		counts->seed = hash_seed();
	return counts;
}

void release_counts_destroy(struct release_counts *counts)
{
	struct release_pair *pair, *next;

	if (!counts)
		return;
	HASH_ITER (hh, counts->pairs, pair, next) {
		HASH_DEL(counts->pairs, pair);
		free(pair);
	}
	free(counts);
}

static struct release_pair *find_pair(const struct release_counts *counts, uint64_t key)
{
	struct release_pair *pair;

	HASH_FIND_BYHASHVALUE(hh, counts->pairs, &key, sizeof(key), hash_number(key, counts->seed),
			      pair);
	return pair;
}

/* NULL: there is no room for it. */
static struct release_pair *add_pair(struct release_counts *counts, uint64_t key)
{
	struct release_pair *pair;

	if (HASH_COUNT(counts->pairs) >= RELEASE_COUNTS_MAX)
		return NULL;
	pair = calloc(1, sizeof(*pair));
	if (!pair)
		return NULL;
	pair->key = key;
	HASH_ADD_BYHASHVALUE(hh, counts->pairs, key, sizeof(pair->key),
			     hash_number(key, counts->seed), pair);
	if (hash_added(pair))
		return pair;
	free(pair);
	return NULL;
}

void release_counts_add(struct release_counts *counts, uint32_t allocated, uint32_t released)
{
	uint64_t key = key_of(allocated, released);
	struct release_pair *pair = find_pair(counts, key);

	if (!pair)
		pair = add_pair(counts, key);
	if (pair)
		pair->count++;
	else
		counts->uncounted++;
}

void release_counts_withdraw(struct release_counts *counts, uint32_t allocated, uint32_t released)
{
	struct release_pair *pair = find_pair(counts, key_of(allocated, released));

	/* Pairs stay, so one that is not there was never counted. */
	if (pair)
		pair->count -= pair->count > 0;
	else
		counts->uncounted -= counts->uncounted > 0;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int compare_stacks(const void *a, const void *b)
{
	const struct stack_count *x = a, *y = b;

	return compare_ids(&x->stack_id, &y->stack_id);
}

/* Equal ones in the order in which their stacks were first seen. */
static int compare_counts(const void *a, const void *b)
{
	const struct stack_count *x = a, *y = b;
	int order = (x->count < y->count) - (x->count > y->count);

	return order ? order : compare_stacks(a, b);
}

size_t stack_counts_join(struct stack_count *counts, size_t nr)
{
	size_t nr_joined = 0;

	qsort(counts, nr, sizeof(*counts), compare_stacks);
	for (size_t i = 0; i < nr; i++) {
		if (nr_joined && counts[nr_joined - 1].stack_id == counts[i].stack_id)
			counts[nr_joined - 1].count += counts[i].count;
		else
			counts[nr_joined++] = counts[i];
	}
	qsort(counts, nr_joined, sizeof(*counts), compare_counts);
	return nr_joined;
}

int release_counts_of(const struct release_counts *counts, const uint32_t *allocated, size_t nr,
		      struct stack_count **ret, size_t *ret_nr)
{
	size_t nr_pairs = HASH_COUNT(counts->pairs), nr_found = 0;
	_cleanup_free_ struct stack_count *found = calloc(nr_pairs + 1, sizeof(*found));
	const struct release_pair *pair;

	if (!found)
		return -ENOMEM;
	for (pair = counts->pairs; pair; pair = pair->hh.next) {
		uint32_t site = allocated_of(pair);

		if (pair->count && bsearch(&site, allocated, nr, sizeof(site), compare_ids))
			found[nr_found++] = (struct stack_count){
				.stack_id = (uint32_t)pair->key,
				.count = pair->count,
			};
	}
	*ret_nr = stack_counts_join(found, nr_found);
	*ret = steal_ptr(found);
	return 0;
}

uint64_t release_counts_uncounted(const struct release_counts *counts)
{
	return counts->uncounted;
}
