/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a service manager is told, by a manager that is a socket of this process. */
#include "common/service/service_manager.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* Binds a socket to @name, which begins with @ or is a path. */
static int listen_as(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	memcpy(address.sun_path, name, strlen(name));
	if (*name == '@')
		address.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void assert_hears(int fd, const char *expected)
{
	char text[1024];
	ssize_t len = recv(fd, text, sizeof(text) - 1, 0);

	assert_true(len >= 0);
	text[len] = '\0';
	assert_string_equal(text, expected);
}

static void each_message_says_all(void **state)
{
	char name[64];
	struct service_manager manager;
	int fd;

	snprintf(name, sizeof(name), "@leaktools-test-%d", (int)getpid());
	fd = listen_as(name);
	service_manager_init(&manager);
	assert_null(getenv("NOTIFY_SOCKET"));
	service_manager_say(&manager, "waiting for %s", "x");
	assert_hears(fd, "WATCHDOG=1\nSTATUS=waiting for x");
	service_manager_set_ready(&manager);
	service_manager_say(&manager, "recording");
	assert_hears(fd, "READY=1\nWATCHDOG=1\nSTATUS=recording");
	service_manager_say_stopping(&manager);
	assert_hears(fd, "STOPPING=1");
	/* Nobody hears it, and nobody waits. */
	close(fd);
	service_manager_say(&manager, "recording");
	service_manager_deinit(&manager);
}

static void a_full_socket_is_not_waited_for(void **state)
{
	char path[] = "/tmp/leaktools-test-XXXXXX", name[64];
	struct service_manager manager;
	int fd;

	assert_non_null(mkdtemp(path));
	snprintf(name, sizeof(name), "%s/notify", path);
	fd = listen_as(name);
	service_manager_init(&manager);
	/* net.unix.max_dgram_qlen is 10 to 512. */
	for (int i = 0; i < 4096; i++)
		service_manager_say(&manager, "%d", i);
	assert_hears(fd, "WATCHDOG=1\nSTATUS=0");
	service_manager_deinit(&manager);
	close(fd);
	unlink(name);
	rmdir(path);
}

static uint64_t interval(const char *usec, const char *pid)
{
	struct service_manager manager;

	if (usec)
		setenv("WATCHDOG_USEC", usec, 1);
	if (pid)
		setenv("WATCHDOG_PID", pid, 1);
	service_manager_init(&manager);
	assert_null(getenv("WATCHDOG_USEC"));
	assert_null(getenv("WATCHDOG_PID"));
	assert_int_equal(manager.fd, -1);
	assert_false(service_manager_is_due(&manager, UINT64_MAX));
	return manager.every_ns;
}

static void half_of_the_watchdogs_time(void **state)
{
	char own[16];

	snprintf(own, sizeof(own), "%d", (int)getpid());
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(interval("2000000", NULL), 1000000000);
	assert_int_equal(interval("2000000", own), 1000000000);
	assert_int_equal(interval("2000000", "1"), UINT64_C(30000000000));
	assert_int_equal(interval("600000000", NULL), UINT64_C(30000000000));
	assert_int_equal(interval("0", NULL), UINT64_C(30000000000));
	assert_int_equal(interval("18446744073709551615", NULL), UINT64_C(30000000000));
	assert_int_equal(interval("x", NULL), UINT64_C(30000000000));
	assert_int_equal(interval(NULL, NULL), UINT64_C(30000000000));
}

static void sockets_that_are_none(void **state)
{
	static const char *const names[] = {"", "/", "@", "notify", "vsock:2:1234"};
	struct service_manager manager;
	char name[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		setenv("NOTIFY_SOCKET", names[i], 1);
		service_manager_init(&manager);
		assert_int_equal(manager.fd, -1);
		service_manager_say(&manager, "nothing");
	}
	memset(name, 'x', sizeof(name));
	name[0] = '/';
	name[sizeof(name) - 1] = '\0';
	setenv("NOTIFY_SOCKET", name, 1);
	service_manager_init(&manager);
	assert_int_equal(manager.fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_message_says_all),
		cmocka_unit_test(a_full_socket_is_not_waited_for),
		cmocka_unit_test(half_of_the_watchdogs_time),
		cmocka_unit_test(sockets_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
