/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes any bytes as the requests that a process without rights sends to its broker. The first two
 * bytes say how long the first request is, then it comes, and so on; bit 15: with a descriptor.
 */
#include "common/broker/broker.h"
#include "common/scope.h"
#include "plot/gnuplot/gnuplot_services.h"
#include "report/live/live_state.h"
#include "report/watch/leak_command.h"
#include "unwind/modules/file_services.h"
#include "unwind/names/jit_names.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libelf.h>

#define MAX_REQUESTS 64
#define HAS_FD	     0x8000

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct broker_service services[BROKER_NR_OPS];
static char directory[] = "/tmp/fuzz_broker_XXXXXX";
static int sockets[2];

static void remove_directory(void)
{
	rmdir(directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	/* A name that requests do not fit: nothing is written. */
	static const struct gnuplot_services gnuplot = {.save = directory, .name = "/"};
	static struct leak_command *command;

	(void)argc;
	(void)argv;
	signal(SIGPIPE, SIG_IGN);
	elf_version(EV_CURRENT);
	/* No gnuplot, no command and no server: nothing is started or connected to. */
	unsetenv("DEBUGINFOD_URLS");
	setenv("PATH", directory, 1);
	if (!mkdtemp(directory) || atexit(remove_directory) ||
	    leak_command_create("none", 1, 0, &command))
		abort();
	file_services_add(services, directory);
	gnuplot_services_add(services, &gnuplot);
	services[BROKER_OPEN_JIT_NAMES] = (struct broker_service){jit_names_serve, directory};
	services[BROKER_OPEN_INPUT] = (struct broker_service){live_state_serve, directory};
	services[BROKER_START_COMMAND] = (struct broker_service){leak_command_serve_start, command};
	services[BROKER_COMMAND_RESULT] =
		(struct broker_service){leak_command_serve_result, command};
	services[BROKER_WAIT_FOR_COMMAND] =
		(struct broker_service){leak_command_serve_wait, command};
	return 0;
}

static void send_request(const uint8_t *data, size_t size, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr alignment;
	} control = {0};
	struct iovec part = {(void *)data, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		control.alignment.cmsg_level = SOL_SOCKET;
		control.alignment.cmsg_type = SCM_RIGHTS;
		control.alignment.cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(&control.alignment), &fd, sizeof(fd));
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
	}
	/* The queue is full, or the broker takes an empty message for the end. */
	(void)sendmsg(sockets[0], &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Each answer is a number, and what it passes on is a file to read. */
static void *take_answers(void *context)
{
	int32_t answer;

	(void)context;
	/* What does not fit is cut off, and the kernel closes descriptors. */
	while (recv(sockets[0], &answer, sizeof(answer), 0) > 0)
		continue;
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("given", MFD_CLOEXEC);
	pthread_t thread;

	if (fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		abort();
	for (int i = 0; i < MAX_REQUESTS && size >= 2; i++) {
		unsigned int head = (unsigned int)data[0] | (unsigned int)data[1] << 8;
		size_t len = head & (HAS_FD - 1);

		data += 2;
		size -= 2;
		len = len < size ? len : size;
		send_request(data, len, head & HAS_FD ? fd : -1);
		data += len;
		size -= len;
	}
	if (pthread_create(&thread, NULL, take_answers, NULL))
		abort();
	shutdown(sockets[0], SHUT_WR);
	broker_serve(sockets[1], services);
	gnuplot_services_end();
	close(sockets[1]);
	pthread_join(thread, NULL);
	close(sockets[0]);
	return 0;
}
