/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Group names, and the texts of tracefs that probes/ parses. */
#include "probes/tracefs/group_name.h"
#include "common/schema/probe_events.h"
#include "common/proc/mapped_files.h"
#include "probes/tracefs/tracefs_uprobes.h"
#include "probes/tracefs/uprobe_list.h"

#include "common/schema/probe_symbols.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

static void group_of_leakprobe_is_formatted_and_parsed(void **state)
{
	struct group_name name = {.inode_hash = 0x1f01a089, .build_hash = 0x000000ec}, parsed;
	char text[PROBE_NAME_MAX];

	group_name_set_file(&name, "/usr/lib/x86_64-linux-gnu/libc.so.6");
	group_name_format(&name, text);
	assert_string_equal(text, "leakprobe_libc_so_6_1f01a089_000000ec");
	assert_int_equal(group_name_parse(text, &parsed), 0);
	assert_int_equal(parsed.owner, GROUP_OF_LEAKPROBE);
	assert_string_equal(parsed.file, "libc_so_6");
	assert_int_equal(parsed.inode_hash, 0x1f01a089);
	assert_int_equal(parsed.build_hash, 0xec);
}

static void group_of_leakrec_names_its_process(void **state)
{
	struct group_name name = {.owner = GROUP_OF_LEAKREC,
				  .pid = 4194304,
				  .start_time_ticks = 0xabcdef,
				  .inode_hash = 1,
				  .build_hash = 2};
	struct group_name parsed;
	char text[PROBE_NAME_MAX];

	group_name_set_file(&name, "libc-2.31.so");
	group_name_format(&name, text);
	assert_string_equal(text, "leakrec4194304_abcdef_libc_2_31_so_00000001_00000002");
	assert_int_equal(group_name_parse(text, &parsed), 0);
	assert_int_equal(parsed.owner, GROUP_OF_LEAKREC);
	assert_int_equal(parsed.pid, 4194304);
	assert_int_equal(parsed.start_time_ticks, 0xabcdef);
	assert_string_equal(parsed.file, "libc_2_31_so");
}

static void group_of_a_leakrec_in_a_container_names_its_namespace(void **state)
{
	struct group_name name = {.owner = GROUP_OF_LEAKREC,
				  .pid = 1,
				  .pid_namespace = 0xf0000123,
				  .start_time_ticks = 0xabcdef};
	struct group_name parsed;
	char text[PROBE_NAME_MAX];

	group_name_set_file(&name, "libc.so.6");
	group_name_format(&name, text);
	assert_string_equal(text, "leakrec1nf0000123_abcdef_libc_so_6_00000000_00000000");
	assert_int_equal(group_name_parse(text, &parsed), 0);
	assert_int_equal(parsed.pid, 1);
	assert_int_equal(parsed.pid_namespace, 0xf0000123);
	assert_int_equal(parsed.start_time_ticks, 0xabcdef);
	assert_string_equal(parsed.file, "libc_so_6");
	assert_int_equal(
		group_name_parse("leakrec1n1f0000123_abcdef_libc_so_6_00000000_00000000", &parsed),
		-EINVAL);
}

