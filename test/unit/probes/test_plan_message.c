/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plans that the process which has analysed a file sends, also if it forges them. */
#include "probes/plan/allocator_plan.h"
#include "probes/plan/plan_message.h"

#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
	struct probe_set set; /* of this process's libc */
	struct mapped_file mapped;
	char *bytes;
	size_t size;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct probe_file *file;
	FILE *out;

	assert_non_null(fixture);
	assert_int_equal(allocator_plan_pid(&fixture->set, getpid(), false), 0);
	/* The messages are about one mapped file. */
	while (fixture->set.nr_files > 1)
		probe_file_deinit(&fixture->set.files[--fixture->set.nr_files]);
	file = &fixture->set.files[0];
	fixture->mapped = (struct mapped_file){
		.fd = file->fd,
		.path = file->path,
		.display = file->display,
		.stat = file->stat,
	};
	out = open_memstream(&fixture->bytes, &fixture->size);
	assert_non_null(out);
	plan_message_put(out, &fixture->set);
	assert_int_equal(fclose(out), 0);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	probe_set_deinit(&fixture->set);
	free(fixture->bytes);
	free(fixture);
	return 0;
}

static int get(const struct fixture *fixture, const char *bytes, size_t size, struct probe_set *ret)
{
	struct message_reader reader = {bytes, bytes + size, false};

	*ret = (struct probe_set){0};
	return plan_message_get(&reader, &fixture->mapped, NULL, ret);
}

static void test_same(void **state)
{
	const struct fixture *fixture = *state;
	const struct probe_file *sent = &fixture->set.files[0], *got;
	struct probe_set set;

	assert_int_equal(get(fixture, fixture->bytes, fixture->size, &set), 0);
	assert_int_equal(set.nr_files, 1);
	got = &set.files[0];
	assert_string_equal(got->group, sent->group);
	assert_string_equal(got->allocator, sent->allocator);
	assert_int_equal(got->has_size_word, sent->has_size_word);
	assert_int_equal(got->nr_probes, sent->nr_probes);
	for (size_t i = 0; i < got->nr_probes; i++) {
		const struct probe *a = &got->probes[i], *b = &sent->probes[i];

		assert_string_equal(a->definition, b->definition);
		assert_string_equal(a->symbol, b->symbol);
		assert_string_equal(a->instruction.text, b->instruction.text);
		assert_ptr_equal(a->schema, b->schema);
		assert_int_equal(a->first_arg, b->first_arg);
		assert_int_equal(a->nr_points, b->nr_points);
		if (a->nr_points)
			assert_memory_equal(a->points, b->points,
					    a->nr_points * sizeof(*a->points));
	}
	probe_set_deinit(&set);
}

/* What could be used if it were not checked. */
static void assert_harmless(const struct fixture *fixture, const struct probe_set *set)
{
	for (size_t i = 0; i < set->nr_files; i++) {
		const struct probe_file *file = &set->files[i];

		for (size_t j = 0; j < file->nr_probes; j++) {
			const struct probe *probe = &file->probes[j];

			assert_true(probe->offset <= (uint64_t)fixture->mapped.stat.st_size);
			assert_null(strpbrk(probe->definition, "\n;@"));
			assert_non_null(strstr(probe->definition, fixture->mapped.path));
			assert_true(probe->point <= PROBE_EXIT);
			assert_true(probe->nr_points <= SINGLE_TRAP_MAX_POINTS);
			for (size_t k = 0; k < probe->nr_points; k++)
				assert_in_range(probe->points[k].size_register + 1, 0, 16);
		}
	}
}

/* Each byte is changed to each of some values; each length is tried. */
static void test_forged(void **state)
{
	static const unsigned char values[] = {0, 1, '\n', '@', ';', 0x7f, 0x80, 0xff};
	const struct fixture *fixture = *state;
	char *bytes = malloc(fixture->size);
	size_t nr_bad = 0;
	struct probe_set set;

	assert_non_null(bytes);
	for (size_t i = 0; i < fixture->size * ARRAY_SIZE(values); i++) {
		int err;

		memcpy(bytes, fixture->bytes, fixture->size);
		bytes[i / ARRAY_SIZE(values)] = (char)values[i % ARRAY_SIZE(values)];
		err = get(fixture, bytes, fixture->size, &set);
		assert_true(err == 0 || err == -EBADMSG);
		assert_true(err == 0 || set.nr_files == 0);
		nr_bad += err != 0;
		assert_harmless(fixture, &set);
		probe_set_deinit(&set);
	}
	assert_true(nr_bad > fixture->size);
	for (size_t size = 0; size < fixture->size; size++) {
		memcpy(bytes, fixture->bytes, size);
		assert_int_equal(get(fixture, bytes, size, &set), -EBADMSG);
		probe_set_deinit(&set);
	}
	free(bytes);
}

static const struct resource_call *find_row(void *context, const char *event,
					    enum probe_point point)
{
	return strcmp(event, "file__give__open") == 0 && point == PROBE_ENTRY ? context : NULL;
}

/* Rows of functions that the user names are those of whoever knows the names. */
static void test_named_rows(void **state)
{
	static const char *const events[] = {"file__give__open", "file__give__other"};
	const struct resource_event event = {"file", RESOURCE_GIVE, RESOURCE_WHOLE, "open", 0};
	struct fixture *fixture = *state;
	struct probe *probe = &fixture->set.files[0].probes[0];
	const struct probe_schema *schema = probe->schema;
	struct resource_schemas schemas = {0};
	struct resource_call *row;
	struct probe_set set = {0};

	assert_int_equal(resource_schemas_add(&schemas, &event, &row), 0);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		const struct plan_rows rows = {find_row, row};
		struct message_reader reader;
		FILE *out;

		probe->schema = &row->schema;
		probe->point = PROBE_ENTRY;
		snprintf(probe->event, sizeof(probe->event), "%s", events[i]);
		free(fixture->bytes);
		out = open_memstream(&fixture->bytes, &fixture->size);
		assert_non_null(out);
		plan_message_put(out, &fixture->set);
		assert_int_equal(fclose(out), 0);
		assert_int_equal(get(fixture, fixture->bytes, fixture->size, &set), -EBADMSG);
		reader = (struct message_reader){fixture->bytes, fixture->bytes + fixture->size,
						 false};
		assert_int_equal(plan_message_get(&reader, &fixture->mapped, &rows, &set),
				 i == 0 ? 0 : -EBADMSG);
		if (i == 0) {
			assert_ptr_equal(set.files[0].probes[0].schema, &row->schema);
			assert_string_equal(set.files[0].probes[0].symbol, "open");
		}
		probe_set_deinit(&set);
	}
	probe->schema = schema;
	resource_schemas_deinit(&schemas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_named_rows, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
