/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/service/service_manager.h"

#include "common/clock.h"
#include "common/number.h"
#include "common/scope.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define SAY_EVERY_NS UINT64_C(30000000000)

/* Only paths and abstract names. Returns false for anything else. */
static bool set_address(struct service_manager *manager, const char *name)
{
	size_t len = strlen(name);

	if ((*name != '/' && *name != '@') || len < 2 || len >= sizeof(manager->address.sun_path))
		return false;
	manager->address.sun_family = AF_UNIX;
	memcpy(manager->address.sun_path, name, len);
	if (*name == '@')
		manager->address.sun_path[0] = '\0';
	manager->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return true;
}

/* Half of the time after which the manager ends a silent process; or the usual time. */
static uint64_t interval_ns(void)
{
	const char *pid = getenv("WATCHDOG_PID"), *usec = getenv("WATCHDOG_USEC");
	uint64_t number;

	if (pid && (number_parse(pid, &number) || number != (uint64_t)getpid()))
		return SAY_EVERY_NS;
	if (!usec || number_parse(usec, &number) || !number || number >= SAY_EVERY_NS / 500)
		return SAY_EVERY_NS;
	return number * 500;
}

void service_manager_init(struct service_manager *manager)
{
	static const char *const taken[] = {"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"};
	const char *name = getenv("NOTIFY_SOCKET");

	*manager = (struct service_manager){.fd = -1, .every_ns = interval_ns()};
	if (name && set_address(manager, name))
		manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		unsetenv(taken[i]);
}

void service_manager_deinit(struct service_manager *manager)
{
	if (manager->fd >= 0)
		close(manager->fd);
	manager->fd = -1;
}

void service_manager_set_ready(struct service_manager *manager)
{
	manager->is_ready = true;
}

bool service_manager_is_due(const struct service_manager *manager, uint64_t now_ns)
{
	return manager->fd >= 0 && now_ns >= manager->next_ns;
}

/* By its name, not connected: the manager may be started again. */
static void send_text(const struct service_manager *manager, const char *text)
{
	sendto(manager->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
	       (const struct sockaddr *)&manager->address, manager->address_len);
}

void service_manager_say(struct service_manager *manager, const char *format, ...)
{
	char text[512];
	va_list args;
	int len;

	if (manager->fd < 0)
		return;
	len = snprintf(text, sizeof(text),
		       "%sWATCHDOG=1\nSTATUS=", manager->is_ready ? "READY=1\n" : "");
	va_start(args, format);
	vsnprintf(text + len, sizeof(text) - (size_t)len, format, args);
	va_end(args);
	send_text(manager, text);
	manager->next_ns = clock_now_ns() + manager->every_ns;
}

void service_manager_say_stopping(struct service_manager *manager)
{
	if (manager->fd >= 0)
		send_text(manager, "STOPPING=1");
}
