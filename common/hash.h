/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Configures uthash: callers handle failed allocations, and keys may be hashed by a 64-bit mixing
 * function instead of uthash's byte-wise one.
 */
#ifndef LEAKTOOLS_COMMON_HASH_H
#define LEAKTOOLS_COMMON_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

/* After a failed HASH_ADD the element is in no table; hash_added() tells. */
#define HASH_NONFATAL_OOM	 1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>

#define hash_added(elt) ((elt)->hh.tbl != NULL)

/* Spreads every bit of the 128-bit product over the result (the core of wyhash and others). */
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A random number of this process: nobody outside can prepare keys that collide. */
static inline uint64_t hash_seed(void)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): the auxiliary vector holds addresses so */
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t seed = 0;

	if (random)
		memcpy(&seed, random, sizeof(seed));
	return seed;
}

static inline uint64_t hash_words(const uint64_t *words, size_t nr, uint64_t seed)
{
	uint64_t hash = seed ^ 0x9e3779b97f4a7c15;

	size_t i = 0;

	for (; i + 1 < nr; i += 2)
		hash = hash_mix(hash ^ words[i], 0xd6e8feb86659fd93 ^ words[i + 1]);
	if (i < nr)
		hash = hash_mix(hash ^ words[i], 0xd6e8feb86659fd93);
	return hash_mix(hash, 0xa0761d6478bd642f ^ nr);
}

/* The hash of one number, for uthash. */
static inline unsigned int hash_number(uint64_t number, uint64_t seed)
{
	return (unsigned int)hash_words(&number, 1, seed);
}

/* The hash of a text, which may be NULL. */
static inline uint64_t hash_text(const char *text, uint64_t seed)
{
	uint64_t hash = seed ^ 0x9e3779b97f4a7c15, word;
	size_t left = text ? strlen(text) : 0, len = left;

	for (; left > 0; left -= left < sizeof(word) ? left : sizeof(word)) {
		word = 0;
		memcpy(&word, text + (len - left), left < sizeof(word) ? left : sizeof(word));
		hash = hash_mix(hash ^ word, 0xd6e8feb86659fd93);
	}
	return hash_mix(hash, 0xa0761d6478bd642f ^ len ^ (text ? 0 : 1));
}

#endif
