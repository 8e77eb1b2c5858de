/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The arguments of --pair and --ref, and the names of their events and fields. */
#include "probes/resources/pair_spec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char why[PAIR_WHY_MAX];

/* Parses a valid text. */
static void parse(const char *text, bool counts_refs, struct pair_spec *ret)
{
	int err = pair_spec_parse(text, counts_refs, ret, why);

	if (err)
		fail_msg("%s: %s", text, why);
}

static void a_function_gives_what_another_takes(void **state)
{
	struct pair_spec spec;

	parse("fopen:ret / fclose:arg1", false, &spec);
	assert_string_equal(spec.kind, "fopen");
	assert_int_equal(spec.nr, 2);
	assert_string_equal(spec.calls[0].name, "fopen");
	assert_int_equal(spec.calls[0].role, RESOURCE_GIVE);
	assert_int_equal(spec.calls[0].place, RESOURCE_RETURNED);
	assert_int_equal(spec.calls[0].failure, RESOURCE_FAILS_BY_NULL);
	assert_int_equal(spec.calls[1].role, RESOURCE_TAKE);
	assert_int_equal(spec.calls[1].place, RESOURCE_IN_ARGUMENT);
	assert_int_equal(spec.calls[1].handle_arg, 1);
	assert_int_equal(spec.calls[1].size_arg, 0);
	pair_spec_deinit(&spec);
}

static void several_functions_share_what_the_last_one_says(void **state)
{
	struct pair_spec spec;

	parse("file = fopen | fdopen|tmpfile:ret|my_open:*arg2 size=arg3 fail!=0 / fclose|my_close:arg1",
	      false, &spec);
	assert_string_equal(spec.kind, "file");
	assert_int_equal(spec.nr, 6);
	assert_string_equal(spec.calls[1].name, "fdopen");
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(spec.calls[i].place, RESOURCE_RETURNED);
	assert_int_equal(spec.calls[3].place, RESOURCE_STORED);
	assert_int_equal(spec.calls[3].handle_arg, 2);
	assert_int_equal(spec.calls[3].size_arg, 3);
	assert_int_equal(spec.calls[3].failure, RESOURCE_FAILS_UNEQUAL);
	assert_int_equal(spec.calls[4].handle_arg, 1);
	assert_string_equal(spec.calls[4].name, "fclose");
	pair_spec_deinit(&spec);
}

static void functions_are_named_in_three_ways(void **state)
{
	struct pair_spec spec;

	parse("libx.so.1+0x1a0:ret fail=-1 | src/pool.c:42:arg3 / /usr/lib/liby.so+4096:*arg6",
	      false, &spec);
	assert_string_equal(spec.kind, "libx_so_1");
	assert_int_equal(spec.calls[0].naming, PAIR_BY_OFFSET);
	assert_string_equal(spec.calls[0].name, "libx.so.1");
	assert_int_equal(spec.calls[0].number, 0x1a0);
	assert_int_equal(spec.calls[0].failure_value, -1);
	assert_int_equal(spec.calls[1].naming, PAIR_BY_LINE);
	assert_string_equal(spec.calls[1].name, "src/pool.c");
	assert_int_equal(spec.calls[1].number, 42);
	assert_int_equal(spec.calls[2].number, 4096);
	assert_true(spec.calls[2].is_pointed_to);
	assert_int_equal(spec.calls[2].place, RESOURCE_IN_ARGUMENT);
	pair_spec_deinit(&spec);
}

static void references_are_to_objects_that_functions_return(void **state)
{
	struct pair_spec spec;

	parse("g_object_new:ret | g_object_ref:arg1 / g_object_unref:arg1", true, &spec);
	assert_int_equal(spec.calls[0].role, RESOURCE_NEW);
	assert_int_equal(spec.calls[1].role, RESOURCE_REF);
	assert_int_equal(spec.calls[2].role, RESOURCE_UNREF);
	pair_spec_deinit(&spec);
}

