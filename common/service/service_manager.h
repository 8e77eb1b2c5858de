/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells a service manager, such as systemd, that this service has started, what it is doing, and
 * that it is still making progress (sd_notify(3), "Standalone Implementations": datagrams to the
 * socket that $NOTIFY_SOCKET names). Nobody waits for the manager: a message that it has no room
 * for is dropped, and as each has all that was said before, the next one makes up for it.
 *
 * libsystemd would do the same, but bring its code and that of its libraries into a process of
 * root's.
 */
#ifndef LEAKTOOLS_COMMON_SERVICE_MANAGER_H
#define LEAKTOOLS_COMMON_SERVICE_MANAGER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct service_manager {
	int fd; /* -1: there is no manager */
	struct sockaddr_un address;
	socklen_t address_len;
	bool is_ready;
	uint64_t every_ns, next_ns;
};

/*
 * Takes what the manager wants to be told from the environment, so that commands that this process
 * starts do not inherit it. Release with service_manager_deinit().
 */
void service_manager_init(struct service_manager *manager);
void service_manager_deinit(struct service_manager *manager);

/* From now on messages say that the service has started. */
void service_manager_set_ready(struct service_manager *manager);

/*
 * True if it is time for service_manager_say(): twice in the time in which the manager expects a
 * sign of life, and every 30 s anyway. @now_ns as in clock.h.
 */
bool service_manager_is_due(const struct service_manager *manager, uint64_t now_ns);

/*
 * Says what the service does, in one line, and that it is making progress: call it only from the
 * loop that would hang.
 */
void service_manager_say(struct service_manager *manager, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Says that the service is about to end. */
void service_manager_say_stopping(struct service_manager *manager);

#endif
