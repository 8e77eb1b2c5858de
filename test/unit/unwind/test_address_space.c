/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares address spaces with an array of pages: mappings that displace others, and processes that
 * fork. Memory must grow with what processes map, not with their number.
 */
#include "unwind/modules/address_space.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PAGE	     0x1000u
#define BASE	     0x7f0000000000u
#define NR_PAGES     2000
#define NR_PROCESSES 6
#define NR_MODULES   4

struct page {
	struct module *module;
	uint64_t file_offset;
};

struct machine {
	struct address_spaces spaces;
	struct module modules[NR_MODULES];
	bool is_known[NR_PROCESSES];
	struct page pages[NR_PROCESSES][NR_PAGES];
	uint64_t random;
};

static uint64_t draw(struct machine *machine, uint64_t below)
{
	machine->random ^= machine->random << 13;
	machine->random ^= machine->random >> 7;
	machine->random ^= machine->random << 17;
	return machine->random % below;
}

static void map(struct machine *machine, int process)
{
	uint64_t first = draw(machine, NR_PAGES),
		 nr = 1 + draw(machine, draw(machine, 8) ? 4 : 300);
	struct module *module =
		draw(machine, 5) ? &machine->modules[draw(machine, NR_MODULES)] : NULL;
	struct stack_mapping mapping = {.pid = process + 1};

	if (first + nr > NR_PAGES)
		nr = NR_PAGES - first;
	mapping.start = BASE + first * PAGE;
	mapping.len = nr * PAGE;
	mapping.file_offset = draw(machine, 64) * PAGE;
	assert_int_equal(address_spaces_map(&machine->spaces, &mapping, module), 0);
	for (uint64_t i = 0; i < nr; i++)
		machine->pages[process][first + i] = (struct page){
			.module = module,
			.file_offset = module ? mapping.file_offset + i * PAGE : 0,
		};
	machine->is_known[process] |= module != NULL;
}

static void check_order(void *context, const struct mapping *mapping)
{
	uint64_t *end = context;

	assert_true(mapping->start >= *end && mapping->end > mapping->start);
	*end = mapping->end;
}

static void compare(const struct machine *machine, int process)
{
	const struct address_space *space = address_spaces_find(&machine->spaces, process + 1);
	uint64_t end = 0;

	if (space)
		address_space_for_each(space, check_order, &end);
	for (uint64_t i = 0; i < NR_PAGES; i++) {
		const struct page *page = &machine->pages[process][i];
		uint64_t address = BASE + i * PAGE;
		const struct mapping *mapping = address_space_find(space, address), *near[2];

		assert_ptr_equal(mapping ? mapping->module : NULL, page->module);
		if (!mapping)
			continue;
		assert_int_equal(mapping->file_offset + (address - mapping->start),
				 page->file_offset);
		assert_in_range(address_space_neighbours(space, address, near), 1, 2);
		assert_true(near[0] == mapping || near[1] == mapping);
	}
}

static void step(struct machine *machine)
{
	int process = (int)draw(machine, NR_PROCESSES), other = (int)draw(machine, NR_PROCESSES);

	switch (draw(machine, 100)) {
	case 0:
		address_spaces_exec(&machine->spaces, process + 1);
		memset(machine->pages[process], 0, sizeof(machine->pages[process]));
		break;
	case 1:
	case 2:
		if (process == other)
			break;
		assert_int_equal(address_spaces_fork(&machine->spaces, other + 1, process + 1), 0);
		memcpy(machine->pages[other], machine->pages[process],
		       sizeof(machine->pages[other]));
		break;
	default:
		map(machine, process);
	}
}

static void random_maps_and_forks(void **state)
{
	struct machine *machine = calloc(1, sizeof(*machine));

	assert_non_null(machine);
	machine->random = 0x9e3779b97f4a7c15u;
	address_spaces_init(&machine->spaces);
	for (int i = 1; i <= 20000; i++) {
		step(machine);
		for (int j = 0; i % 50 == 0 && j < NR_PROCESSES; j++)
			compare(machine, j);
	}
	address_spaces_deinit(&machine->spaces);
	free(machine);
}

static size_t used_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* The worst case for memory: the most mappings, and children that map one more. */
static void children_share(void **state)
{
	static struct module module;
	struct address_spaces spaces;
	struct stack_mapping mapping = {.pid = 1, .len = PAGE};
	size_t before = used_bytes(), of_parent;

	address_spaces_init(&spaces);
	for (uint64_t i = 0; i < 30000; i++) {
		mapping.start = BASE + i * 2 * PAGE;
		assert_int_equal(address_spaces_map(&spaces, &mapping, &module), 0);
	}
	of_parent = used_bytes() - before;
	for (pid_t child = 2; child <= 101; child++) {
		assert_int_equal(address_spaces_fork(&spaces, child, 1), 0);
		mapping.pid = child;
		mapping.start = BASE - 2 * PAGE;
		assert_int_equal(address_spaces_map(&spaces, &mapping, &module), 0);
		address_spaces_exit(&spaces, child);
	}
	assert_true(used_bytes() - before <= 3 * of_parent);
	address_spaces_deinit(&spaces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_maps_and_forks),
		cmocka_unit_test(children_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
