/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What BPF programs read from the recorder's table of stack bases. */
#include "recorder/bpf/stack_bases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static unsigned long long table[STACK_BASES];

static void learn(unsigned int tgid, unsigned long long sp, unsigned long long top)
{
	unsigned long long hash = stack_base_hash(tgid, sp);

	table[stack_base_index(hash)] = stack_base_entry(hash, top);
}

static unsigned long long find(unsigned int tgid, unsigned long long sp)
{
	unsigned long long hash = stack_base_hash(tgid, sp);

	return stack_base_of(hash, table[stack_base_index(hash)]);
}

static void tops_are_found_by_process_and_place(void **state)
{
	const unsigned long long sp = 0x7ffd12345678, top = 0x7ffd1234f008;

	assert_int_equal(find(4165, sp), 0);
	learn(4165, sp, top);
	assert_int_equal(find(4165, sp), top);
	assert_int_equal(find(4165, sp & ~0xffffULL), top);
	assert_int_equal(find(4165, sp - (1 << STACK_REGION_BITS)), 0);
	assert_int_equal(find(4165, sp + (1 << STACK_REGION_BITS)), 0);
	assert_int_equal(find(4166, sp), 0);
}

/* Two stacks may share an entry. The later one has it; for the other one nothing is found. */
static void entries_tell_whose_they_are(void **state)
{
	size_t nr_found = 0, nr_wrong = 0;

	for (unsigned int tgid = 1; tgid <= 4 * STACK_BASES; tgid++)
		learn(tgid, 0x7fff00000000, 0x7fff00001000 + 8ULL * tgid);
	for (unsigned int tgid = 1; tgid <= 4 * STACK_BASES; tgid++) {
		unsigned long long top = find(tgid, 0x7fff00000000);

		nr_found += top != 0;
		nr_wrong += top && top != 0x7fff00001000 + 8ULL * tgid;
	}
	assert_in_range(nr_found, STACK_BASES / 2, STACK_BASES + 64);
	assert_in_range(nr_wrong, 0, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tops_are_found_by_process_and_place),
		cmocka_unit_test(entries_tell_whose_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
