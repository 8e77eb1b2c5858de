/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/broker/broker.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

struct header {
	uint32_t op;
	int64_t number;
	uint64_t until_ns;
};

struct parcel {
	struct iovec parts[2];
	struct msghdr message;
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr alignment;
	} control;
};

static int asked_fd = -1;
static bool told_end;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

static void parcel_init(struct parcel *parcel, void *first, size_t first_size, void *second,
			size_t second_size)
{
	*parcel = (struct parcel){.parts = {{first, first_size}, {second, second_size}}};
	parcel->message.msg_iov = parcel->parts;
	parcel->message.msg_iovlen = second_size ? 2 : 1;
}

static void parcel_add_fd(struct parcel *parcel, int fd)
{
	struct cmsghdr *control;

	if (fd < 0)
		return;
	parcel->message.msg_control = parcel->control.bytes;
	parcel->message.msg_controllen = sizeof(parcel->control.bytes);
	control = CMSG_FIRSTHDR(&parcel->message);
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(control), &fd, sizeof(fd));
}

/* Returns the size that came, 0 at the end, or a negative errno. */
static ssize_t parcel_receive(struct parcel *parcel, int socket_fd, int *ret_fd)
{
	struct cmsghdr *control;
	ssize_t size;

	*ret_fd = -1;
	parcel->message.msg_control = parcel->control.bytes;
	parcel->message.msg_controllen = sizeof(parcel->control.bytes);
	do
		size = recvmsg(socket_fd, &parcel->message, MSG_CMSG_CLOEXEC);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return -errno;
	/* There is space for one descriptor: the kernel closes others. */
	control = CMSG_FIRSTHDR(&parcel->message);
	if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS &&
	    control->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(control), sizeof(int));
	return size;
}

static int parcel_send(struct parcel *parcel, int socket_fd)
{
	ssize_t size;

	do
		size = sendmsg(socket_fd, &parcel->message, MSG_NOSIGNAL);
	while (size < 0 && errno == EINTR);
	return size < 0 ? -errno : 0;
}

/* The broker. */

static int serve_one(const struct broker_service services[BROKER_NR_OPS],
		     const struct header *header, const char *text, int fd, int *ret_fd)
{
	const struct broker_request request = {
		.op = (enum broker_op)header->op,
		.number = header->number,
		.until_ns = header->until_ns,
		.text = text,
		.fd = fd,
	};

	if (header->op >= BROKER_NR_OPS || !services[header->op].serve)
		return -ENOSYS;
	return services[header->op].serve(services[header->op].context, &request, ret_fd);
}

void broker_serve(int socket_fd, const struct broker_service services[BROKER_NR_OPS])
{
	static char text[BROKER_MAX_TEXT + 1];

	for (;;) {
		_cleanup_close_ int fd = -1, answer_fd = -1;
		struct header header;
		struct parcel parcel;
		int32_t answer = -EINVAL;
		ssize_t size;

		parcel_init(&parcel, &header, sizeof(header), text, BROKER_MAX_TEXT);
		size = parcel_receive(&parcel, socket_fd, &fd);
		if (size <= 0)
			return;
		if (size >= (ssize_t)sizeof(header) && !(parcel.message.msg_flags & MSG_TRUNC)) {
			text[(size_t)size - sizeof(header)] = '\0';
			answer = serve_one(services, &header, text, fd, &answer_fd);
		}
		parcel_init(&parcel, &answer, sizeof(answer), NULL, 0);
		parcel_add_fd(&parcel, answer_fd);
		if (parcel_send(&parcel, socket_fd))
			return;
	}
}

/* The process that asks. */

void broker_use(int socket_fd)
{
	asked_fd = socket_fd;
}

pid_t broker_fork_other(int *ret_socket_fd)
{
	int fds[2], err;
	pid_t pid;

	fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
		err = -errno;
		diag_error("cannot give up privileges: no socket: %s", strerror(-err));
		return err;
	}
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		*ret_socket_fd = fds[1];
		return 0;
	}
	err = pid < 0 ? -errno : 0;
	close(fds[1]);
	if (err) {
		close(fds[0]);
		diag_error("cannot give up privileges: no process: %s", strerror(-err));
		return err;
	}
	*ret_socket_fd = fds[0];
	return pid;
}

pid_t broker_fork(int *ret_socket_fd)
{
	pid_t pid = broker_fork_other(ret_socket_fd);

	if (pid > 0)
		broker_use(*ret_socket_fd);
	return pid;
}

bool broker_is_used(void)
{
	return asked_fd >= 0;
}

void broker_leave(void)
{
	if (asked_fd >= 0)
		close(asked_fd);
	asked_fd = -1;
}

/* Once: what is missing then may be said of each file, or not at all. */
static void report_end(const char *who)
{
	if (!told_end)
		diag_warn("%s has ended: it was killed, or it failed; run this again", who);
	told_end = true;
}

static int ask(const struct broker_other *broker, const struct broker_request *request, int *ret_fd)
{
	const char *text = request->text ? request->text : "";
	struct header header = {request->op, request->number, request->until_ns};
	struct parcel parcel;
	int32_t answer = -EIO;
	ssize_t size;
	int err;

	*ret_fd = -1;
	if (strlen(text) >= BROKER_MAX_TEXT)
		return -ENAMETOOLONG;
	pthread_mutex_lock(&asking);
	parcel_init(&parcel, &header, sizeof(header), (void *)text, strlen(text) + 1);
	parcel_add_fd(&parcel, request->fd);
	err = parcel_send(&parcel, broker->socket_fd);
	parcel_init(&parcel, &answer, sizeof(answer), NULL, 0);
	size = err ? err : parcel_receive(&parcel, broker->socket_fd, ret_fd);
	if (size != sizeof(answer)) {
		report_end(broker->who);
		answer = -EIO;
	}
	pthread_mutex_unlock(&asking);
	return answer;
}

int broker_ask(const struct broker_request *request, int *ret_fd)
{
	const struct broker_other own = {asked_fd,
					 "leak-broker, which opens files for this process,"};

	return ask(&own, request, ret_fd);
}

int broker_relay(void *context, const struct broker_request *request, int *ret_fd)
{
	return ask(context, request, ret_fd);
}

int broker_open(enum broker_op op, const char *text, struct stat *ret_stat)
{
	const struct broker_request request = {.op = op, .text = text, .fd = -1};
	_cleanup_close_ int fd = -1;
	int err = broker_ask(&request, &fd);

	if (ret_stat)
		*ret_stat = (struct stat){0};
	if (err < 0)
		return err;
	if (fd < 0 || (ret_stat && fstat(fd, ret_stat) < 0))
		return -EIO;
	return steal_fd(fd);
}
