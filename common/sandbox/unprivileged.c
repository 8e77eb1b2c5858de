/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sandbox/unprivileged.h"

#include "common/diag.h"
#include "common/number.h"
#include "common/sandbox/capabilities.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The id in the environment variable that sudo sets; false: there is none. */
static bool sudo_id(const char *name, uint64_t *ret)
{
	const char *text = getenv(name);

	return text && number_parse(text, ret) == 0 && *ret < UINT32_MAX;
}

/* Returns 0 or a negative errno. */
static int drop_capabilities(void)
{
	capng_clear(CAPNG_SELECT_BOTH);
	if (capabilities_apply() < 0 && geteuid() == 0)
		return -EPERM;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

void unprivileged_drop_capabilities(const char *who)
{
	capng_clear(CAPNG_SELECT_BOTH);
	if (capabilities_apply() < 0 && geteuid() == 0)
		diag_warn("%s keeps its capabilities: they cannot be dropped", who);
}

int unprivileged_become(void)
{
	int err = drop_capabilities();

	if (err)
		diag_error("cannot give up privileges before the analysis: %s", strerror(-err));
	return err;
}

int unprivileged_read_only(bool as_caller)
{
	static const unsigned int kept[] = {CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE,
					    CAP_CHECKPOINT_RESTORE};
	bool known = capng_get_caps_process() == 0, has[ARRAY_SIZE(kept)];
	uint64_t uid, gid;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		has[i] = known && capng_have_capability(CAPNG_PERMITTED, kept[i]);
	/* With an empty bounding set, a program of root's gets no capabilities either. */
	capng_clear(CAPNG_SELECT_BOTH);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (has[i])
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, kept[i]);
	if (as_caller && geteuid() == 0 && sudo_id("SUDO_UID", &uid) && sudo_id("SUDO_GID", &gid))
		return capng_change_id((int)uid, (int)gid,
				       CAPNG_DROP_SUPP_GRP | CAPNG_CLEAR_BOUNDING)
			       ? -EPERM
			       : 0;
	/* Who is not root has nothing to give up. */
	return capabilities_apply() < 0 && geteuid() == 0 ? -EPERM : 0;
}

/*
 * The user of Debian, Fedora and the kernel (DEFAULT_OVERFLOWUID, include/linux/highuid.h) that
 * owns nothing. A user namespace may lack it, and leakrec that records may not change users any
 * more: then the capabilities are given up, and system calls are refused, all the same.
 */
#define NOBODY 65534

static bool become_nobody(void)
{
	return geteuid() == 0 && setgroups(0, NULL) == 0 &&
	       setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0;
}

/* Nothing that opens, connects, signals, or changes another process. */
static const int allowed[] = {
	SCMP_SYS(read),
	SCMP_SYS(pread64),
	SCMP_SYS(lseek),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(close),
	SCMP_SYS(fstat),
	SCMP_SYS(fstatfs),
	SCMP_SYS(brk),
	SCMP_SYS(mmap),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(futex),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(getrandom),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigpending),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(sched_yield),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(sigaltstack), /* for AddressSanitizer */
};

/* A reader of recordings has threads, and writes to terminals and to its broker's socket. */
static const int allowed_to_reader[] = {
	SCMP_SYS(mprotect),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(nanosleep),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(readv),
	SCMP_SYS(pwrite64),
	SCMP_SYS(getdents64), /* a directory of segments */
	SCMP_SYS(dup2),
	SCMP_SYS(dup3),
	SCMP_SYS(geteuid),
	SCMP_SYS(sendmsg),
	SCMP_SYS(recvmsg),
	SCMP_SYS(memfd_create),
	SCMP_SYS(wait4), /* for its broker */
	SCMP_SYS(pipe2), /* leakplot: gnuplot's script, and the end of its window */
	SCMP_SYS(signalfd4),
};

/* Values of one argument with which a system call is allowed. */
struct argument_rule {
	int number;
	unsigned int argument;
	uint64_t mask, value;
};

