/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/names/unit_ranges.h"

#include "common/partition_point.h"

#include <errno.h>
#include <stdlib.h>

static int add_range(struct unit_ranges *ranges, const struct unit_range *range)
{
	if (ranges->nr == ranges->capacity) {
		size_t capacity = ranges->capacity ? 2 * ranges->capacity : 64;
		struct unit_range *larger = reallocarray(ranges->ranges, capacity, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		ranges->ranges = larger;
		ranges->capacity = capacity;
	}
	ranges->ranges[ranges->nr++] = *range;
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	uint64_t x = ((const struct unit_range *)a)->start;
	uint64_t y = ((const struct unit_range *)b)->start;

	return (x > y) - (x < y);
}

/* Adds the ranges of a unit. Those that the linker dropped start at 0 or are empty. */
static int add_unit(struct unit_ranges *ranges, Dwarf_Die *unit, Dwarf_Addr bias)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;
	int err = 0;

	while (!err && ranges->nr < UNIT_RANGES_MAX &&
	       (offset = dwarf_ranges(unit, offset, &base, &start, &end)) > 0) {
		const struct unit_range range = {
			.start = start + bias, .end = end + bias, .unit = unit, .bias = bias};

		if (start && start < end)
			err = add_range(ranges, &range);
	}
	return err;
}

int unit_ranges_init(struct unit_ranges *ranges, Dwfl_Module *module)
{
	Dwarf_Die *unit = NULL;
	Dwarf_Addr bias;
	int err = 0;

	*ranges = (struct unit_ranges){0};
	while (!err && ranges->nr < UNIT_RANGES_MAX &&
	       (unit = dwfl_module_nextcu(module, unit, &bias)))
		err = add_unit(ranges, unit, bias);
	if (err)
		unit_ranges_deinit(ranges);
	else if (ranges->nr)
		qsort(ranges->ranges, ranges->nr, sizeof(*ranges->ranges), compare_ranges);
	return err;
}

void unit_ranges_deinit(struct unit_ranges *ranges)
{
	free(ranges->ranges);
	*ranges = (struct unit_ranges){0};
}

const struct unit_range *unit_ranges_find(const struct unit_ranges *ranges, uint64_t address)
{
	/* The ranges that do not start after @address. */
	size_t nr = partition_point(ranges->nr, i, ranges->ranges[i].start <= address);

	if (!nr || address >= ranges->ranges[nr - 1].end)
		return NULL;
	return &ranges->ranges[nr - 1];
}
