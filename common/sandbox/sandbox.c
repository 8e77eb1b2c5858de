/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sandbox/sandbox.h"

#include "common/sandbox/unprivileged.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/interrupted.h"
#include "common/output_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_REPLY_BYTES	  (16u << 20)
#define MAX_MESSAGE_BYTES (64u << 10)
#define MEANWHILE_MS	  2
#define INTERRUPT_MS	  50

/* The pipes from the child. */
enum { REPLY, MESSAGES, NR_PIPES };

struct inflow {
	char *bytes; /* NUL-terminated */
	size_t size_bytes, max_bytes;
};

/* In the child. */

/* Without a limit under ASan, whose memory this is not. */
static void limit_memory(void)
{
#ifndef __SANITIZE_ADDRESS__
	_cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages;
	struct rlimit limit;

	if (!f || fscanf(f, "%lu", &pages) != 1)
		return;
	limit.rlim_cur = pages * (unsigned long)getpagesize() + SANDBOX_MAX_BYTES;
	limit.rlim_max = limit.rlim_cur;
	setrlimit(RLIMIT_AS, &limit);
#endif
}

/* Each part is preceded by its size. */
static int reply_part(const struct sandbox_task *task, size_t nr, int fd)
{
	_cleanup_free_ char *bytes = NULL;
	size_t size = 0;
	uint64_t header;
	FILE *reply = open_memstream(&bytes, &size);
	int err;

	if (!reply)
		return -ENOMEM;
	task->run(task->context, nr, reply);
	if (fclose(reply))
		return -ENOMEM;
	header = size;
	err = output_write_all(fd, &header, sizeof(header));
	return err ? err : output_write_all(fd, bytes, size);
}

static void __attribute__((noreturn))
work(const struct sandbox_task *task, const int fds[NR_PIPES], pid_t parent)
{
	_cleanup_free_ int *kept = calloc(task->nr_fds + 2, sizeof(*kept));

	prctl(PR_SET_NAME, "leak-analyst");
	if (!kept || dup2(fds[MESSAGES], STDERR_FILENO) < 0)
		_exit(1);
	memcpy(kept, task->fds, task->nr_fds * sizeof(*kept));
	kept[task->nr_fds] = STDERR_FILENO;
	kept[task->nr_fds + 1] = fds[REPLY];
	unprivileged_keep_only(kept, task->nr_fds + 2);
	limit_memory();
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	if (unprivileged_isolate(parent))
		_exit(1);
	for (size_t i = 0; i < task->nr_parts; i++)
		if (reply_part(task, i, fds[REPLY]))
			_exit(1);
	_exit(0);
}

/* In the parent. */

/* Reads once. Returns 1 if there may be more, 0 at the end, -E2BIG if the child says too much. */
static int read_some(int fd, struct inflow *to)
{
	char buffer[16384], *grown;
	ssize_t len = read(fd, buffer, sizeof(buffer));

	if (len < 0)
		return errno == EINTR || errno == EAGAIN;
	if (len == 0)
		return 0;
	if (to->size_bytes + (size_t)len > to->max_bytes)
		return -E2BIG;
	grown = realloc(to->bytes, to->size_bytes + (size_t)len + 1);
	if (!grown)
		return -ENOMEM;
	to->bytes = grown;
	memcpy(grown + to->size_bytes, buffer, (size_t)len);
	to->size_bytes += (size_t)len;
	grown[to->size_bytes] = '\0';
	return 1;
}

