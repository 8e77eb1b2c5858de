/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/return_syscall.h"

#include "common/proc/proc_file.h"
#include "common/scope.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR_URETPROBE 335 /* arch/x86/entry/syscalls/syscall_64.tbl (Linux 6.11) */

#if defined(__x86_64__)
#define MAY_RETURN_BY_SYSCALL true
#else
#define MAY_RETURN_BY_SYSCALL false
#endif

#define FILTER_ERRNO EXFULL /* no system call returns it */

/* How the child that calls it ends. */
enum outcome { CALL_UNKNOWN, CALL_HAS_RUN, CALL_FILTERED, CALL_UNCLEAR };

/* The kernel sends SIGILL if the call comes from elsewhere than a return probe. */
static void on_illegal(int number)
{
	_exit(CALL_HAS_RUN);
}

static int filter_call(void)
{
	struct sock_filter instructions[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NR_URETPROBE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | FILTER_ERRNO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {ARRAY_SIZE(instructions), instructions};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/*
 * Ends this child with an enum outcome as its status. If the kernel has the system call, it sends
 * SIGILL, as no return probe led here: on_illegal() ends the child.
 */
static void __attribute__((noreturn)) call_in_child(bool with_filter)
{
	signal(SIGILL, on_illegal);
	if (with_filter && filter_call())
		_exit(CALL_UNCLEAR);
	if (syscall(NR_URETPROBE) == 0 || (errno != ENOSYS && errno != FILTER_ERRNO))
		_exit(CALL_UNCLEAR);
	_exit(errno == ENOSYS ? CALL_UNKNOWN : CALL_FILTERED);
}

static enum outcome try_call(bool with_filter)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		call_in_child(with_filter);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return CALL_UNCLEAR;
	return (enum outcome)WEXITSTATUS(status);
}

/* The value of "Seccomp:" (task_seccomp(), fs/proc/array.c): SECCOMP_MODE_DISABLED, for example. */
static int seccomp_mode(pid_t tid, uint64_t *ret)
{
	char text[PROC_FILE_STATUS_SIZE];
	int err = proc_file_read(tid, "status", text, sizeof(text));

	*ret = 0;
	/* Without CONFIG_SECCOMP there is no such line. */
	if (!err)
		proc_file_number(text, "Seccomp:", ret);
	return err;
}

enum return_syscall return_syscall_find(void)
{
	struct utsname name;
	uint64_t own_mode;

	if (!MAY_RETURN_BY_SYSCALL)
		return RETURN_TRAPS;
	/* A filter of our own would falsify the test. */
	if (seccomp_mode(getpid(), &own_mode) == 0 && own_mode == SECCOMP_MODE_DISABLED) {
		enum outcome plain = try_call(false);
		enum outcome filtered = plain == CALL_HAS_RUN ? try_call(true) : CALL_UNCLEAR;

		if (plain == CALL_UNKNOWN)
			return RETURN_TRAPS;
		if (filtered == CALL_HAS_RUN)
			return RETURN_PASSES;
		if (filtered == CALL_FILTERED)
			return RETURN_FILTERED;
	}
	return uname(&name) ? RETURN_FILTERED : return_syscall_of_release(name.release);
}

enum return_syscall return_syscall_of_release(const char *release)
{
	long number[3] = {0};
	const char *at = release;

	for (size_t i = 0; i < ARRAY_SIZE(number); i++) {
		char *end;

		number[i] = strtol(at, &end, 10);
		if (end == at || (i == 0 && *end != '.'))
			return RETURN_FILTERED;
		if (*end != '.')
			break;
		at = end + 1;
	}
	if (number[0] > 6 || (number[0] == 6 && number[1] >= 14))
		return RETURN_PASSES;
	if (number[0] < 6 || number[1] < 11)
		return RETURN_TRAPS;
	/*
	 * Filters let the call pass in these releases. A distribution that keeps the third number
	 * at 0 may have the correction, too: then this errs on the safe side.
	 */
	return (number[1] == 12 && number[2] >= 14) || (number[1] == 13 && number[2] >= 3)
		       ? RETURN_PASSES
		       : RETURN_FILTERED;
}

bool return_syscall_kills(enum return_syscall kind, pid_t pid)
{
	char path[PROC_FILE_PATH_SIZE];
	_cleanup_closedir_ DIR *threads = NULL;
	const struct dirent *entry;

	if (kind == RETURN_TRAPS)
		return false;
	proc_file_path(path, pid, "task");
	threads = opendir(path);
	while (threads && (entry = readdir(threads))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		uint64_t mode;

		/* A thread that has ended needs nothing. */
		if (tid <= 0 || seccomp_mode(tid, &mode) == -ESRCH)
			continue;
		if (mode == SECCOMP_MODE_STRICT ||
		    (mode != SECCOMP_MODE_DISABLED && kind == RETURN_FILTERED))
			return true;
	}
	return false;
}
