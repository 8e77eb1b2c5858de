// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * For LD_PRELOAD into leakrec: creates the file "waiting" and waits until the test has removed it,
 * once, at the place that WAITS_AT names: "link", before the first program is linked to uprobes or
 * to a perf event; "begin", after the last one; "open", before the first perf event of a thread is
 * opened; "lease", before the first lease is taken. The file has a line: the process that uprobes
 * are about to be linked in, or 0. With NO_LEASES, no file system has leases.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ATTACH_UPROBE_MULTI   48 /* uapi/linux/bpf.h, Linux 6.6 */
#define ATTACH_UPROBE_SESSION 57 /* Linux 6.13 */

static void wait_once(const char *place, pid_t pid)
{
	static bool has_waited;
	const char *wanted = getenv("WAITS_AT");
	int fd;

	if (has_waited || !wanted || strcmp(wanted, place) != 0)
		return;
	has_waited = true;
	fd = open("waiting", O_CREAT | O_WRONLY, 0600);
	dprintf(fd, "%d\n", (int)pid);
	close(fd);
	while (access("waiting", F_OK) == 0)
		usleep(1000);
}

/* link_create.uprobe_multi of union bpf_attr: older headers do not have it. */
struct multi_attr {
	uint32_t program_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_counter_offsets, cookies;
	uint32_t nr, multi_flags, pid;
};

static bool is_multi(const struct multi_attr *attr)
{
	return attr->attach_type == ATTACH_UPROBE_MULTI ||
	       attr->attach_type == ATTACH_UPROBE_SESSION;
}

static bool is_uprobe_link(long command, const struct multi_attr *attr)
{
	return command == BPF_LINK_CREATE &&
	       (is_multi(attr) || attr->attach_type == BPF_PERF_EVENT);
}

/* Takes the place of syscall(), whose arguments it does not need to know. */
long any_syscall(long number, const void *a, const void *b, const void *c, const void *d,
		 const void *e, const void *f) __asm__("syscall");

long any_syscall(long number, const void *a, const void *b, const void *c, const void *d,
		 const void *e, const void *f)
{
	long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	const struct multi_attr *multi = b;
	static bool has_linked;

	if (number == SYS_perf_event_open && (int)(long)b > 0)
		wait_once("open", 0);
	if (number == SYS_bpf && is_uprobe_link((long)a, b)) {
		wait_once("link", is_multi(b) ? (pid_t)multi->pid : 0);
		has_linked = true;
	} else if (number == SYS_bpf && (long)a == BPF_MAP_UPDATE_ELEM && has_linked) {
		wait_once("begin", 0);
	}
	return next(number, a, b, c, d, e, f);
}

int fcntl64(int fd, int command, ...)
{
	int (*next)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl64");
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (command == F_SETLEASE)
		wait_once("lease", 0);
	if (command == F_SETLEASE && getenv("NO_LEASES")) {
		errno = EINVAL;
		return -1;
	}
	return next(fd, command, argument);
}

int fcntl(int fd, int command, ...) __attribute__((alias("fcntl64")));
