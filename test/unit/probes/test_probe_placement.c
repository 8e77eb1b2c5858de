/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The places of probes: in code captured from libcs, in code like a compiler's that was assembled
 * for each rule (test_probe_placement.S), and in the allocators of this machine.
 */
#include "probes/x86/code_flow.h"
#include "probes/x86/code_jumps.h"
#include "probes/x86/placement.h"
#include "probes/sites/probe_arch.h"
#include "probes/plan/allocator_plan.h"
#include "test/support/code_cases.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct placement_kernel old_kernel = {.emulates_pause = true};
static const struct placement_kernel new_kernel = {.emulates_long_nops = true};

struct placement_case {
	const char *name; /* of the code, in test_probe_placement.S */
	int nr_args;
	uint64_t offset;
	enum placement_class class;
};

static const struct placement_case cases[] = {
	{"glibc_free", 1, 3, PLACEMENT_EMULATED},
	{"glibc_malloc", 1, 0, PLACEMENT_EMULATED},
	{"cet_free", 1, 7, PLACEMENT_EMULATED},
	{"cet_malloc", 1, 4, PLACEMENT_EMULATED},
	{"cet_calloc", 2, 10, PLACEMENT_EMULATED},
	{"cet_divided", 3, 0, PLACEMENT_STEPPED},
	{"cet_moved", 2, 0, PLACEMENT_STEPPED},
	{"cet_forward", 2, 4, PLACEMENT_EMULATED},
	{"cet_frame", 1, 0, PLACEMENT_STEPPED},
	{"moved_before_push", 1, 7, PLACEMENT_EMULATED},
	{"part_written", 1, 0, PLACEMENT_STEPPED},
	{"half_written", 2, 0, PLACEMENT_STEPPED},
	{"second_moved", 2, 0, PLACEMENT_STEPPED},
	{"strings", 1, 0, PLACEMENT_STEPPED},
	{"system_call", 1, 0, PLACEMENT_STEPPED},
	{"loop_to_place", 1, 0, PLACEMENT_STEPPED},
	{"loop_after_int", 1, 0, PLACEMENT_STEPPED},
	{"loop_after_int3", 1, 0, PLACEMENT_STEPPED},
	{"loop_between", 1, 0, PLACEMENT_STEPPED},
	{"loop_to_entry", 1, 3, PLACEMENT_EMULATED},
	{"loop_instruction", 1, 0, PLACEMENT_STEPPED},
	{"switch_table", 1, 0, PLACEMENT_STEPPED},
	{"cet_table", 1, 0, PLACEMENT_STEPPED},
	{"cet_hook", 1, 7, PLACEMENT_EMULATED},
	{"got_tail", 1, 3, PLACEMENT_EMULATED},
	{"frame_first", 1, 0, PLACEMENT_STEPPED},
	{"return_overwritten", 1, 0, PLACEMENT_STEPPED},
	{"frame_pointer_left", 1, 0, PLACEMENT_STEPPED},
	{"stops", 1, 0, PLACEMENT_STEPPED},
	{"undecoded", 1, 0, PLACEMENT_STEPPED},
	{"red_zone", 1, 0, PLACEMENT_STEPPED},
	{"hinted", 1, 0, PLACEMENT_STEPPED},
	{"sixteen_bit", 1, 0, PLACEMENT_STEPPED},
	{"sixteen_bit_later", 1, 0, PLACEMENT_STEPPED},
	{"exchange_r8", 1, 2, PLACEMENT_EMULATED},
	{"pushes_memory", 1, 0, PLACEMENT_STEPPED},
	{"refused_entry", 1, 5, PLACEMENT_STEPPED},
	{"refused_exchange", 1, 2, PLACEMENT_STEPPED},
	{"refused_loop", 1, 0, PLACEMENT_REFUSED},
	{"refused_all", 1, 0, PLACEMENT_REFUSED},
};

static void assert_place(const struct placement_case *test, const struct placement_kernel *kernel)
{
	const struct code_case *code = code_case_find(test->name);
	size_t size = code_case_size(code);
	struct placement_instruction instruction;
	uint64_t offset = 99;

	assert_int_equal(placement_find_entry(code->code, size, test->nr_args, kernel, &offset), 0);
	placement_describe(code->code + offset, size - offset, kernel, &instruction);
	if (offset != test->offset || instruction.class != test->class)
		fail_msg("%s: +0x%" PRIx64 " %s (%s), but it should be +0x%" PRIx64 " %s",
			 test->name, offset, placement_class_name(instruction.class),
			 instruction.text, test->offset, placement_class_name(test->class));
}