static const struct argument_rule rules[] = {
	/* glibc's fstat() from 2.33 on. */
	{SCMP_SYS(newfstatat), 3, UINT64_MAX, AT_EMPTY_PATH},
	{SCMP_SYS(fcntl), 1, UINT64_MAX, F_DUPFD_CLOEXEC},
};

/*
 * glibc from 2.42 on uses TCGETS2 (0x2a), TCSETS2, TCSETSW2 and TCSETSF2
 * (uapi/asm-generic/ioctls.h). Their struct, of 44 bytes, is in <asm/termbits.h>, which excludes
 * <termios.h>.
 */
#define TERMIOS2_IOCTL(direction, number) _IOC(direction, 'T', number, 44)

static const struct argument_rule reader_rules[] = {
	{SCMP_SYS(fcntl), 1, UINT64_MAX, F_GETFL},
	{SCMP_SYS(fcntl), 1, UINT64_MAX, F_SETFD}, /* fdopendir() */
	{SCMP_SYS(fcntl), 1, UINT64_MAX, F_SETPIPE_SZ},
	{SCMP_SYS(ioctl), 1, UINT64_MAX, TCGETS},
	{SCMP_SYS(ioctl), 1, UINT64_MAX, TERMIOS2_IOCTL(_IOC_READ, 0x2a)},
	{SCMP_SYS(ioctl), 1, UINT64_MAX, TIOCGWINSZ},
	{SCMP_SYS(clone), 0, CLONE_THREAD, CLONE_THREAD},
};

/* What draws on a terminal changes its settings, and restores them. */
static const struct argument_rule drawing_rules[] = {
	{SCMP_SYS(ioctl), 1, UINT64_MAX, TCSETS},
	{SCMP_SYS(ioctl), 1, UINT64_MAX, TCSETSW},
	{SCMP_SYS(ioctl), 1, UINT64_MAX, TCSETSF},
	{SCMP_SYS(ioctl), 1, UINT64_MAX, TERMIOS2_IOCTL(_IOC_WRITE, 0x2b)},
	{SCMP_SYS(ioctl), 1, UINT64_MAX, TERMIOS2_IOCTL(_IOC_WRITE, 0x2c)},
	{SCMP_SYS(ioctl), 1, UINT64_MAX, TERMIOS2_IOCTL(_IOC_WRITE, 0x2d)},
};

static int allow(scmp_filter_ctx filter, const int *numbers, size_t nr,
		 const struct argument_rule *arguments, size_t nr_arguments)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, numbers[i], 0);
	for (size_t i = 0; i < nr_arguments && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, arguments[i].number, 1,
				       SCMP_CMP(arguments[i].argument, SCMP_CMP_MASKED_EQ,
						arguments[i].mask, arguments[i].value));
	return err;
}

static int limit_syscalls(bool is_reader, bool draws)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = filter ? 0 : -ENOMEM;

	if (!err)
		err = allow(filter, allowed, ARRAY_SIZE(allowed), rules, ARRAY_SIZE(rules));
	if (!err && is_reader)
		err = allow(filter, allowed_to_reader, ARRAY_SIZE(allowed_to_reader), reader_rules,
			    ARRAY_SIZE(reader_rules));
	if (!err && draws)
		err = allow(filter, NULL, 0, drawing_rules, ARRAY_SIZE(drawing_rules));
	/*
	 * Before 5.16, the kernel by default slows a filtered process down, for what shares its
	 * memory with hostile code (Documentation/admin-guide/hw-vuln/spectre.rst).
	 */
	if (!err && is_reader)
		err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	/* Its flags are in memory, which no filter reads. glibc then uses clone(). */
	if (!err && is_reader)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

/* What a program needs neither to draw nor to show a window: it could reach other processes. */
static const int refused_to_program[] = {
	SCMP_SYS(tkill),
	SCMP_SYS(rt_sigqueueinfo),
	SCMP_SYS(rt_tgsigqueueinfo),
	SCMP_SYS(pidfd_send_signal),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
	SCMP_SYS(mount),
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(add_key),
	SCMP_SYS(keyctl),
	SCMP_SYS(request_key),
};