static void what_makes_no_sense_is_refused_with_a_reason(void **state)
{
	static const char *const texts[] = {
		"",
		" / ",
		"/",
		"fopen:ret",
		"fopen:ret/fclose:arg1",
		"fopen:ret / ",
		" / fclose:arg1",
		"fopen / fclose:arg1",
		"fopen:ret / fclose",
		"|fopen:ret / f:arg1",
		"fopen:ret | / f:arg1",
		"fopen:ret / fclose:ret",
		"fopen:ret / a:arg1 / b:arg1",
		"fopen:arg0 / f:arg1",
		"fopen:arg7 / f:arg1",
		"fopen:arg12 / f:arg1",
		"fopen:*ret / f:arg1",
		"fopen:ret fail / f:arg1",
		"fopen:ret fail= / f:arg1",
		"fopen:ret fail=x / f:arg1",
		"fopen:ret fail==0 / f:arg1",
		"fopen:ret fail=99999999999 / f:arg1",
		"fopen:ret fail=1x / f:arg1",
		"fopen:ret fail=+1 / f:arg1",
		"fopen:ret size=ret / f:arg1",
		"fopen:ret size=arg7 / f:arg1",
		"fopen:ret colour=red / f:arg1",
		"fopen:ret / f:arg1 fail=0",
		"fopen:ret / f:arg1 size=arg2",
		"fopen size=arg1|g:ret / f:arg1",
		"=fopen:ret / f:arg1",
		"1a=fopen:ret / f:arg1",
		"a__b=fopen:ret / f:arg1",
		"a_=fopen:ret / f:arg1",
		"a-b=fopen:ret / f:arg1",
		"abcdefghijklmnopq=fopen:ret / f:arg1",
		"x.c:0:ret / f:arg1",
		"x.c:-1:ret / f:arg1",
		"x.c:99999999999:ret / f:arg1",
		"libx.so+:ret / f:arg1",
		"libx.so+zz:ret / f:arg1",
		"+0x10:ret / f:arg1",
		"libx.so+0xffffffffffffffff:ret / f:arg1",
		":ret / f:arg1",
		"a\001b:ret / f:arg1",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct pair_spec spec;

		if (pair_spec_parse(texts[i], false, &spec, why) != -EINVAL)
			fail_msg("accepted: \"%s\"", texts[i]);
		if (!*why || strchr(why, '\n'))
			fail_msg("no reason for \"%s\"", texts[i]);
		pair_spec_deinit(&spec);
	}
}

static void too_much_is_refused(void **state)
{
	char *text = malloc(2 * PAIR_MAX_TEXT);
	struct pair_spec spec;
	size_t len = 0;

	for (int i = 0; i <= PAIR_MAX_CALLS; i++)
		len += (size_t)snprintf(text + len, 8, "f%d|", i);
	snprintf(text + len, 32, "g:ret / h:arg1");
	assert_int_equal(pair_spec_parse(text, false, &spec, why), -EINVAL);
	pair_spec_deinit(&spec);
	memset(text, 'x', 2 * PAIR_MAX_TEXT - 1);
	text[2 * PAIR_MAX_TEXT - 1] = '\0';
	assert_int_equal(pair_spec_parse(text, false, &spec, why), -EINVAL);
	pair_spec_deinit(&spec);
	free(text);
}

/* Random texts, made of pieces of the grammar, do no harm. */
static void any_text_is_survived(void **state)
{
	static const char *const pieces[] = {
		"fopen", ":",  "ret",	    "arg1",   "*",     " ",    "/",    " / ",
		"|",	 "=",  "size=arg2", "fail<0", "+",     "0x10", "a.c",  "12",
		"_",	 "\t", "-",	    "fail",   "kind=", "arg9", "\377",
	};
	uint64_t random = 12345;

	for (int i = 0; i < 20000; i++) {
		char text[256] = "";
		struct pair_spec spec;
		int err;

		for (size_t j = 0; j < 12; j++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			strncat(text, pieces[(random >> 33) % (sizeof(pieces) / sizeof(pieces[0]))],
				sizeof(text) - strlen(text) - 1);
		}
		err = pair_spec_parse(text, i % 2, &spec, why);
		assert_true(err == 0 || (err == -EINVAL && *why));
		if (!err)
			assert_true(resource_kind_is_valid(spec.kind, strlen(spec.kind)));
		pair_spec_deinit(&spec);
	}
}

