/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conditions: what is one, and when it is met, by files like those of /proc and of a cgroup. */
#include "common/scope.h"
#include "recorder/conditions/condition_sources.h"
#include "recorder/conditions/process_ends.h"

#include <cap-ng.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND 1000000000ULL
#define MIB    ((uint64_t)1 << 20)

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		enum condition_kind kind;
		uint64_t limit, within_s;
	} good[] = {
		{"rss=2G", CONDITION_RSS, 2048 * MIB, 0},
		{"rss=1.5MiB", CONDITION_RSS, MIB + MIB / 2, 0},
		{"rss+=100M/m", CONDITION_RSS_GROWTH, 100 * MIB, 60},
		{"rss+=1G/h", CONDITION_RSS_GROWTH, 1024 * MIB, 3600},
		{"pressure=10%", CONDITION_PRESSURE, 1000, 0},
		{"pressure=0.25%", CONDITION_PRESSURE, 25, 0},
		{"pressure=100%", CONDITION_PRESSURE, 10000, 0},
		{"memory.high", CONDITION_HIGH, 0, 0},
		{"memory.max", CONDITION_MAX, 0, 0},
		{"memory.oom", CONDITION_OOM, 0, 0},
		{"signal", CONDITION_SIGNAL, 0, 0},
		{"end", CONDITION_END, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct condition condition;

		assert_int_equal(condition_parse(good[i].text, &condition), 0);
		assert_ptr_equal(condition.text, good[i].text);
		assert_int_equal(condition.kind, good[i].kind);
		assert_int_equal(condition.limit, good[i].limit);
		assert_int_equal(condition.within_ns, good[i].within_s * SECOND);
	}
}

static void test_reject(void **state)
{
	static const char *const bad[] = {
		"",
		"rss",
		"rss=",
		"rss=0",
		"rss=-1G",
		"rss= 2G",
		"rss=2G ",
		"rss=2X",
		"rss=2G/m",
		"rss=1G..2G",
		"RSS=2G",
		"rss+=",
		"rss+=100M",
		"rss+=100M/",
		"rss+=100M/s",
		"rss+=100M/min",
		"rss+=0/m",
		"rss+=/m",
		"rss+=-1M/m",
		"rss+=11111111111111111111111111111111111111M/m",
		"rss-=100M/m",
		"pressure=",
		"pressure=%",
		"pressure=10",
		"pressure=0%",
		"pressure=101%",
		"pressure=-1%",
		"pressure=nan%",
		"pressure=10%%",
		"pressure=0.00000000000000000000000000000000001%",
		"memory",
		"memory.low",
		"memory.max=1",
		"signal=11",
		"ends",
		"end,signal",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct condition condition;

		if (condition_parse(bad[i], &condition) == 0)
			fail_msg("\"%s\" is taken for a condition", bad[i]);
	}
}

/* Files like the kernel's. */
struct files {
	char dir[64];
	int dir_fd;
	struct memory_samples memory;
	struct condition_sources sources;
};

static void write_file(const struct files *files, const char *name, const char *text)
{
	int fd = openat(files->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* What /proc/PID/status says: 1 MiB is of files, the rest not. */
static void set_rss(const struct files *files, uint64_t bytes)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "Name:\tfake\nVmData:\t    1000 kB\nRssAnon:\t%8llu kB\nRssFile:\t    1024 kB\n"
		 "RssShmem:\t       0 kB\nVmSwap:\t       0 kB\n",
		 (unsigned long long)(bytes - MIB) / 1024);
	write_file(files, "status", text);
}

