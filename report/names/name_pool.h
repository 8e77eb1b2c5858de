/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interns strings: equal names become equal pointers, valid as long as the pool. Each name also has
 * a number, counted from 0 in the order of insertion, for formats with string tables.
 */
#ifndef LEAKTOOLS_REPORT_NAME_POOL_H
#define LEAKTOOLS_REPORT_NAME_POOL_H

#include <stddef.h>
#include <stdint.h>

struct name_pool;

/* Returns NULL if memory is exhausted. */
struct name_pool *name_pool_create(void);
void name_pool_destroy(struct name_pool *pool);

/* Stores the pool's copy of @text in *@ret (NULL for NULL). Returns 0 or -ENOMEM. */
int name_pool_add(struct name_pool *pool, const char *text, const char **ret);

/* The number of names. */
size_t name_pool_size(const struct name_pool *pool);
/* Fills @ret_names, an array of name_pool_size() entries, in the order of the numbers. */
void name_pool_list(const struct name_pool *pool, const char **ret_names);
/* The number of @name, a pointer from name_pool_add(). */
uint32_t name_pool_number(const char *name);

#endif
