/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks/wrapper_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int wrapper_set_add(struct wrapper_set *set, const char *function, const char *module)
{
	if (set->nr == WRAPPER_SET_MAX)
		return 0;
	set->functions[set->nr] = strdup(function);
	set->modules[set->nr] = strdup(module);
	set->nr++;
	return set->functions[set->nr - 1] && set->modules[set->nr - 1] ? 0 : -ENOMEM;
}

bool wrapper_set_has(const struct wrapper_set *set, const char *function, const char *module)
{
	for (size_t i = 0; i < set->nr && module; i++)
		if (strcmp(set->functions[i], function) == 0 &&
		    strcmp(set->modules[i], module) == 0)
			return true;
	return false;
}

void wrapper_set_deinit(struct wrapper_set *set)
{
	for (size_t i = 0; i < set->nr; i++) {
		free(set->functions[i]);
		free(set->modules[i]);
	}
	*set = (struct wrapper_set){0};
}
