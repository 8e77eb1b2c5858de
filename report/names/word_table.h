/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * uthash tables whose keys are structures of nothing but 64-bit words (pointers are such), without
 * padding. The hash is seeded: colliding keys can't be prepared.
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
		       "a key of words")

/* *@keyp is a key; @out becomes the element that has it, or NULL. */
#define WORD_TABLE_FIND(head, keyp, out)                                                           \
	do {                                                                                       \
		WORD_TABLE_CHECK(*(keyp));                                                         \
		HASH_FIND_BYHASHVALUE(hh, head, keyp, sizeof(*(keyp)),                             \
				      word_table_hash(keyp, sizeof(*(keyp))), out);                \
	} while (0)

/* Adds @element by its member @field; hash_added() tells whether it is. */
#define WORD_TABLE_ADD(head, field, element)                                                       \
	do {                                                                                       \
		WORD_TABLE_CHECK((element)->field);                                                \
		HASH_ADD_KEYPTR_BYHASHVALUE(                                                       \
			hh, head, &(element)->field, sizeof((element)->field),                     \
			word_table_hash(&(element)->field, sizeof((element)->field)), element);    \
	} while (0)

#endif