static int set_up(void **state)
{
	static struct files files;

	files = (struct files){.dir = "/tmp/test_conditions.XXXXXX"};
	assert_non_null(mkdtemp(files.dir));
	files.dir_fd = open(files.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	files.memory.processes[0] = (struct memory_process){1, files.dir_fd};
	files.memory.nr = 1;
	files.sources = (struct condition_sources){&files.memory, -1, -1};
	*state = &files;
	return 0;
}

static int tear_down(void **state)
{
	struct files *files = *state;

	condition_sources_close(&files->sources);
	unlinkat(files->dir_fd, "status", 0);
	unlinkat(files->dir_fd, "memory.events", 0);
	unlinkat(files->dir_fd, "memory.pressure", 0);
	close(files->dir_fd);
	return rmdir(files->dir);
}

/* Checks @condition at @time_s with that memory. */
static bool check_rss(const struct files *files, struct condition *condition, uint64_t time_s,
		      uint64_t bytes)
{
	struct condition_values values;

	set_rss(files, bytes);
	values = condition_sources_read(&files->sources, time_s * SECOND);
	assert_int_equal(values.rss_bytes, bytes);
	return condition_check(condition, &values);
}

static void test_rss(void **state)
{
	const struct files *files = *state;
	struct condition condition;
	struct condition_values gone;

	assert_int_equal(condition_parse("rss=100M", &condition), 0);
	assert_false(check_rss(files, &condition, 1, 99 * MIB));
	assert_true(check_rss(files, &condition, 2, 100 * MIB));
	/* Once, until it was clearly below. */
	assert_false(check_rss(files, &condition, 3, 120 * MIB));
	assert_false(check_rss(files, &condition, 4, 95 * MIB));
	assert_false(check_rss(files, &condition, 5, 101 * MIB));
	assert_false(check_rss(files, &condition, 6, 89 * MIB));
	assert_true(check_rss(files, &condition, 7, 101 * MIB));
	/* A process that has ended has no memory to compare. */
	unlinkat(files->dir_fd, "status", 0);
	gone = condition_sources_read(&files->sources, 8 * SECOND);
	assert_true(gone.rss_bytes == UINT64_MAX);
	assert_false(condition_check(&condition, &gone));
}

static void test_growth(void **state)
{
	const struct files *files = *state;
	struct condition condition;
	uint64_t time_s = 0, bytes = 100 * MIB;

	assert_int_equal(condition_parse("rss+=60M/m", &condition), 0);
	/* 59 MiB in a minute, for an hour; the memory itself is of no matter. */
	for (; time_s < 3600; time_s++, bytes += 59 * MIB / 60 / 4096 * 4096)
		assert_false(check_rss(files, &condition, time_s, bytes));
	/* A jump. */
	bytes += 10 * MIB;
	assert_true(check_rss(files, &condition, time_s++, bytes));
	/* It counts once, until the growth is half as much. */
	for (int i = 0; i < 300; i++, time_s++, bytes += MIB)
		assert_false(check_rss(files, &condition, time_s, bytes));
	for (int i = 0; i < 61; i++, time_s++)
		assert_false(check_rss(files, &condition, time_s, bytes));
	for (int i = 0; i < 59; i++, time_s++, bytes += MIB)
		assert_false(check_rss(files, &condition, time_s, bytes));
	bytes += MIB;
	assert_true(check_rss(files, &condition, time_s, bytes));
}

/* Whether it is checked often or rarely, the growth is that of a minute. */
static void test_growth_by_interval(void **state)
{
	const struct files *files = *state;

	for (uint64_t step_s = 1; step_s <= 5; step_s++) {
		struct condition slow, fast;
		uint64_t time_s, nr_slow = 0, nr_fast = 0;

		assert_int_equal(condition_parse("rss+=70M/m", &slow), 0);
		assert_int_equal(condition_parse("rss+=50M/m", &fast), 0);
		for (time_s = 0; time_s < 600; time_s += step_s) {
			nr_slow += check_rss(files, &slow, time_s, (100 + time_s) * MIB);
			nr_fast += check_rss(files, &fast, time_s, (100 + time_s) * MIB);
		}
		assert_int_equal(nr_slow, 0);
		assert_int_equal(nr_fast, 1);
	}
}

static bool check_now(const struct files *files, struct condition *condition)
{
	const struct condition_values values = condition_sources_read(&files->sources, SECOND);

	return condition_check(condition, &values);
}

static void test_events(void **state)
{
	struct files *files = *state;
	struct condition high, max, oom;

	assert_int_equal(condition_parse("memory.high", &high), 0);
	assert_int_equal(condition_parse("memory.max", &max), 0);
	assert_int_equal(condition_parse("memory.oom", &oom), 0);
	write_file(files, "memory.events", "low 0\nhigh 7\nmax 5\noom 1\noom_kill 1\n");
	files->sources.events_fd = openat(files->dir_fd, "memory.events", O_RDONLY | O_CLOEXEC);
	/* What was there before leakrec is of no interest. */
	assert_false(check_now(files, &high) || check_now(files, &max) || check_now(files, &oom));
	write_file(files, "memory.events", "low 0\nhigh 8\nmax 5\noom 1\noom_kill 1\n");
	assert_true(check_now(files, &high));
	assert_false(check_now(files, &high) || check_now(files, &max) || check_now(files, &oom));
	write_file(files, "memory.events", "low 0\nhigh 8\nmax 6\noom 1\noom_kill 1\n");
	assert_true(check_now(files, &max));
	assert_false(check_now(files, &high) || check_now(files, &max) || check_now(files, &oom));
	/* The machine has run out of memory, not the cgroup. */
	write_file(files, "memory.events", "low 0\nhigh 8\nmax 6\noom 1\noom_kill 2\n");
	assert_true(check_now(files, &oom));
	write_file(files, "memory.events", "low 0\n");
	assert_false(check_now(files, &high) || check_now(files, &max) || check_now(files, &oom));
}

static void test_pressure(void **state)
{
	struct files *files = *state;
	struct condition condition;

	assert_int_equal(condition_parse("pressure=10%", &condition), 0);
	write_file(files, "memory.pressure", "some avg10=9.99 avg60=0.00 avg300=0.00 total=1\n");
	files->sources.pressure_fd = openat(files->dir_fd, "memory.pressure", O_RDONLY | O_CLOEXEC);
	assert_false(check_now(files, &condition));
	write_file(files, "memory.pressure", "some avg10=10.00 avg60=0.00 avg300=0.00 total=1\n");
	assert_true(check_now(files, &condition));
	assert_false(check_now(files, &condition));
	write_file(files, "memory.pressure", "nothing\n");
	assert_false(check_now(files, &condition));

	assert_int_equal(condition_sources_pressure("some avg10=0.07 avg60"), 7);
	assert_int_equal(condition_sources_pressure("some avg10=100.00 avg60"), 10000);
	assert_true(condition_sources_pressure("some avg10=") == UINT64_MAX);
	assert_true(condition_sources_pressure("some avg10=1") == UINT64_MAX);
	assert_true(condition_sources_pressure("some avg10=101.00 ") == UINT64_MAX);
	assert_true(condition_sources_pressure("full avg10=1.00 ") == UINT64_MAX);
}

/* A child that waits to be ended. */
static pid_t start_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void test_ends(void **state)
{
	struct process_ends ends = {0};
	pid_t killed = start_child(), alive = start_child(), exited;
	int ends_of_pipe[2], found;
	char byte;

	(void)state;
	assert_int_equal(pipe(ends_of_pipe), 0);
	exited = fork();
	if (exited == 0) {
		close(ends_of_pipe[1]);
		_exit(read(ends_of_pipe[0], &byte, 1) == 0 ? 3 : 4);
	}
	close(ends_of_pipe[0]);
	process_ends_add(&ends, killed, false);
	process_ends_add(&ends, exited, false);
	process_ends_add(&ends, alive, true);
	assert_int_equal(ends.nr, 3);
	assert_int_equal(process_ends_check(&ends), 0);
	kill(killed, SIGTERM);
	close(ends_of_pipe[1]);
	ends.nr = 2;
	process_ends_wait(&ends, 60000);
	ends.nr = 3;
	/* Neither has been waited for. */
	assert_int_equal(process_ends_check(&ends), SIGTERM);
	assert_int_equal(process_ends_check(&ends), 0);
	assert_int_equal(ends.nr, 1);
	/* One that its parent has waited for: known from Linux 6.15 on, and that it was forked. */
	kill(alive, SIGKILL);
	waitpid(alive, NULL, 0);
	waitpid(killed, NULL, 0);
	waitpid(exited, NULL, 0);
	found = process_ends_check(&ends);
	assert_true(found == SIGKILL || found == 0);
	assert_int_equal(ends.nr, 0);
	process_ends_deinit(&ends);
}

/* Without the right to trace a process, it is unknown how that ended before its parent waits. */
static void test_hidden_end(void **state)
{
	pid_t killed = start_child(), checks;
	struct process_ends ends = {0};
	int status;

	(void)state;
	if (geteuid() || capng_get_caps_process() ||
	    !capng_have_capability(CAPNG_PERMITTED, CAP_SYS_PTRACE))
		skip();
	process_ends_add(&ends, killed, false);
	kill(killed, SIGTERM);
	process_ends_wait(&ends, 60000);
	checks = fork();
	if (checks == 0) {
		capng_clear(CAPNG_SELECT_CAPS);
		_exit(capng_apply(CAPNG_SELECT_CAPS) ||
		      process_ends_check(&ends) != PROCESS_ENDS_UNKNOWN);
	}
	assert_int_equal(waitpid(checks, &status, 0), checks);
	assert_int_equal(status, 0);
	assert_int_equal(process_ends_check(&ends), SIGTERM);
	waitpid(killed, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_reject),
		cmocka_unit_test_setup_teardown(test_rss, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_growth, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_growth_by_interval, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pressure, set_up, tear_down),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_hidden_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
