/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/held/held_counts.h"

void held_counts_set(struct held_counts *counts, size_t nr, pid_t pid, uint64_t address)
{
	counts->counts[nr] = (struct held_count){.pid = pid, .address = address};
	counts->nr = 0;
	for (size_t i = 0; i < HELD_MAX_COUNTED; i++)
		if (counts->counts[i].pid)
			counts->nr = i + 1;
}

static bool has_address(const struct held_stack *stack, uint64_t address)
{
	for (size_t i = 0; i < stack->nr; i++)
		if (stack->chain[i] == address)
			return true;
	return false;
}

void held_counts_add(struct held_counts *counts, pid_t pid, const struct held_stack *stack)
{
	for (size_t i = 0; i < counts->nr; i++) {
		struct held_count *count = &counts->counts[i];

		if (count->pid == pid && has_address(stack, count->address))
			count->nr++;
	}
}
