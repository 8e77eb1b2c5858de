/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command of --on-leak: what it gets, how many run, and what ends it. */
#include "report/watch/leak_command.h"

#include "common/broker/broker.h"
#include "common/clock.h"
#include "common/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define FOREVER_NS UINT64_MAX

static struct leak_command *create(const char *text, uint64_t max_run_ns)
{
	struct leak_command *command;

	assert_int_equal(leak_command_create(text, max_run_ns, 0, &command), 0);
	return command;
}

static char directory[40];

/* A directory with a script, which is the current one. */
static void make_script(const char *lines)
{
	FILE *script;

	snprintf(directory, sizeof(directory), "/tmp/test_leak_command_XXXXXX");
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chdir(directory), 0);
	script = fopen("script", "w");
	assert_non_null(script);
	fprintf(script, "#!/bin/sh\n%s\n", lines);
	assert_int_equal(fclose(script), 0);
	assert_int_equal(chmod("script", 0700), 0);
}

static int remove_script(void **state)
{
	return remove("script") || remove("result") || chdir("/") || rmdir(directory);
}

static void assert_result(const char *expected)
{
	char text[256] = "";
	FILE *result = fopen("result", "r");
	size_t nr;

	assert_non_null(result);
	nr = fread(text, 1, sizeof(text) - 1, result);
	text[nr] = '\0';
	fclose(result);
	assert_string_equal(text, expected);
}

static void run_once(const char *text, const char *input)
{
	struct leak_command *command = create(text, 60000000000);

	assert_int_equal(leak_command_start(command, input, strlen(input)), 0);
	assert_true(leak_command_wait(command, 1, FOREVER_NS));
	leak_command_destroy(command);
}

static void test_input_and_words(void **state)
{
	make_script("echo \"$#:$1:$2\" >result; cat >>result");
	run_once(" ./script\t$(id)  '*", "the cause\n");
	assert_result("2:$(id):'*\nthe cause\n");
}

/* The last digits are the signals up to 28. glibc has all that it spawns ignore two of its own. */
static void test_descriptors_and_signals(void **state)
{
	int fd = open("/dev/null", O_RDONLY);

	assert_true(fd > 2 && dup2(fd, 77) == 77);
	signal(SIGPIPE, SIG_IGN);
	make_script("test -e /proc/$$/fd/77 && echo inherited >result\n"
		    "grep -o 'SigIgn\\|.......$' /proc/$$/status | grep -A 1 SigIgn >>result");
	run_once("./script", "");
	assert_result("SigIgn\n0000000\n");
	close(77);
	close(fd);
}

/* To start them all takes a moment, too: the first one must not have run for too long by then. */
static void test_few_run_and_not_for_ever(void **state)
{
	struct leak_command *command = create("sleep 1000", 3000000000);

	for (int i = 0; i < LEAK_COMMAND_MAX_RUNNING; i++)
		assert_int_equal(leak_command_start(command, "", 0), 0);
	assert_int_equal(leak_command_start(command, "", 0), -EAGAIN);
	assert_false(leak_command_wait(command, 1, clock_now_ns()));
	assert_true(leak_command_wait(command, 1, FOREVER_NS));
	leak_command_destroy(command);
}

/* What it has started ends with it. */
static void test_its_children_are_killed(void **state)
{
	struct leak_command *command;

	make_script("sleep 1000 & echo $! >result; wait");
	command = create("./script", 3000000000);
	assert_int_equal(leak_command_start(command, "", 0), 0);
	assert_true(leak_command_wait(command, 1, FOREVER_NS));
	leak_command_destroy(command);
	assert_int_equal(system("pid=$(cat result); for i in $(seq 100); do "
				"test ! -e /proc/$pid && exit; "
				"grep -q '^State:.[ZX]' /proc/$pid/status && exit; "
				"sleep 0.1; done; exit 1"),
			 0);
}

/* Whoever has taken over the process that asks cannot keep its broker for ever. */
static void test_requests_to_wait(void **state)
{
	struct leak_command *command = create("true", 60000000000);
	struct broker_request request = {BROKER_WAIT_FOR_COMMAND, .until_ns = FOREVER_NS, .fd = -1};
	int no_fd = -1;

	for (request.number = -1; request.number < 1; request.number++)
		assert_int_equal(leak_command_serve_wait(command, &request, &no_fd), -EINVAL);
	assert_int_equal(leak_command_serve_wait(command, &request, &no_fd), 1);
	leak_command_destroy(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_input_and_words, remove_script),
		cmocka_unit_test_teardown(test_descriptors_and_signals, remove_script),
		cmocka_unit_test(test_few_run_and_not_for_ever),
		cmocka_unit_test_teardown(test_its_children_are_killed, remove_script),
		cmocka_unit_test(test_requests_to_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
