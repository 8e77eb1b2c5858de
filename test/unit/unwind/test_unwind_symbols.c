/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests which symbol names an address. */
#include "unwind/names/symbol_table.h"

#include "common/scope.h"
#include "test/unit/unwind/scratch_dir.h"
#include "unwind/stacks/stack_store.h"

#include <inttypes.h>

/* A function names only addresses that it holds. */
static void symbols_hold_their_addresses(void **state)
{
	struct symbol symbols[] = {
		{.start = 100, .end = 200, .mangled = "outer", .sized = true},
		{.start = 120, .end = 130, .mangled = "inner", .sized = true},
		{.start = 150, .end = 1000, .mangled = "label within outer"},
		{.start = 300, .end = 310, .mangled = "before a gap", .sized = true},
		{.start = 400, .end = 1000, .mangled = "label", .sized = false},
		{.start = 500, .end = 510, .mangled = "last", .sized = true},
	};
	static const struct {
		uint64_t address;
		const char *function;
	} lookups[] = {
		{0, NULL},	    {99, NULL},
		{100, "outer"},	    {120, "inner"},
		{129, "inner"},	    {130, "outer"},
		{150, "outer"},	    {199, "outer"},
		{250, NULL},	    {300, "before a gap"},
		{310, NULL},	    {399, NULL},
		{400, "label"},	    {499, "label"},
		{505, "last"},	    {510, NULL},
		{UINT64_MAX, NULL},
	};
	const struct symbol_table table = {.symbols = symbols, .nr = ARRAY_SIZE(symbols)};
	uint64_t highest_end = 0;

	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		if (symbols[i].sized && symbols[i].end > highest_end)
			highest_end = symbols[i].end;
		symbols[i].highest_end = highest_end;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lookups); i++) {
		const struct symbol *symbol = symbol_table_find(&table, lookups[i].address);

		if (!lookups[i].function) {
			assert_null(symbol);
			continue;
		}
		assert_non_null(symbol);
		assert_string_equal(symbol->mangled, lookups[i].function);
	}
}

/* Functions with and without a size, and gaps between them, 16 bytes apart. */
static const char assembler[] =
	".text\n.p2align 12\n"
	".globl sized\n.type sized, @function\nsized: .skip 8, 0x90\n.size sized, 8\n"
	".p2align 4\n"
	".globl label\nlabel: .skip 16, 0x90\n"
	"local_label: .skip 16, 0x90\n"
	".globl outer\n.type outer, @function\nouter: .skip 4, 0x90\n"
	"within: .skip 4, 0x90\n.size outer, 8\n"
	".p2align 4\n"
	".globl unsized\n.type unsized, @function\nunsized: .skip 16, 0x90\n"
	".globl last\n.type last, @function\nlast: .skip 8, 0x90\n.size last, 8\n";

/* The name at @offset in the library's code, mapped as by process 1; NULL: none. */
static const char *name_at(struct stack_store *store, uint64_t offset)
{
	const uint64_t address = 0x10000000 + offset;
	struct stack_frame frame;
	uint32_t id;

	assert_int_equal(stack_store_add_callchain(store, 1, &address, 1, &id), 0);
	assert_int_equal(stack_store_frame(store, id, 0, &frame), 0);
	assert_string_equal(frame.module, in_dir("assembler.so"));
	return frame.function;
}

static void assembler_labels_name_what_follows(void **state)
{
	static const struct {
		uint64_t offset;
		const char *full, *stripped;
	} lookups[] = {
		{0, "sized", "sized"},	   {7, "sized", "sized"},  {8, NULL, NULL},
		{15, NULL, NULL},	   {16, "label", NULL},	   {31, "label", NULL},
		{32, "local_label", NULL}, {48, "outer", "outer"}, {52, "outer", "outer"},
		{56, NULL, NULL},	   {64, "unsized", NULL},  {79, "unsized", NULL},
		{80, "last", "last"},	   {88, NULL, NULL},
	};
	struct stack_mapping mapping = {
		.pid = 1, .start = 0x10000000, .len = 4096, .file_offset = 4096};
	FILE *source = fopen(in_dir("assembler.s"), "we");

	assert_non_null(source);
	fputs(assembler, source);
	assert_int_equal(fclose(source), 0);
	RUN("cc", "-shared", "-nostdlib", "-Wl,-z,separate-code", "-o", "assembler.so",
	    "assembler.s");
	for (int stripped = 0; stripped < 2; stripped++) {
		struct stack_store *store;

		if (stripped)
			RUN("strip", "assembler.so");
		assert_int_equal(stack_store_create(NULL, &store), 0);
		mapping.path = in_dir("assembler.so");
		assert_int_equal(stack_store_map(store, &mapping), 0);
		for (size_t i = 0; i < ARRAY_SIZE(lookups); i++) {
			const char *name = name_at(store, lookups[i].offset);
			const char *expected = stripped ? lookups[i].stripped : lookups[i].full;

			if (!expected != !name || (name && strcmp(name, expected) != 0))
				fail_msg("%s at %" PRIu64 ", not %s", name ? name : "nothing",
					 lookups[i].offset, expected ? expected : "nothing");
		}
		stack_store_destroy(store);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_hold_their_addresses),
		cmocka_unit_test(assembler_labels_name_what_follows),
	};

	return cmocka_run_group_tests(tests, scratch_dir_setup, scratch_dir_teardown);
}
