/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What leakplot's broker does for a process that may ask for anything. */
#include "common/broker/broker.h"
#include "common/scope.h"
#include "plot/gnuplot/gnuplot.h"
#include "plot/gnuplot/gnuplot_services.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/test_gnuplot_services_XXXXXX";

static int ask(enum broker_op op, int64_t number, int given_fd)
{
	const struct broker_request request = {.op = op, .number = number, .fd = given_fd};
	int fd, answer = broker_ask(&request, &fd);

	if (fd >= 0)
		close(fd);
	return answer;
}

static void test_bad_requests(void **state)
{
	(void)state;
	assert_int_equal(ask(BROKER_END_GNUPLOT, 0, -1), -ECHILD);
	assert_int_equal(ask(BROKER_START_GNUPLOT, GNUPLOT_OURS, -1), -EBADF);
	assert_int_equal(ask(BROKER_START_GNUPLOT, GNUPLOT_WINDOW, -1), -EPERM);
	assert_int_equal(ask(BROKER_START_GNUPLOT, GNUPLOT_NR_GROUPS, -1), -EINVAL);
	assert_int_equal(ask(BROKER_START_GNUPLOT, INT64_MIN, -1), -EINVAL);
	assert_int_equal(ask(BROKER_GIVE_TO_GNUPLOT, 0, 1), -EINVAL);
	assert_int_equal(ask(BROKER_GIVE_TO_GNUPLOT, GNUPLOT_NR_DESCRIPTORS, 1), -EINVAL);
	assert_int_equal(ask(BROKER_GIVE_TO_GNUPLOT, INT64_MIN, 1), -EINVAL);
	assert_int_equal(ask(BROKER_GIVE_TO_GNUPLOT, GNUPLOT_OUTPUT, -1), -EBADF);
}

static void test_one_at_a_time(void **state)
{
	struct gnuplot first, second;
	char output[16] = "";
	FILE *file = tmpfile();

	(void)state;
	assert_non_null(file);
	assert_int_equal(gnuplot_start(&first, GNUPLOT_OURS), 0);
	assert_int_equal(gnuplot_start(&second, GNUPLOT_OURS), -EALREADY);
	fputs("set print '-'\nprint 6 * 7\n", first.program);
	assert_int_equal(gnuplot_finish(&first, fileno(file)), 0);
	rewind(file);
	assert_true(fread(output, 1, sizeof(output) - 1, file) > 0);
	assert_string_equal(output, "42\n");
	fclose(file);
	assert_int_equal(ask(BROKER_END_GNUPLOT, 0, -1), -ECHILD);
	assert_int_equal(gnuplot_start(&second, GNUPLOT_OWN), 0);
	fputs("pause 1000\n", second.program);
	gnuplot_stop(&second);
}

static const char *const owned[] = {"leaks.gnuplot", "leaks-a.dat", "leaks-series0.dat"};

static const char *const others[] = {
	"",
	".",
	"..",
	"leaks",
	"leaks-",
	"leaks.",
	"leaks.png",
	"leaks.dat.sh",
	"held.gnuplot",
	"../leaks.gnuplot",
	"leaks-/../../x.dat",
	"leaks-\n.dat",
	"/tmp/leaks.dat",
	("leaks-0123456789012345678901234567890123456789012345678901234567890123456789"
	 "0123456789012345678901234567890123456789012345678901234567890123456789.dat"),
};

static void test_saved_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(owned); i++) {
		char path[128];
		int fd = broker_open(BROKER_OPEN_SAVED, owned[i], NULL);

		assert_true(fd >= 0);
		close(fd);
		snprintf(path, sizeof(path), "%s/%s", directory, owned[i]);
		assert_int_equal(unlink(path), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(broker_open(BROKER_OPEN_SAVED, others[i], NULL), -EPERM);
}

int main(void)
{
	const struct gnuplot_services options = {.save = directory, .name = "leaks"};
	struct broker_service services[BROKER_NR_OPS] = {0};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_saved_files),
	};
	int fds[2], result;
	pid_t pid;

	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(directory) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		gnuplot_services_add(services, &options);
		broker_serve(fds[1], services);
		gnuplot_services_end();
		_exit(0);
	}
	close(fds[1]);
	broker_use(fds[0]);
	result = cmocka_run_group_tests(tests, NULL, NULL);
	broker_leave();
	waitpid(pid, NULL, 0);
	rmdir(directory);
	return result;
}
