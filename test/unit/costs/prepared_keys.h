/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys that someone chose, so that they are in few chains of a hash table. */
#ifndef LEAKTOOLS_TEST_PREPARED_KEYS_H
#define LEAKTOOLS_TEST_PREPARED_KEYS_H

#include "common/hash.h"

/* What has such a hash by uthash's own function is in few of a table's chains. */
#define is_prepared(key)                                                                           \
	({                                                                                         \
		unsigned int hash_;                                                                \
                                                                                                   \
		HASH_JEN(&(key), sizeof(key), hash_);                                              \
		hash_ % 256 == 0;                                                                  \
	})

#endif
