// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * For LD_PRELOAD into leakrec: before the first uprobe_multi link is created, creates the file
 * "linking" and waits until the test has removed it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ATTACH_UPROBE_MULTI   48 /* uapi/linux/bpf.h, Linux 6.6 */
#define ATTACH_UPROBE_SESSION 57 /* Linux 6.13 */

static void wait_once(uint32_t attach_type)
{
	static bool has_waited;

	if (has_waited ||
	    (attach_type != ATTACH_UPROBE_MULTI && attach_type != ATTACH_UPROBE_SESSION))
		return;
	has_waited = true;
	close(open("linking", O_CREAT | O_WRONLY, 0600));
	while (access("linking", F_OK) == 0)
		usleep(1000);
}

/* Takes the place of syscall(), whose arguments it does not need to know. */
long any_syscall(long number, const void *a, const void *b, const void *c, const void *d,
		 const void *e, const void *f) __asm__("syscall");

long any_syscall(long number, const void *a, const void *b, const void *c, const void *d,
		 const void *e, const void *f)
{
	long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	const union bpf_attr *attr = b;

	if (number == SYS_bpf && (long)a == BPF_LINK_CREATE)
		wait_once(attr->link_create.attach_type);
	return next(number, a, b, c, d, e, f);
}
