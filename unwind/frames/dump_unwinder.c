/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/dump_unwinder.h"

#include <errno.h>

int dump_unwinder_init(struct dump_unwinder *unwinder, struct module_table *modules,
		       struct debuginfo *debuginfo, bool own_vdso)
{
	int err;

	*unwinder = (struct dump_unwinder){0};
	err = rule_unwinder_init(&unwinder->rules, modules, debuginfo, own_vdso);
	if (err)
		return err;
	dwfl_unwinder_init(&unwinder->dwfl, modules, debuginfo, &unwinder->rules.rules.time);
	unwinder->unwinders[UNWINDER_RULES] =
		(struct unwinder){&rule_unwinder_ops, &unwinder->rules};
	arm64_unwinder_init(&unwinder->arm64, &unwinder->rules.rules);
	unwinder->unwinders[UNWINDER_ARM64] =
		(struct unwinder){&arm64_unwinder_ops, &unwinder->arm64};
	unwinder->unwinders[UNWINDER_DWFL] = (struct unwinder){&dwfl_unwinder_ops, &unwinder->dwfl};
	return 0;
}

void dump_unwinder_deinit(struct dump_unwinder *unwinder)
{
	for (size_t i = 0; i < NR_UNWINDERS; i++)
		if (unwinder->unwinders[i].ops)
			unwinder->unwinders[i].ops->deinit(unwinder->unwinders[i].state);
}

int dump_unwinder_unwind(struct dump_unwinder *unwinder, const struct address_space *space,
			 const struct stack_dump *dump, struct unwound_stack *ret)
{
	int err = -EOPNOTSUPP;

	ret->elsewhere = false;

	for (size_t i = 0; err == -EOPNOTSUPP && i < NR_UNWINDERS; i++) {
		const struct unwinder *next = &unwinder->unwinders[i];

		unwinder->stats.by_dwfl += i == UNWINDER_DWFL;
		err = next->ops->unwind(next->state, space, dump, ret);
	}
	if (err)
		return err;
	unwinder->stats.dumps++;
	unwinder->stats.frames += ret->nr;
	unwinder->stats.truncated += ret->truncated;
	unwinder->stats.lost += !ret->complete && !ret->truncated;
	return 0;
}
