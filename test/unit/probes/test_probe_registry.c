/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registration in the real tracefs, on a private copy of libc, so that nothing else on the machine
 * is probed. Needs root; without it the test is skipped, which REQUIRE_UPROBES=1 forbids.
 */
#include "probes/tracefs/group_name.h"
#include "probes/plan/allocator_plan.h"
#include "probes/plan/probe_set.h"
#include "common/proc/process_stat.h"
#include "probes/tracefs/tracefs_uprobes.h"

#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

struct fixture {
	char dir[64];
	char path[128];
};

static void copy_libc(const char *to)
{
	_cleanup_close_ int in = -1, out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	struct probe_set own;
	struct stat stat;

	/* This process's libc, wherever it is. */
	assert_int_equal(allocator_plan_pid(&own, getpid(), false), 0);
	in = open(own.files[own.nr_files - 1].path, O_RDONLY | O_CLOEXEC);
	probe_set_deinit(&own);
	assert_true(in >= 0 && out >= 0);
	assert_int_equal(fstat(in, &stat), 0);
	assert_int_equal(sendfile(out, in, NULL, stat.st_size), stat.st_size);
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/test_probe_registry.XXXXXX");
	assert_non_null(mkdtemp(fixture->dir));
	snprintf(fixture->path, sizeof(fixture->path), "%s/libc.so.6", fixture->dir);
	copy_libc(fixture->path);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	unlink(fixture->path);
	rmdir(fixture->dir);
	free(fixture);
	return 0;
}

/* The number of events of @group in tracefs. */
static size_t count_group(const char *group)
{
	struct uprobe_list list;
	size_t nr = 0;

	assert_int_equal(tracefs_uprobes_read(&list, true), 0);
	for (size_t i = 0; i < list.nr; i++)
		nr += strcmp(list.probes[i].group, group) == 0;
	uprobe_list_deinit(&list);
	return nr;
}

static void probes_are_registered_found_and_removed(void **state)
{
	struct fixture *fixture = *state;
	struct probe_set first, second;
	size_t nr;

	assert_int_equal(allocator_plan_file(&first, fixture->path, false), 0);
	nr = first.files[0].nr_probes;
	assert_int_equal(probe_set_find(&first), 0);
	assert_int_equal(probe_set_register(&first), 0);
	assert_int_equal(count_group(first.files[0].group), nr);
	for (size_t i = 0; i < nr; i++) {
		assert_true(first.files[0].probes[i].tracefs_id > 0);
		assert_true(first.files[0].probes[i].registered_here);
	}

	/* The second set adds nothing, and so removes nothing. */
	assert_int_equal(allocator_plan_file(&second, fixture->path, false), 0);
	assert_int_equal(probe_set_find(&second), nr);
	assert_int_equal(probe_set_register(&second), 0);
	assert_false(second.files[0].probes[0].registered_here);
	assert_int_equal(second.files[0].probes[0].tracefs_id, first.files[0].probes[0].tracefs_id);
	assert_int_equal(probe_set_unregister(&second), 0);
	assert_int_equal(count_group(first.files[0].group), nr);

	assert_int_equal(probe_set_unregister(&first), 0);
	assert_int_equal(count_group(first.files[0].group), 0);
	assert_int_equal(probe_set_find(&second), 0);
	probe_set_deinit(&second);
	probe_set_deinit(&first);
}

static void a_failure_leaves_nothing_behind(void **state)
{
	struct fixture *fixture = *state;
	struct probe_set set;
	struct probe *last;

	assert_int_equal(allocator_plan_file(&set, fixture->path, false), 0);
	last = &set.files[0].probes[set.files[0].nr_probes - 1];
	free(last->fetch_args);
	last->fetch_args = strdup("mem=%nosuch:x64");
	assert_true(probe_set_register(&set) < 0);
	assert_int_equal(count_group(set.files[0].group), 0);
	assert_false(set.files[0].probes[0].registered_here);
	probe_set_deinit(&set);
}

static void an_event_that_records_otherwise_is_not_taken(void **state)
{
	struct fixture *fixture = *state;
	struct probe_set there, wanted;

	assert_int_equal(allocator_plan_file(&there, fixture->path, false), 0);
	assert_int_equal(allocator_plan_file(&wanted, fixture->path, false), 0);
	free(there.files[0].probes[0].fetch_args);
	there.files[0].probes[0].fetch_args = strdup("bytes=%si:u64");
	assert_int_equal(probe_set_register(&there), 0);
	assert_int_equal(probe_set_find(&wanted), wanted.files[0].nr_probes - 1);
	assert_int_equal(probe_set_register(&wanted), -EEXIST);
	assert_int_equal(probe_set_unregister(&there), 0);
	probe_set_deinit(&wanted);
	probe_set_deinit(&there);
}

