/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program's own wrappers, which a `leaks` file lists before its stacks. */
#ifndef LEAKTOOLS_PLOT_WRAPPER_SET_H
#define LEAKTOOLS_PLOT_WRAPPER_SET_H

#include <stdbool.h>
#include <stddef.h>

/* leakparse writes no more; others are ignored to bound memory use. */
#define WRAPPER_SET_MAX 64

/* Zero it before the first use. */
struct wrapper_set {
	char *functions[WRAPPER_SET_MAX], *modules[WRAPPER_SET_MAX];
	size_t nr;
};

/* Returns 0 or -ENOMEM. */
int wrapper_set_add(struct wrapper_set *set, const char *function, const char *module);

/* @module may be NULL. */
bool wrapper_set_has(const struct wrapper_set *set, const char *function, const char *module);

void wrapper_set_deinit(struct wrapper_set *set);

#endif
