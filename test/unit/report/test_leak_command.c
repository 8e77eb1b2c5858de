/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command of --on-leak: what it gets, how many run, what ends it, and what if it fails. */
#include "report/watch/alerts.h"
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
	assert_int_equal(leak_command_result(command, 0), 0);
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

static void test_failure_is_seen_where_children_were_ignored(void **state)
{
	struct leak_command *command;

	signal(SIGCHLD, SIG_IGN);
	command = create("false", 60000000000);
	assert_int_equal(leak_command_start(command, "", 0), 0);
	assert_true(leak_command_wait(command, 1, FOREVER_NS));
	assert_int_equal(leak_command_result(command, 0), 1);
	leak_command_destroy(command);
}

/* To start them all takes a moment, too: the first one must not have run for too long by then. */
static void test_few_run_and_not_for_ever(void **state)
{
	struct leak_command *command = create("sleep 1000", 3000000000);

	for (int i = 0; i < LEAK_COMMAND_MAX_RUNNING; i++)
		assert_int_equal(leak_command_start(command, "", 0), i);
	assert_int_equal(leak_command_start(command, "", 0), -EBUSY);
	assert_int_equal(leak_command_result(command, 0), -EAGAIN);
	assert_false(leak_command_wait(command, 1, clock_now_ns()));
	assert_true(leak_command_wait(command, 1, FOREVER_NS));
	/* Until somebody knows that they were killed, none takes their places. */
	assert_int_equal(leak_command_start(command, "", 0), -EBUSY);
	assert_int_equal(leak_command_result(command, 2), 1);
	assert_int_equal(leak_command_result(command, 2), -EINVAL);
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
	for (request.number = -1; request.number <= LEAK_COMMAND_MAX_RUNNING; request.number++)
		assert_int_equal(leak_command_serve_result(command, &request, &no_fd), -EINVAL);
	request.number = 1;
	assert_int_equal(leak_command_serve_wait(command, &request, &no_fd), 1);
	leak_command_destroy(command);
}

/* --- Alerts --- */

static int note_given(void *context, char *name)
{
	assert_string_equal(name, "cause");
	free(name);
	++*(int *)context;
	return 0;
}

static struct alerts *give(uint64_t pause_ns, int *nr_given)
{
	const struct alerts_options options = {"./script", 1, pause_ns, note_given, nr_given};
	struct alerts *alerts;

	assert_int_equal(alerts_create(&options, &alerts), 0);
	assert_int_equal(alerts_give(alerts, strdup("text\n"), 5, strdup("cause"), 0), 0);
	return alerts;
}

/* It is the same alert, whatever has failed before. */
static void test_a_failed_alert_is_given_later(void **state)
{
	struct alerts *alerts;
	int nr_given = 0;

	make_script("cat >>result; test -e good");
	assert_int_equal(rename("script", "not yet"), 0);
	alerts = give(0, &nr_given);
	assert_int_equal(alerts_go_on(alerts, 0), 0);
	assert_int_equal(rename("not yet", "script"), 0);
	assert_int_equal(alerts_go_on(alerts, 0), 0);
	assert_int_equal(alerts_finish(alerts, FOREVER_NS), 0);
	assert_result("text\n");
	assert_int_equal(nr_given, 0);
	assert_int_equal(close(open("good", O_CREAT, 0600)), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(alerts_go_on(alerts, 0), 0);
		assert_int_equal(alerts_finish(alerts, FOREVER_NS), 0);
	}
	assert_result("text\ntext\n");
	assert_int_equal(nr_given, 1);
	assert_int_equal(remove("good"), 0);
	alerts_destroy(alerts);
}

static void test_a_failed_alert_waits_and_is_tried_at_the_end(void **state)
{
	struct alerts *alerts;
	int nr_given = 0;

	make_script("cat >>result; false");
	alerts = give(FOREVER_NS / 1024, &nr_given);
	assert_int_equal(alerts_finish(alerts, FOREVER_NS), 0);
	assert_int_equal(alerts_go_on(alerts, 0), 0);
	assert_int_equal(alerts_finish(alerts, FOREVER_NS), 0);
	assert_result("text\n");
	assert_int_equal(alerts_go_on(alerts, FOREVER_NS), 0);
	assert_int_equal(alerts_finish(alerts, FOREVER_NS), 0);
	assert_result("text\ntext\n");
	assert_int_equal(nr_given, 0);
	alerts_destroy(alerts);
}

static void test_a_failed_alert_is_given_up(void **state)
{
	struct alerts *alerts;
	int nr_given = 0;

	make_script("printf x >>result; false");
	alerts = give(0, &nr_given);
	for (int i = 0; i < 2 * ALERT_MAX_FAILURES; i++) {
		assert_int_equal(alerts_finish(alerts, FOREVER_NS), 0);
		assert_int_equal(alerts_go_on(alerts, 0), 0);
	}
	assert_result("xxxxxxxx");
	assert_int_equal(nr_given, 0);
	alerts_destroy(alerts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_input_and_words, remove_script),
		cmocka_unit_test_teardown(test_descriptors_and_signals, remove_script),
		cmocka_unit_test(test_failure_is_seen_where_children_were_ignored),
		cmocka_unit_test(test_few_run_and_not_for_ever),
		cmocka_unit_test_teardown(test_its_children_are_killed, remove_script),
		cmocka_unit_test(test_requests_to_wait),
		cmocka_unit_test_teardown(test_a_failed_alert_is_given_later, remove_script),
		cmocka_unit_test_teardown(test_a_failed_alert_waits_and_is_tried_at_the_end,
					  remove_script),
		cmocka_unit_test_teardown(test_a_failed_alert_is_given_up, remove_script),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