/* Probes at the entries, as an older version registered them, are found there and stay. */
static void probes_elsewhere_in_the_function_are_found(void **state)
{
	struct fixture *fixture = *state;
	struct probe_set older, found;
	size_t nr;

	assert_int_equal(allocator_plan_file(&older, fixture->path, false), 0);
	nr = older.files[0].nr_probes;
	for (size_t i = 0; i < nr; i++)
		if (older.files[0].probes[i].point == PROBE_ENTRY ||
		    older.files[0].probes[i].point == PROBE_RETURN)
			older.files[0].probes[i].offset = older.files[0].probes[i].function_offset;
	assert_int_equal(probe_set_register(&older), 0);

	assert_int_equal(allocator_plan_file(&found, fixture->path, false), 0);
	assert_int_equal(probe_set_find(&found), nr);
	assert_int_equal(probe_set_register(&found), 0);
	for (size_t i = 0; i < nr; i++) {
		assert_false(found.files[0].probes[i].registered_here);
		assert_int_equal(found.files[0].probes[i].offset, older.files[0].probes[i].offset);
	}
	assert_int_equal(probe_set_unregister(&older), 0);
	probe_set_deinit(&found);
	probe_set_deinit(&older);
}

/* A probe of that name in another function does not match. */
static void a_probe_outside_the_function_is_not_taken(void **state)
{
	struct fixture *fixture = *state;
	struct probe_set there, wanted;

	assert_int_equal(allocator_plan_file(&there, fixture->path, false), 0);
	assert_int_equal(allocator_plan_file(&wanted, fixture->path, false), 0);
	there.files[0].probes[0].offset = there.files[0].probes[0].function_offset - 16;
	assert_int_equal(probe_set_register(&there), 0);
	assert_int_equal(probe_set_find(&wanted), wanted.files[0].nr_probes - 1);
	assert_int_equal(probe_set_unregister(&there), 0);
	probe_set_deinit(&wanted);
	probe_set_deinit(&there);
}

static void an_event_in_use_stays(void **state)
{
	struct fixture *fixture = *state;
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr)};
	struct probe_set set;
	int fd;

	assert_int_equal(allocator_plan_file(&set, fixture->path, false), 0);
	assert_int_equal(probe_set_register(&set), 0);
	attr.config = set.files[0].probes[0].tracefs_id;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(probe_set_unregister(&set), -EBUSY);
	assert_int_equal(count_group(set.files[0].group), 1);
	close(fd);
	assert_int_equal(probe_set_unregister(&set), 0);
	assert_int_equal(count_group(set.files[0].group), 0);
	probe_set_deinit(&set);
}

/* Registers as leakrec does, in a child, and sends the group through @to. */
static int register_own(const char *path, int to)
{
	struct probe_set set;

	if (allocator_plan_file(&set, path, false) || probe_set_make_own(&set) ||
	    probe_set_register(&set))
		return 1;
	return write(to, set.files[0].group, PROBE_NAME_MAX) == PROBE_NAME_MAX ? 0 : 1;
}

static void a_dead_recorders_probes_are_removed(void **state)
{
	struct fixture *fixture = *state;
	struct probe_set set;
	char dead_group[PROBE_NAME_MAX];
	int status, ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(register_own(fixture->path, ends[1]));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read(ends[0], dead_group, sizeof(dead_group)), sizeof(dead_group));
	close(ends[0]);
	close(ends[1]);

	/* This process is alive, so its own probes stay. */
	assert_int_equal(allocator_plan_file(&set, fixture->path, false), 0);
	assert_int_equal(probe_set_make_own(&set), 0);
	assert_int_equal(probe_set_register(&set), 0);
	assert_true(probe_set_reap() >= 0);
	assert_int_equal(count_group(dead_group), 0);
	assert_int_equal(count_group(set.files[0].group), set.files[0].nr_probes);
	assert_int_equal(probe_set_unregister(&set), 0);
	probe_set_deinit(&set);
}

