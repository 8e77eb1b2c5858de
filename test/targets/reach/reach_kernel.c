/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks whose only pointers are in the kernel. "truth not-seen LIST" says in which places of that
 * kind leakscan must say that it cannot look. With an argument, the io_uring is mapped, and its
 * descriptor closed.
 */
#include "threads.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

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

/* A daemon's parent may have made the pair. Here a child does so that has the same descriptors. */
static REACH_CASE void sockets_of_ended(void)
{
	const int made[] = {100, 101};
	pid_t child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	int pair[2];

	if (child == 0)
		_exit(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || dup2(pair[0], made[0]) < 0 ||
		      dup2(pair[1], made[1]) < 0 || close(pair[0]) || close(pair[1]));
	if (child < 0 || waitpid(child, NULL, 0) != child)
		abort();
	send_block("in-socket-of-ended", made[1]);
}

/* Nobody but the kernel has its address. */
static REACH_CASE void signal_stack(void)
{
	stack_t stack = {.ss_size = 65536};

	expect("signal-stack", "lost", stack.ss_sp = block_of(stack.ss_size));
	if (sigaltstack(&stack, NULL))
		abort();
}

/* Of this pipe, a thread has the one end, and the others have the other. */
static int halves[2];

/* A copy of what the process has. */
static REACH_CASE void *has_own_table(void *unused)
{
	if (unshare(CLONE_FILES) || close(halves[0]))
		abort();
	sleep_for_ever();
	return unused;
}

static REACH_CASE void pipe_between_tables(void)
{
	if (pipe(halves))
		abort();
	send_block("in-pipe-between-tables", halves[1]);
	start_and_wait(has_own_table);
	close(halves[1]);
}

/* Not everywhere are they allowed. A FUSE server has the handles of open files in the kernel. */
static REACH_CASE void requests(bool close_ring)
{
	struct io_uring_params params = {0};
	aio_context_t context = 0;
	int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
	bool has_aio = syscall(SYS_io_setup, 1, &context) == 0;
	bool has_fuse = open("/dev/fuse", O_RDWR) >= 0;

	/* As io_uring_close_ring_fd() does. */
	if (close_ring && ring >= 0) {
		if (mmap(NULL, params.sq_entries * sizeof(struct io_uring_sqe),
			 PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES) == MAP_FAILED)
			abort();
		close(ring);
	}
	printf("truth not-seen 2 pipes with unread bytes, 2 sockets with unread bytes%s%s%s%s\n",
	       ring >= 0 ? ", 1 io_uring" : "", has_aio ? ", 1 AIO context" : "",
	       has_fuse ? ", 1 FUSE device" : "",
	       /* Before Linux 6.9, what is the thread's cannot be shared. */
	       syscall(SYS_pidfd_open, gettid(), O_EXCL) < 0 ? ", pipes and sockets" : "");
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	sem_init(&ready, 0, 0);
	pipes();
	sockets();
	sockets_of_ended();
	signal_stack();
	requests(argc > 1);
	pipe_between_tables();
	wait_for_line();
	(void)argv;
	return 0;
}