static void each_rule_holds(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_place(&cases[i], &old_kernel);
		assert_place(&cases[i], &new_kernel);
	}
}

/* A function that is cut off anywhere gets its place or the entry, never a place after the cut. */
static void cut_off_code_is_survived(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct code_case *code = code_case_find(cases[i].name);

		for (size_t size = 0; size <= code_case_size(code); size++) {
			uint64_t offset = 99;

			assert_int_equal(placement_find_entry(code->code, size, cases[i].nr_args,
							      &new_kernel, &offset),
					 0);
			assert_true(offset == 0 || offset < size);
		}
	}
}

/* New kernels make a call of such a nop, which kills forked children, and which may stay. */
static void no_place_is_a_nop_that_becomes_a_call(void **state)
{
	const struct placement_case nops[] = {
		{"nop5_first", 1, 5, PLACEMENT_EMULATED},
		{"nop5_after_endbr64", 1, 9, PLACEMENT_EMULATED},
		{"nop5_with_prefixes", 1, 5, PLACEMENT_EMULATED},
		{"nop5_before_test", 1, 5, PLACEMENT_STEPPED},
		{"nop5_before_table", 1, 0, PLACEMENT_REFUSED},
	};

	for (size_t i = 0; i < sizeof(nops) / sizeof(nops[0]); i++) {
		assert_place(&nops[i], &old_kernel);
		assert_place(&nops[i], &new_kernel);
	}
}