static void event_names_are_read_as_they_are_written(void **state)
{
	const struct resource_event event = {"file", RESOURCE_GIVE, RESOURCE_RETURN, "fopen", 0};
	struct resource_event parsed;
	char name[RESOURCE_EVENT_MAX + 1];

	resource_event_format(&event, name);
	assert_string_equal(name, "file__give_ret__fopen");
	assert_int_equal(resource_event_parse(name, &parsed), 0);
	assert_memory_equal(&parsed, &event, sizeof(event));
	assert_int_equal(resource_event_parse("widget__unref__a__b", &parsed), 0);
	assert_int_equal(parsed.role, RESOURCE_UNREF);
	assert_int_equal(parsed.stage, RESOURCE_WHOLE);
	assert_string_equal(parsed.function, "a__b");
}

/* Each exit has an event of its own, of one function. */
static void exits_are_numbered(void **state)
{
	struct resource_event event = {"file", RESOURCE_NEW, RESOURCE_EXIT, "", 0}, parsed;
	char name[RESOURCE_EVENT_MAX + 1];

	snprintf(event.function, sizeof(event.function), "make_a_file_whose_name_is_very_long_%d",
		 1);
	resource_event_format(&event, name);
	assert_string_equal(name, "file__new_exit__make_a_file_whose_name_is_very_long_1");
	for (event.exit_number = 1; event.exit_number < 100; event.exit_number++) {
		resource_event_format(&event, name);
		assert_int_equal(resource_event_parse(name, &parsed), 0);
		assert_int_equal(parsed.stage, RESOURCE_EXIT);
		assert_int_equal(parsed.exit_number, event.exit_number);
		assert_string_equal(parsed.function, event.function);
	}
}

static void other_names_are_no_resources(void **state)
{
	static const char *const names[] = {
		"",
		"malloc",
		"__give__f",
		"a__give",
		"a__give__",
		"a__give_x__f",
		"a__given__f",
		"1a__give__f",
		"a_____give__f",
		"abcdefghijklmnopq__give__f",
		"a__give_exit0__f",
		"a__give_exit100__f",
		"a__give_ret1__f",
		"a__give1__f",
	};
	struct resource_event parsed;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (resource_event_parse(names[i], &parsed) == 0)
			fail_msg("taken for a resource's: %s", names[i]);
}

/* Long and unusual function names give names that the kernel accepts, equal at entry and return. */
static void every_function_has_a_name(void **state)
{
	struct resource_event event = {"abcdefghijklmnop", RESOURCE_UNREF, RESOURCE_ENTRY, "", 0};
	char entry[RESOURCE_EVENT_MAX + 1], other[RESOURCE_EVENT_MAX + 1];
	struct resource_event at_entry, at_return;

	snprintf(event.function, sizeof(event.function),
		 "_ZN9namespace5class8functionILi3EEEvRKSt6vectorIiSaIiEE.x");
	resource_event_format(&event, entry);
	assert_int_equal(strspn(entry, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
				       "0123456789"),
			 strlen(entry));
	assert_int_equal(resource_event_parse(entry, &at_entry), 0);
	event.stage = RESOURCE_RETURN;
	resource_event_format(&event, other);
	assert_int_equal(resource_event_parse(other, &at_return), 0);
	assert_string_equal(at_entry.function, at_return.function);
	event.stage = RESOURCE_EXIT;
	event.exit_number = 63;
	resource_event_format(&event, other);
	assert_int_equal(resource_event_parse(other, &at_return), 0);
	assert_string_equal(at_entry.function, at_return.function);
	event.stage = RESOURCE_ENTRY;
	event.function[strlen(event.function) - 1] = 'y';
	resource_event_format(&event, other);
	assert_string_not_equal(entry, other);
}