/* What may be left to it. */
enum {
	MAY_CONNECT = 1,
	MAY_FORK = 2,
	MAY_EXECUTE = 4,
};

static const struct {
	int number, right;
} rights[] = {
	{SCMP_SYS(socket), MAY_CONNECT},   {SCMP_SYS(fork), MAY_FORK},
	{SCMP_SYS(vfork), MAY_FORK},	   {SCMP_SYS(execve), MAY_EXECUTE},
	{SCMP_SYS(execveat), MAY_EXECUTE},
};

static int refuse(scmp_filter_ctx filter, int may)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(refused_to_program) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), refused_to_program[i], 0);
	for (size_t i = 0; i < ARRAY_SIZE(rights) && !err; i++)
		if (!(may & rights[i].right))
			err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), rights[i].number, 0);
	return err;
}

/* @signalled: the only process that can be signalled; 0: none. */
static int limit_program(int may, pid_t signalled)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err = filter ? 0 : -ENOMEM;

	if (!err)
		err = refuse(filter, may);
	if (!err && signalled)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(kill), 1,
				       SCMP_CMP(0, SCMP_CMP_NE, (uint64_t)signalled, 0));
	else if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(kill), 0);
	/* A thread of its own: abort(), for one. */
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1,
				       SCMP_CMP(0, SCMP_CMP_NE, (uint64_t)getpid(), 0));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!err)
		err = seccomp_rule_add(
			filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
			SCMP_CMP(0, SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER));
	if (!err && !(may & MAY_FORK))
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
				       SCMP_CMP(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

void unprivileged_keep_only(const int *kept, size_t nr)
{
	unsigned int next = 0;

	/* The lowest one that is kept, from @next on, ends each range. */
	for (;;) {
		unsigned int last = ~0u;

		for (size_t i = 0; i < nr; i++)
			if (kept[i] >= 0 && (unsigned int)kept[i] >= next &&
			    (unsigned int)kept[i] < last)
				last = (unsigned int)kept[i];
		/* glibc has no wrapper before 2.34, the kernel has it from 5.9 on. */
		if (last > next && syscall(SYS_close_range, next, last - (last != ~0u), 0) < 0)
			for (unsigned int fd = next; fd < last && fd < 65536; fd++)
				close((int)fd);
		if (last == ~0u)
			return;
		next = last + 1;
	}
}

int unprivileged_isolate(pid_t parent)
{
	int err;

	(void)become_nobody();
	err = drop_capabilities();
	/* A change of the user would undo this. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return -ESRCH;
	if (!err)
		err = limit_syscalls(false, false);
	if (err)
		diag_error("cannot give up privileges before the analysis: %s", strerror(-err));
	return err;
}

/* @parent: with which this process ends; 0: none. */
static int confine(bool draws, pid_t parent)
{
	int err;

	(void)become_nobody();
	err = drop_capabilities();
	/* A change of the user would undo this. */
	if (parent) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			return -ESRCH;
	}
	if (err) {
		diag_error("cannot give up privileges before the analysis: %s", strerror(-err));
		return err;
	}
	err = limit_syscalls(true, draws);
	if (err)
		diag_warn("hostile input is read without a system call filter: %s", strerror(-err));
	return 0;
}

int unprivileged_confine(bool draws)
{
	return confine(draws, 0);
}

int unprivileged_confine_child(pid_t parent)
{
	return confine(false, parent);
}

int unprivileged_program(bool has_window)
{
	int err;

	(void)become_nobody();
	err = drop_capabilities();
	/* A kernel without filters leaves it nobody's rights. */
	/* A window has another process, and sockets to it and to its display. */
	if (!err)
		(void)limit_program(MAY_EXECUTE | (has_window ? MAY_CONNECT | MAY_FORK : 0), 0);
	return err;
}

void unprivileged_limit_broker(pid_t signalled)
{
	(void)limit_program(MAY_CONNECT, signalled);
}
