/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/loading/backup_programs.h"
#include "recorder/loading/bpf_setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* The file's programs, not loaded. */
static struct bpf_object *open_object(const char *file)
{
	char path[4096];
	struct bpf_object *object;

	snprintf(path, sizeof(path), "%s/recorder/%s", TEST_BUILD_DIR, file);
	bpf_setup_silence_libbpf();
	object = bpf_object__open_file(path, NULL);
	assert_non_null(object);
	return object;
}

static struct bpf_program *backup(const struct bpf_object *object, const char *name, int nr)
{
	char full_name[64];

	snprintf(full_name, sizeof(full_name), "%s_%d", name, nr);
	return bpf_object__find_program_by_name(object, full_name);
}

static bool is_backup(const char *name)
{
	size_t len = strlen(name);

	return len > 2 && (!strcmp(name + len - 2, "_2") || !strcmp(name + len - 2, "_3"));
}

/* Their work would be done twice; or they are for kernels that skip none. */
static bool needs_none(const char *name)
{
	static const char *const names[] = {"syscall_enter", "syscall_exit", "count_transfer",
					    "before_clone", "after_clone"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static void check_programs(const char *file)
{
	struct bpf_object *object = open_object(file);
	struct bpf_program *program = NULL;
	size_t nr = 0;

	while ((program = bpf_object__next_program(object, program))) {
		const char *name = bpf_program__name(program);

		if (bpf_program__type(program) != BPF_PROG_TYPE_TRACING || is_backup(name) ||
		    needs_none(name))
			continue;
		nr++;
		/* Else its skips would count nowhere. */
		if (backup_programs_cost(name) == SKIP_IS_UNKNOWN)
			fail_msg("%s: it is not known what a skip of %s costs", file, name);
		for (int i = 2; i <= 3; i++)
			if (!backup(object, name, i))
				fail_msg("%s: %s has no backup %d", file, name, i);
	}
	assert_in_range(nr, 3, 20);
	bpf_object__close(object);
}

static void test_each_program(void **state)
{
	check_programs("bpf_recorder.bpf.o");
	check_programs("backpressure.bpf.o");
}

static void test_choice(void **state)
{
	struct bpf_object *object = open_object("bpf_recorder.bpf.o");
	struct bpf_program *without = bpf_object__find_program_by_name(object, "after_map_pages");

	bpf_program__set_autoload(without, false);
	backup_programs_choose(object, true, false);
	assert_true(bpf_program__autoload(backup(object, "after_fork", 2)));
	assert_true(bpf_program__autoload(backup(object, "after_fork", 3)));
	assert_false(bpf_program__autoload(backup(object, "after_map_pages", 2)));
	assert_false(bpf_program__autoload(backup(object, "after_map_pages", 3)));
	assert_false(bpf_program__autoload(backup(object, "child_begins", 2)));
	backup_programs_choose(object, false, true);
	assert_true(bpf_program__autoload(bpf_object__find_program_by_name(object, "after_fork")));
	assert_false(bpf_program__autoload(backup(object, "after_fork", 2)));
	assert_false(bpf_program__autoload(backup(object, "after_fork", 3)));
	assert_true(bpf_program__autoload(backup(object, "child_begins", 2)));
	assert_true(bpf_program__autoload(backup(object, "child_begins", 3)));
	bpf_object__close(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_program),
		cmocka_unit_test(test_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