static void return_fields_say_what_means_failure(void **state)
{
	const struct {
		enum resource_place place;
		enum resource_failure failure;
		int64_t value;
		const char *name;
	} fields[] = {
		{RESOURCE_RETURNED, RESOURCE_FAILS_BY_NULL, 0, "handle"},
		{RESOURCE_RETURNED, RESOURCE_FAILS_BELOW, 0, "handle_fail_lt_0"},
		{RESOURCE_RETURNED, RESOURCE_FAILS_EQUAL, -1, "handle_fail_eq_m1"},
		{RESOURCE_IN_ARGUMENT, RESOURCE_FAILS_UNEQUAL, 0, "ret_fail_ne_0"},
		{RESOURCE_IN_ARGUMENT, RESOURCE_FAILS_ABOVE, -INT32_MAX, "ret_fail_gt_m2147483647"},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct resource_call call = {.place = fields[i].place,
					     .failure = fields[i].failure,
					     .failure_value = fields[i].value},
				     parsed = {0};
		char name[RESOURCE_FIELD_MAX + 1];

		resource_return_field(&call, name);
		assert_string_equal(name, fields[i].name);
		assert_true(resource_return_field_parse(name, &parsed));
		assert_int_equal(parsed.place, call.place);
		assert_int_equal(parsed.failure, call.failure);
		assert_true(parsed.failure_value == call.failure_value);
	}
	for (size_t i = 0; i < 6; i++) {
		static const char *const names[] = {"return",	      "handle_",
						    "ret_fail_",      "ret_fail_lt_",
						    "ret_fail_lt_1x", "ret_fail_lt_99999999999"};
		struct resource_call parsed = {0};

		assert_false(resource_return_field_parse(names[i], &parsed));
	}
}

static void an_int_fails_as_an_int(void **state)
{
	struct resource_call call = {.failure = RESOURCE_FAILS_BELOW};

	assert_true(resource_call_failed(&call, 0xffffffff, 0xffffffff));
	assert_true(resource_call_failed(&call, UINT64_MAX, UINT64_MAX));
	assert_false(resource_call_failed(&call, 0, 0));
	assert_false(resource_call_failed(&call, 3, 3));
	call = (struct resource_call){.failure = RESOURCE_FAILS_BY_NULL};
	assert_true(resource_call_failed(&call, 0, 0));
	assert_false(resource_call_failed(&call, 0, 1));
}

/* The number of calls that a hostile file can add is limited. */
static void calls_have_a_limit(void **state)
{
	struct resource_schemas schemas = {0};
	struct resource_event event = {"a", RESOURCE_GIVE, RESOURCE_WHOLE, "", 0};
	struct resource_call *call, *again;

	for (int i = 0; i < RESOURCE_MAX_CALLS; i++) {
		snprintf(event.function, sizeof(event.function), "f%d", i);
		assert_int_equal(resource_schemas_add(&schemas, &event, &call), 0);
	}
	assert_int_equal(resource_schemas_add(&schemas, &event, &again), 0);
	assert_ptr_equal(call, again);
	snprintf(event.function, sizeof(event.function), "one_more");
	assert_int_equal(resource_schemas_add(&schemas, &event, &call), -E2BIG);
	resource_schemas_deinit(&schemas);
	for (int i = 0; i < RESOURCE_NAMED_KINDS; i++) { /* one is built in */
		snprintf(event.kind, sizeof(event.kind), "kind%d", i);
		assert_int_equal(resource_schemas_add(&schemas, &event, &call), 0);
		assert_int_equal(call->kind->number, i + 1);
	}
	snprintf(event.kind, sizeof(event.kind), "more");
	assert_int_equal(resource_schemas_add(&schemas, &event, &call), -E2BIG);
	resource_schemas_deinit(&schemas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_gives_what_another_takes),
		cmocka_unit_test(several_functions_share_what_the_last_one_says),
		cmocka_unit_test(functions_are_named_in_three_ways),
		cmocka_unit_test(references_are_to_objects_that_functions_return),
		cmocka_unit_test(what_makes_no_sense_is_refused_with_a_reason),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(any_text_is_survived),
		cmocka_unit_test(event_names_are_read_as_they_are_written),
		cmocka_unit_test(exits_are_numbered),
		cmocka_unit_test(other_names_are_no_resources),
		cmocka_unit_test(every_function_has_a_name),
		cmocka_unit_test(return_fields_say_what_means_failure),
		cmocka_unit_test(an_int_fails_as_an_int),
		cmocka_unit_test(calls_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
