/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * uthash tables whose keys are structures of 64-bit words (or pointers) without padding. The hash
 * is seeded, so that an attacker cannot prepare colliding keys.
 */
#ifndef LEAKTOOLS_REPORT_WORD_TABLE_H
#define LEAKTOOLS_REPORT_WORD_TABLE_H

#include "common/hash.h"

#define WORD_TABLE_MAX_WORDS 8

static inline unsigned int word_table_hash(const void *key, size_t size)
{
	uint64_t words[WORD_TABLE_MAX_WORDS];

	memcpy(words, key, size);
	return (unsigned int)hash_words(words, size / sizeof(*words), hash_seed());
}

#define WORD_TABLE_CHECK(key)                                                                      \
	_Static_assert(sizeof(key) <= WORD_TABLE_MAX_WORDS * sizeof(uint64_t) &&                   \
			       sizeof(key) % sizeof(uint64_t) == 0,                                \
		       "the key must consist of 64-bit words")

/* Sets @out to the element with key *@keyp, or to NULL. */
#define WORD_TABLE_FIND(head, keyp, out)                                                           \
	do {                                                                                       \
		WORD_TABLE_CHECK(*(keyp));                                                         \
		HASH_FIND_BYHASHVALUE(hh, head, keyp, sizeof(*(keyp)),                             \
				      word_table_hash(keyp, sizeof(*(keyp))), out);                \
	} while (0)

/* Adds @element with its member @field as the key. Check the result with hash_added(). */
#define WORD_TABLE_ADD(head, field, element)                                                       \
	do {                                                                                       \
		WORD_TABLE_CHECK((element)->field);                                                \
		HASH_ADD_KEYPTR_BYHASHVALUE(                                                       \
			hh, head, &(element)->field, sizeof((element)->field),                     \
			word_table_hash(&(element)->field, sizeof((element)->field)), element);    \
	} while (0)

#endif