/* Process ids are reused: the start time shows that this is not the recorder. */
static void another_process_of_that_number_is_no_recorder(void **state)
{
	struct fixture *fixture = *state;
	struct process_stat status;
	struct group_name name;
	struct probe_set set;

	assert_int_equal(process_stat_read(getpid(), &status), 0);
	assert_int_equal(allocator_plan_file(&set, fixture->path, false), 0);
	assert_int_equal(group_name_parse(set.files[0].group, &name), 0);
	name.owner = GROUP_OF_LEAKREC;
	name.pid = getpid();
	name.start_time_ticks = status.start_time_ticks - 1;
	assert_int_equal(probe_file_set_group(&set.files[0], &name), 0);
	assert_int_equal(probe_set_register(&set), 0);
	assert_true(probe_set_reap() >= 0);
	assert_int_equal(count_group(set.files[0].group), 0);
	probe_set_deinit(&set);
}

/* As the first process of a container, whose /proc does not show the machine's other processes. */
static int reap_in_container(void)
{
	int status;
	pid_t first;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 1;
	first = fork();
	if (first == 0)
		_exit(mount("proc", "/proc", "proc", 0, NULL) || probe_set_reap() != 0);
	return waitpid(first, &status, 0) == first ? status : 1;
}

static void a_container_does_not_know_who_is_dead(void **state)
{
	struct fixture *fixture = *state;
	struct probe_set set;
	int status;
	pid_t child;

	assert_int_equal(allocator_plan_file(&set, fixture->path, false), 0);
	assert_int_equal(probe_set_make_own(&set), 0);
	assert_int_equal(probe_set_register(&set), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(reap_in_container() != 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(count_group(set.files[0].group), set.files[0].nr_probes);
	assert_int_equal(probe_set_unregister(&set), 0);
	probe_set_deinit(&set);
}

/* As leakrec in a container: registers, sends the group through @to, and lives until @from ends. */
static int register_in_container(const char *path, int to, int from)
{
	char byte;
	int status;
	pid_t first;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 1;
	first = fork();
	if (first == 0)
		_exit(mount("proc", "/proc", "proc", 0, NULL) || register_own(path, to) ||
		      read(from, &byte, 1) != 0);
	return waitpid(first, &status, 0) == first ? status : 1;
}

static void a_recorder_in_a_container_keeps_its_probes(void **state)
{
	struct fixture *fixture = *state;
	int status, group[2], life[2];
	char name[PROBE_NAME_MAX];
	pid_t child;

	assert_int_equal(pipe(group), 0);
	assert_int_equal(pipe2(life, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(life[1]);
		_exit(register_in_container(fixture->path, group[1], life[0]) != 0);
	}
	close(group[1]);
	close(life[0]);
	assert_int_equal(read(group[0], name, sizeof(name)), sizeof(name));
	assert_true(probe_set_reap() >= 0);
	assert_true(count_group(name) > 0);
	close(life[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(probe_set_reap() >= 0);
	assert_int_equal(count_group(name), 0);
	close(group[0]);
}

static void a_path_with_blanks_works(void **state)
{
	struct fixture *fixture = *state;
	struct probe_set set;
	char path[160];

	snprintf(path, sizeof(path), "%s/a b#c.so", fixture->dir);
	copy_libc(path);
	assert_int_equal(allocator_plan_file(&set, path, false), 0);
	assert_string_equal(set.files[0].display, path);
	assert_int_equal(probe_set_register(&set), 0);
	assert_int_equal(count_group(set.files[0].group), set.files[0].nr_probes);
	assert_int_equal(probe_set_unregister(&set), 0);
	probe_set_deinit(&set);
	unlink(path);
}

static bool uprobes_work(void)
{
	const char *dir = geteuid() == 0 ? probe_tracefs_dir() : NULL;
	_cleanup_free_ char *path = NULL;

	if (!dir || asprintf(&path, "%s/uprobe_events", dir) < 0)
		return false;
	return access(path, W_OK) == 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_are_registered_found_and_removed),
		cmocka_unit_test(a_failure_leaves_nothing_behind),
		cmocka_unit_test(an_event_that_records_otherwise_is_not_taken),
		cmocka_unit_test(probes_elsewhere_in_the_function_are_found),
		cmocka_unit_test(a_probe_outside_the_function_is_not_taken),
		cmocka_unit_test(an_event_in_use_stays),
		cmocka_unit_test(a_dead_recorders_probes_are_removed),
		cmocka_unit_test(another_process_of_that_number_is_no_recorder),
		cmocka_unit_test(a_container_does_not_know_who_is_dead),
		cmocka_unit_test(a_recorder_in_a_container_keeps_its_probes),
		cmocka_unit_test(a_path_with_blanks_works),
	};
	const char *required = getenv("REQUIRE_UPROBES");

	if (!uprobes_work()) {
		fprintf(stderr, "SKIPPED: needs root and a kernel with uprobes\n");
		return required && strcmp(required, "1") == 0 ? 1 : 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
