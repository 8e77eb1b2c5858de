/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Strings, each kept once: equal names are equal pointers, which live as long as the pool. Each
 * also has a number, from 0 on in the order of arrival, for formats with string tables.
 */
#ifndef LEAKTOOLS_REPORT_NAME_POOL_H
#define LEAKTOOLS_REPORT_NAME_POOL_H

#include <stddef.h>
#include <stdint.h>

struct name_pool;

/* NULL: out of memory. */
struct name_pool *name_pool_create(void);
void name_pool_destroy(struct name_pool *pool);

/* The pool's own copy of @text (NULL stays NULL). Returns 0 or -ENOMEM. */
int name_pool_add(struct name_pool *pool, const char *text, const char **ret);

/* How many there are. */
size_t name_pool_size(const struct name_pool *pool);
/* Fills @ret_names, which has room for all of them, in the order of their numbers. */
void name_pool_list(const struct name_pool *pool, const char **ret_names);
/* The number of @name, which name_pool_add() gave. */
uint32_t name_pool_number(const char *name);

#endif