/* As measured: docs/placement.md has the table. */
static void classes_are_the_kernels(void **state)
{
	const struct {
		const char *name;
		enum placement_class on_old, on_new;
	} forms[] = {
		{"form_nop", PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{"form_nop2", PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{"form_pause", PLACEMENT_EMULATED, PLACEMENT_STEPPED},
		{"form_nop3", PLACEMENT_STEPPED, PLACEMENT_EMULATED},
		{"form_nop4", PLACEMENT_STEPPED, PLACEMENT_EMULATED},
		{"form_nop5", PLACEMENT_REFUSED, PLACEMENT_REFUSED},
		{"form_nop5_clang", PLACEMENT_REFUSED, PLACEMENT_REFUSED},
		{"form_nop5_rex", PLACEMENT_REFUSED, PLACEMENT_REFUSED},
		{"form_nop5_prefixes", PLACEMENT_REFUSED, PLACEMENT_REFUSED},
		{"form_pause5", PLACEMENT_REFUSED, PLACEMENT_REFUSED},
		{"form_xchg5", PLACEMENT_REFUSED, PLACEMENT_REFUSED},
		{"form_xchg_r8", PLACEMENT_REFUSED, PLACEMENT_REFUSED},
		{"form_xchg_r9", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_jmp5_next", PLACEMENT_REFUSED, PLACEMENT_REFUSED},
		{"form_lea5_same", PLACEMENT_REFUSED, PLACEMENT_REFUSED},
		{"form_lea5_other", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_mov5_same", PLACEMENT_REFUSED, PLACEMENT_REFUSED},
		{"form_mov5_other", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_nop10", PLACEMENT_REFUSED, PLACEMENT_REFUSED},
		{"form_nop6", PLACEMENT_STEPPED, PLACEMENT_EMULATED},
		{"form_nop7", PLACEMENT_STEPPED, PLACEMENT_EMULATED},
		{"form_nop8", PLACEMENT_STEPPED, PLACEMENT_EMULATED},
		{"form_nop9", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_endbr64", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_jne", PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{"form_jne_32_bits", PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{"form_data16_jne", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_hinted_jne", PLACEMENT_REFUSED, PLACEMENT_REFUSED},
		{"form_jmp", PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{"form_bnd_jmp", PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{"form_jmp_32_bits", PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{"form_call", PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{"form_indirect_jmp", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_loop", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_jrcxz", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_push", PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{"form_push_r12", PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{"form_rex_push", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_data16_push", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_push_memory", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_push_constant", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_ret", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_vzeroupper", PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{"form_cut_off", PLACEMENT_UNKNOWN, PLACEMENT_UNKNOWN},
		{"form_undecoded", PLACEMENT_UNKNOWN, PLACEMENT_UNKNOWN},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const struct code_case *form = code_case_find(forms[i].name);
		struct placement_instruction is;

		placement_describe(form->code, code_case_size(form), &old_kernel, &is);
		if (is.class != forms[i].on_old)
			fail_msg("%s: %s before 6.18", is.text, placement_class_name(is.class));
		placement_describe(form->code, code_case_size(form), &new_kernel, &is);
		if (is.class != forms[i].on_new)
			fail_msg("%s: %s from 6.19 on", is.text, placement_class_name(is.class));
	}
}

static void stores_move_only_with_their_registers(void **state)
{
	const struct {
		const char *name;
		uint64_t store, offset;
	} stores[] = {
		{"store_value_lost", 5, 5},
		{"store_then_jump", 0, 5},
		{"store_then_push", 0, 7},
		{"store_base_lost", 0, 0},
		{"store_joined", 5, 5},
		/* These become calls, which push over the red zone. */
		{"store_nop5", 0, 0},
		{"store_nop5_prefixes", 0, 0},
		{"store_jmp5_next", 0, 0},
	};

	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		const struct code_case *code = code_case_find(stores[i].name);
		uint64_t offset = 99;

		assert_int_equal(placement_find_store(code->code, code_case_size(code),
						      stores[i].store, &new_kernel, &offset),
				 0);
		if (offset != stores[i].offset)
			fail_msg("%s: +0x%" PRIx64, stores[i].name, offset);
	}
}

/* A jump of a cold part, a conditional jump, and a call: each marks the span that it goes to. */
static void jumps_from_elsewhere_are_seen(void **state)
{
	const struct code_case *jumps = code_case_find("jumps_elsewhere");
	struct code_span spans[] = {
		{.first = 0x501, .last = 0x503},
		{.first = 0x600, .last = 0x600},
		{.first = 0x701, .last = 0x709},
		{.first = 0x801, .last = 0x803},
		{.first = 0x500, .last = 0x502},
		{.first = 0x503, .last = 0x503, .own_begin = 0x1000, .own_end = 0x1001},
		{.first = 0x503, .last = 0x503, .own_begin = 0xfff, .own_end = 0x1000},
		{.first = 0x503, .last = 0x503, .own_begin = 0x1001, .own_end = 0x1100},
	};

	code_jumps_scan(jumps->code, code_case_size(jumps), 0x1000, spans,
			sizeof(spans) / sizeof(spans[0]), NULL, NULL);
	assert_true(spans[0].is_entered);
	assert_true(spans[1].is_entered);
	assert_true(spans[2].is_entered);
	assert_false(spans[3].is_entered);
	assert_false(spans[4].is_entered);
	assert_false(spans[5].is_entered);
	assert_true(spans[6].is_entered);
	assert_true(spans[7].is_entered);
	spans[0].is_entered = false;
	code_jumps_scan(jumps->code, 4, 0x1000, spans, 1, NULL, NULL);
	assert_false(spans[0].is_entered);
}

/* AArch64: stp x29,x30,[sp,#-48]!; mov x29,sp; stp x19,x20,[sp,#16]; mov x19,x0; ... ret */
static void aarch64_gets_the_entry(void **state)
{
	static const uint8_t code[] = {
		0xfd, 0x7b, 0xbd, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0xf3, 0x53, 0x01, 0xa9, 0xf3, 0x03,
		0x00, 0xaa, 0x20, 0x00, 0x00, 0xb4, 0xfd, 0x7b, 0xc3, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
	};
	struct placement_instruction instruction;
	struct store_site stores[1];
	uint64_t offset = 99;

	assert_int_equal(
		probe_arch_place_entry(&probe_arch_aarch64, code, sizeof(code), 1, &offset), 0);
	assert_int_equal(offset, 0);
	assert_int_equal(probe_arch_find_stores(&probe_arch_aarch64, code, sizeof(code), stores, 1),
			 0);
	probe_arch_describe(&probe_arch_aarch64, code, sizeof(code), &instruction);
	assert_int_equal(instruction.class, PLACEMENT_STEPPED);
	assert_string_equal(instruction.text, ".inst 0xa9bd7bfd");
	assert_string_equal(probe_arch_aarch64.arguments[0], "%x0");
	assert_string_equal(probe_arch_aarch64.arguments[1], "%x1");
	assert_string_equal(probe_arch_aarch64.arguments[2], "%x2");
	assert_string_equal(probe_arch_aarch64.caller, "%x30");
}

static void x86_64_has_its_registers(void **state)
{
	assert_string_equal(probe_arch_x86_64.arguments[0], "%di");
	assert_string_equal(probe_arch_x86_64.arguments[1], "%si");
	assert_string_equal(probe_arch_x86_64.arguments[2], "%dx");
	assert_string_equal(probe_arch_x86_64.caller, "+0(%sp)");
}

static void size_limits_hold(void **state)
{
	static const uint8_t code[] = {0xc3};
	uint64_t offset = 99;

	assert_int_equal(placement_find_entry(code, 0, 1, &new_kernel, &offset), 0);
	assert_int_equal(offset, 0);
	assert_int_equal(
		placement_find_entry(code, CODE_FLOW_MAX_BYTES + 1, 1, &new_kernel, &offset),
		-E2BIG);
	assert_int_equal(placement_find_store(code, sizeof(code), 1000, &new_kernel, &offset), 0);
	assert_int_equal(offset, 1000);
}

/*
 * In random bytes, the place is an instruction that the kernel emulates, or the entry, or after a
 * refused entry one that the kernel takes.
 */
static void random_bytes_are_survived(void **state)
{
	uint32_t seed = 4711;

	for (int round = 0; round < 5000; round++) {
		struct placement_instruction is;
		uint8_t code[64];
		uint64_t offset = 99;

		for (size_t i = 0; i < sizeof(code); i++) {
			seed = seed * 1103515245u + 12345u;
			code[i] = seed >> 16;
		}
		assert_int_equal(placement_find_entry(code, sizeof(code), 2, &new_kernel, &offset),
				 0);
		assert_true(offset < sizeof(code));
		placement_describe(code + offset, sizeof(code) - offset, &new_kernel, &is);
		if (offset > 0 && is.class > PLACEMENT_EMULATED) {
			assert_int_equal(is.class, PLACEMENT_STEPPED);
			placement_describe(code, sizeof(code), &new_kernel, &is);
			assert_int_equal(is.class, PLACEMENT_REFUSED);
		}
		placement_find_store(code, sizeof(code), seed % sizeof(code), &new_kernel, &offset);
		assert_true(offset < sizeof(code));
	}
}

/* In every allocator on this machine, a place is in its function, and cheaper than the entry. */
static void real_allocators_are_placed(void **state)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
		"/lib/ld-musl-x86_64.so.1",	   "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
		"/usr/lib64/libjemalloc.so.2",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct probe_set set;

		if (access(paths[i], R_OK) != 0 || allocator_plan_file(&set, paths[i], false))
			continue;
		for (size_t j = 0; j < set.files[0].nr_probes; j++) {
			const struct probe *probe = &set.files[0].probes[j];
			uint64_t place = probe->offset - probe->function_offset;

			if (probe->point == PROBE_EXIT) {
				assert_string_equal(probe->instruction.text, "ret");
				continue;
			}
			printf("%s: %s+0x%" PRIx64 " %s %s\n", paths[i], probe->event, place,
			       placement_class_name(probe->instruction.class),
			       probe->instruction.text);
			assert_true(place < CODE_FLOW_MAX_BYTES);
			if (probe->point != PROBE_STORE)
				assert_true(place == 0 ||
					    probe->instruction.class <= PLACEMENT_EMULATED);
			if (probe->point == PROBE_RETURN)
				assert_int_equal(probe->offset, probe[-1].offset);
		}
		probe_set_deinit(&set);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_holds),
		cmocka_unit_test(cut_off_code_is_survived),
		cmocka_unit_test(no_place_is_a_nop_that_becomes_a_call),
		cmocka_unit_test(classes_are_the_kernels),
		cmocka_unit_test(stores_move_only_with_their_registers),
		cmocka_unit_test(jumps_from_elsewhere_are_seen),
		cmocka_unit_test(aarch64_gets_the_entry),
		cmocka_unit_test(x86_64_has_its_registers),
		cmocka_unit_test(size_limits_hold),
		cmocka_unit_test(random_bytes_are_survived),
		cmocka_unit_test(real_allocators_are_placed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