/* The child's CPU time. */
static uint64_t child_cpu_ns(clockid_t clock)
{
	struct timespec time = {0};

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* When the child is ended, if no further part of its reply is complete. */
struct deadline {
	clockid_t clock; /* the child's */
	uint64_t cpu_ns, elapsed_ns;
};

static void deadline_move(struct deadline *deadline, const struct sandbox_task *task)
{
	deadline->cpu_ns = child_cpu_ns(deadline->clock) + task->cpu_ns;
	deadline->elapsed_ns = clock_now_ns() + task->elapsed_ns;
}

static bool deadline_is_reached(const struct deadline *deadline)
{
	return child_cpu_ns(deadline->clock) > deadline->cpu_ns ||
	       clock_now_ns() > deadline->elapsed_ns;
}

/* Reads what the pipes hold. Returns how many of them ended. */
static int read_ready(struct pollfd polled[NR_PIPES], struct inflow flows[NR_PIPES])
{
	int nr_ended = 0;

	for (int i = 0; i < NR_PIPES; i++) {
		if (polled[i].fd < 0 || !polled[i].revents)
			continue;
		switch (read_some(polled[i].fd, &flows[i])) {
		case 1:
			break;
		case 0:
			polled[i].fd = -1;
			nr_ended++;
			break;
		default: /* Nothing of it is read any more. */
			return NR_PIPES;
		}
	}
	return nr_ended;
}

/*
 * Moves *@at, the end of the last complete part of what came, behind the next one. Returns false if
 * that is not complete. *@ret_from: its first byte.
 */
static bool next_part(const char *bytes, size_t size_bytes, size_t *at, size_t *ret_from)
{
	uint64_t size;

	if (size_bytes - *at < sizeof(size))
		return false;
	memcpy(&size, bytes + *at, sizeof(size));
	if (size > size_bytes - *at - sizeof(size))
		return false;
	*ret_from = *at + sizeof(size);
	*at = *ret_from + size;
	return true;
}

/* Reads what the child writes until it ends, or has used up the time of a part. */
static int read_pipes(const struct sandbox_task *task, pid_t child, const int fds[NR_PIPES],
		      struct inflow flows[NR_PIPES])
{
	struct pollfd polled[NR_PIPES] = {{.fd = fds[REPLY], .events = POLLIN},
					  {.fd = fds[MESSAGES], .events = POLLIN}};
	struct deadline deadline = {0};
	int nr_open = NR_PIPES, err = clock_getcpuclockid(child, &deadline.clock);
	size_t nr_parts = 0, at = 0, from;

	if (err)
		return -err;
	deadline_move(&deadline, task);
	while (nr_open > 0 && !deadline_is_reached(&deadline)) {
		if (is_interrupted())
			return -EINTR;
		if (poll(polled, NR_PIPES, task->meanwhile ? MEANWHILE_MS : INTERRUPT_MS) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		nr_open -= read_ready(polled, flows);
		/* Not for each byte: the child could write one now and then, for years. */
		while (nr_parts < task->nr_parts &&
		       next_part(flows[REPLY].bytes, flows[REPLY].size_bytes, &at, &from)) {
			deadline_move(&deadline, task);
			nr_parts++;
		}
		if (task->meanwhile)
			task->meanwhile(task->meanwhile_context);
	}
	return 0;
}

/* Splits the reply into its parts. What is not as this program writes it ends them. */
static int split(struct sandbox_reply *ret, size_t max_parts)
{
	size_t at = 0, from, to = 0;

	ret->part_ends = calloc(max_parts + 1, sizeof(*ret->part_ends));
	if (!ret->part_ends)
		return -ENOMEM;
	while (ret->nr_parts < max_parts && next_part(ret->bytes, ret->size_bytes, &at, &from)) {
		memmove(ret->bytes + to, ret->bytes + from, at - from);
		to += at - from;
		ret->part_ends[ret->nr_parts++] = to;
	}
	ret->size_bytes = to;
	return 0;
}

static uint64_t timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_usec * 1000;
}

static void reap(pid_t pid, struct sandbox_reply *ret)
{
	struct rusage usage = {0};

	kill(pid, SIGKILL);
	while (wait4(pid, NULL, 0, &usage) < 0 && errno == EINTR)
		;
	ret->cpu_ns = timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime);
}

int sandbox_run(const struct sandbox_task *task, struct sandbox_reply *ret)
{
	int reply[2] = {-1, -1}, messages[2] = {-1, -1};
	struct inflow flows[NR_PIPES] = {{.max_bytes = MAX_REPLY_BYTES},
					 {.max_bytes = MAX_MESSAGE_BYTES}};
	pid_t own_pid = getpid(), pid = -1;
	int err = 0;

	*ret = (struct sandbox_reply){0};
	if (pipe2(reply, O_CLOEXEC) < 0 || pipe2(messages, O_CLOEXEC) < 0)
		err = -errno;
	fflush(NULL);
	if (!err)
		pid = fork();
	if (pid == 0)
		work(task, (const int[]){reply[1], messages[1]}, own_pid);
	if (!err && pid < 0)
		err = -errno;
	close(reply[1]);
	close(messages[1]);
	if (!err) {
		err = read_pipes(task, pid, (const int[]){reply[0], messages[0]}, flows);
		reap(pid, ret);
	}
	close(reply[0]);
	close(messages[0]);
	ret->bytes = flows[REPLY].bytes;
	ret->size_bytes = flows[REPLY].size_bytes;
	ret->messages = flows[MESSAGES].bytes;
	return err ? err : split(ret, task->nr_parts);
}

void sandbox_reply_print(const struct sandbox_reply *reply)
{
	if (reply->messages)
		diag_relay(reply->messages);
}

void sandbox_reply_deinit(struct sandbox_reply *reply)
{
	free(reply->bytes);
	free(reply->part_ends);
	free(reply->messages);
	*reply = (struct sandbox_reply){0};
}
