/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/windows/sure_ages.h"

#include "parser/windows/followed_blocks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int sure_ages_find(const struct heap_block *held, size_t nr, uint64_t end_ns, followed_fn *followed,
		   const void *context, struct sure_ages *ret)
{
	double youngest_ns = INFINITY, oldest_unsure_ns = 0, oldest_open_ns = 0;

	ret->of = calloc(nr + 1, sizeof(*ret->of));
	if (!ret->of)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct followed_block *block = followed(context, &held[i]);
		bool is_sure = block && block->nr_untouched >= SURE_LOOKS;
		uint64_t time_ns = held[i].allocated.time_ns;
		double age_ns;

		ret->of[i] = (struct sure_age){
			.until_ns = UINT64_MAX, .closed_ns = UINT64_MAX, .is_followed = block};
		if (!block || block->is_certain) {
			if (time_ns < end_ns)
				oldest_open_ns = fmax(oldest_open_ns, (double)(end_ns - time_ns));
			continue;
		}
		ret->of[i].until_ns = is_sure ? block->seen_ns : block->closed_ns;
		ret->of[i].closed_ns = block->closed_ns;
		ret->of[i].window_ns = block->window_ns;
		/* A first look has nothing to compare with. */
		ret->of[i].may_stay = is_sure || block->nr_looks <= SURE_LOOKS;
		age_ns =
			ret->of[i].until_ns > time_ns ? (double)(ret->of[i].until_ns - time_ns) : 0;
		if (is_sure)
			youngest_ns = fmin(youngest_ns, age_ns);
		else
			oldest_unsure_ns = fmax(oldest_unsure_ns, age_ns + 1);
	}
	if (youngest_ns > 2 * oldest_open_ns && youngest_ns < INFINITY)
		ret->youngest_ns = youngest_ns;
	else
		ret->youngest_ns = fmin(youngest_ns, oldest_unsure_ns);
	return 0;
}

void sure_ages_deinit(struct sure_ages *ages)
{
	free(ages->of);
	*ages = (struct sure_ages){0};
}
