/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks whose only pointers are in the kernel. "truth not-seen LIST" says in which places of that
 * kind leakscan must say that it cannot look.
 */
#include "reach.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static REACH_CASE void send_block(const char *name, int fd)
{
	void *block = block_of(24);

	expect(name, "lost", block);
	if (write(fd, &block, sizeof(block)) != sizeof(block))
		abort();
}

static REACH_CASE void pipes(void)
{
	int full[2], empty[2];

	if (pipe(full) || pipe(empty))
		abort();
	send_block("in-pipe", full[1]);
}

static REACH_CASE void sockets(void)
{
	int full[2], empty[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, full) || socketpair(AF_UNIX, SOCK_DGRAM, 0, empty))
		abort();
	send_block("in-socket", full[1]);
}

/* Nobody but the kernel has its address. */
static REACH_CASE void signal_stack(void)
{
	stack_t stack = {.ss_size = 65536};

	expect("signal-stack", "lost", stack.ss_sp = block_of(stack.ss_size));
	if (sigaltstack(&stack, NULL))
		abort();
}

/* Not everywhere are they allowed. A FUSE server has the handles of open files in the kernel. */
static REACH_CASE void requests(void)
{
	struct io_uring_params params = {0};
	aio_context_t context = 0;
	bool has_ring = syscall(SYS_io_uring_setup, 1, &params) >= 0;
	bool has_aio = syscall(SYS_io_setup, 1, &context) == 0;

	bool has_fuse = open("/dev/fuse", O_RDWR) >= 0;

	printf("truth not-seen 1 pipe with unread bytes, 1 socket with unread bytes%s%s%s\n",
	       has_ring ? ", 1 io_uring" : "", has_aio ? ", 1 AIO context" : "",
	       has_fuse ? ", 1 FUSE device" : "");
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	pipes();
	sockets();
	signal_stack();
	requests();
	wait_for_line();
	return 0;
}