static void long_file_names_are_cut_and_odd_ones_replaced(void **state)
{
	struct group_name name = {.owner = GROUP_OF_LEAKREC,
				  .pid = INT32_MAX,
				  .pid_namespace = UINT32_MAX,
				  .start_time_ticks = UINT64_MAX,
				  .inode_hash = UINT32_MAX,
				  .build_hash = UINT32_MAX};
	struct group_name parsed;
	char text[PROBE_NAME_MAX];

	group_name_set_file(&name,
			    "/a/"
			    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
			    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	group_name_format(&name, text);
	assert_int_equal(strlen(text), PROBE_NAME_MAX - 1);
	assert_int_equal(group_name_parse(text, &parsed), 0);
	assert_int_equal(parsed.inode_hash, UINT32_MAX);

	group_name_set_file(&name, "/a b/l\xc3\xa4 k\n.so");
	assert_string_equal(name.file, "l___k__so");
	group_name_set_file(&name, "/a/");
	assert_string_equal(name.file, "_");
}

static void other_groups_are_not_ours(void **state)
{
	static const char *const texts[] = {
		"",
		"probe_libc",
		"leakprobe_",
		"leakprobe_1f01a089_93ac61ec",
		"leakprobe_x_1f01a089_93ac61eG",
		"leakprobe_x_1f01a089-93ac61ec",
		"leakrec_x_1f01a089_93ac61ec",
		"leakrec0_1_x_1f01a089_93ac61ec",
		"leakrec12_1f01a089_93ac61ec",
		"leakrec99999999999_1_x_1f01a089_93ac61ec",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct group_name parsed;

		assert_int_equal(group_name_parse(texts[i], &parsed), -EINVAL);
	}
}

static void inode_hash_tells_files_apart(void **state)
{
	uint32_t hash = group_name_inode_hash(makedev(254, 0), 332835);

	assert_int_equal(hash, group_name_inode_hash(makedev(254, 0), 332835));
	assert_int_not_equal(hash, group_name_inode_hash(makedev(254, 0), 332836));
	assert_int_not_equal(hash, group_name_inode_hash(makedev(254, 1), 332835));
}

static const char events[] =
	"p:leakprobe_x_00000001_00000002/malloc /lib/a:b.so:0x0000000000098930 bytes=%di:u64 "
	"caller=+0(%sp):x64\n"
	"r:leakprobe_x_00000001_00000002/malloc_ret /lib/a:b.so:0x0000000000098930 ret=$retval:x64\n"
	"not a probe\n"
	"p:broken /lib/x:0x1\n"
	"p:probes/other /lib/c.so:0x10(0x20)\n";

static void uprobe_events_are_parsed(void **state)
{
	struct uprobe_list list;

	assert_int_equal(uprobe_list_parse(&list, events), 0);
	assert_int_equal(list.nr, 3);
	assert_string_equal(list.probes[0].group, "leakprobe_x_00000001_00000002");
	assert_string_equal(list.probes[0].event, "malloc");
	assert_string_equal(list.probes[0].path, "/lib/a:b.so");
	assert_int_equal(list.probes[0].offset, 0x98930);
	assert_string_equal(list.probes[0].fetch_args, "bytes=%di:u64 caller=+0(%sp):x64");
	assert_false(list.probes[0].is_return);
	assert_true(list.probes[1].is_return);
	assert_int_equal(list.probes[2].offset, 0x10);
	assert_string_equal(list.probes[2].fetch_args, "");
	assert_ptr_equal(uprobe_list_find(&list, "probes", "other"), &list.probes[2]);
	assert_null(uprobe_list_find(&list, "probes", "malloc"));
	uprobe_list_deinit(&list);
}

static void profile_goes_with_events_by_order(void **state)
{
	struct uprobe_list list;

	assert_int_equal(uprobe_list_parse(&list, events), 0);
	assert_int_equal(uprobe_list_add_profile(&list, "  /lib/a:b.so malloc          12\n"
							"  /lib/a:b.so malloc_ret      11  3\n"
							"  /lib/c.so other             0\n"),
			 0);
	assert_int_equal(list.probes[0].hits, 12);
	assert_true(list.probes[0].has_hits);
	assert_false(list.probes[0].has_misses);
	assert_true(list.probes[1].has_misses);
	assert_int_equal(list.probes[1].misses, 3);

	/* A missing line, a line of another probe, an extra line. */
	assert_int_equal(uprobe_list_add_profile(&list, "  /lib/a:b.so malloc 12\n"), -EAGAIN);
	assert_int_equal(uprobe_list_add_profile(&list, "  /lib/c.so other 12\n"), -EAGAIN);
	assert_int_equal(uprobe_list_add_profile(&list, "  /lib/a:b.so malloc 12\n"
							"  /lib/a:b.so malloc_ret 11\n"
							"  /lib/c.so other 0\n"
							"  /lib/c.so other 0\n"),
			 -EAGAIN);
	assert_int_equal(uprobe_list_add_profile(&list, "\n \n"), -EAGAIN);
	uprobe_list_deinit(&list);
}

#define OLD_ERROR                                                                                  \
	"[   10.000001] trace_uprobe: error: Old reason\n"                                         \
	"  Command: p:g/e /x:0x1 a=%zz\n"                                                          \
	"                         ^\n"
#define OTHER_ERROR                                                                                \
	"[   11.000001] trace_kprobe: error: Other reason\n"                                       \
	"  Command: p:g/k ^nothing\n"                                                              \
	"             ^\n"
#define NEW_ERROR                                                                                  \
	"[   12.000001] trace_uprobe: error: Invalid register\n"                                   \
	"  Command: p:g/e /x:0x1 a=%zz\n"                                                          \
	"                         ^\n"

static void error_reason_is_the_newest_of_the_command(void **state)
{
	const char *command = "p:g/e /x:0x1 a=%zz";
	char *reason = tracefs_error_reason(OLD_ERROR, OLD_ERROR NEW_ERROR OTHER_ERROR, command);

	assert_string_equal(reason, "Invalid register");
	free(reason);
	assert_null(tracefs_error_reason(OLD_ERROR, OLD_ERROR OTHER_ERROR, command));
	assert_null(tracefs_error_reason(NULL, OTHER_ERROR, command));
	assert_null(tracefs_error_reason(NULL, "", command));
	assert_null(tracefs_error_reason(NULL, "[ 1.0] x: error: y\n  Command: p", command));
}

static void paths_that_tracefs_would_cut_are_known(void **state)
{
	assert_true(mapped_file_path_fits_tracefs("/usr/lib/libc.so.6:x(1)%return"));
	assert_false(mapped_file_path_fits_tracefs("/a b"));
	assert_false(mapped_file_path_fits_tracefs("/a\tb"));
	assert_false(mapped_file_path_fits_tracefs("/a\nb"));
	assert_false(mapped_file_path_fits_tracefs("/a#b"));
}

/* What @symbol stands for, or NULL. */
static const char *function_of(const char *symbol, const char *prefix, int *ret_first_arg)
{
	struct probe_symbol found;

	if (!probe_symbol_find(symbol, prefix, &found))
		return NULL;
	*ret_first_arg = found.first_arg;
	return found.schema->function;
}

static void symbols_stand_for_functions_of_the_schema(void **state)
{
	static const struct {
		const char *symbol, *prefix, *function;
		int first_arg;
	} cases[] = {
		{"malloc", NULL, "malloc", 0},
		{"cfree", NULL, "free", 0},
		{"je_malloc", NULL, "malloc", 0},
		{"_rjem_sdallocx", NULL, "sdallocx", 0},
		{"tc_free", NULL, "free", 0},
		{"mi_heap_calloc", NULL, "calloc", 1},
		{"mi_heap_zalloc", NULL, "malloc", 1},
		{"mi_zalloc_small", NULL, "malloc", 0},
		{"aligned_alloc", NULL, "aligned_alloc", 0},
		{"valloc", NULL, "valloc", 0},
		{"_ZdaPv", NULL, "operator_delete_array", 0},
		{"_ZnwmSt11align_val_tRKSt9nothrow_t", NULL, "operator_new", 0},
		{"tc_newarray_nothrow", NULL, "operator_new_array", 0},
		{"app_malloc", NULL, NULL, 0},
		{"app_malloc", "app_", "malloc", 0},
		{"mallocate", NULL, NULL, 0},
		{"", NULL, NULL, 0},
		{"mi_", NULL, NULL, 0},
		{"je_tc_malloc", NULL, NULL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int first_arg = 0;
		const char *function = function_of(cases[i].symbol, cases[i].prefix, &first_arg);

		if (!cases[i].function)
			assert_null(function);
		else
			assert_string_equal(function, cases[i].function);
		assert_int_equal(first_arg, cases[i].first_arg);
	}
}

static void events_are_named_by_rows_and_by_symbols(void **state)
{
	static const struct {
		const char *event, *function;
		enum probe_point point;
	} cases[] = {
		{"malloc", "malloc", PROBE_ENTRY},
		{"mi_heap_malloc_small_ret_2", "malloc", PROBE_RETURN},
		{"je_posix_memalign_store_1", "posix_memalign", PROBE_STORE},
		{"operator_new_array_ret", "operator_new_array", PROBE_RETURN},
		{"_Znwm", "operator_new", PROBE_ENTRY},
		{"_Znwm__return", "operator_new", PROBE_RETURN},
		{"new_3", "new", PROBE_ENTRY},
		{"free_or_delete", "free_or_delete", PROBE_ENTRY},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct probe_schema *schema;
		enum probe_point point;

		assert_int_equal(probe_schema_parse_event(cases[i].event, &schema, &point), 0);
		assert_string_equal(schema->function, cases[i].function);
		assert_int_equal(point, cases[i].point);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_stand_for_functions_of_the_schema),
		cmocka_unit_test(events_are_named_by_rows_and_by_symbols),
		cmocka_unit_test(group_of_leakprobe_is_formatted_and_parsed),
		cmocka_unit_test(group_of_leakrec_names_its_process),
		cmocka_unit_test(group_of_a_leakrec_in_a_container_names_its_namespace),
		cmocka_unit_test(long_file_names_are_cut_and_odd_ones_replaced),
		cmocka_unit_test(other_groups_are_not_ours),
		cmocka_unit_test(inode_hash_tells_files_apart),
		cmocka_unit_test(uprobe_events_are_parsed),
		cmocka_unit_test(profile_goes_with_events_by_order),
		cmocka_unit_test(error_reason_is_the_newest_of_the_command),
		cmocka_unit_test(paths_that_tracefs_would_cut_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
