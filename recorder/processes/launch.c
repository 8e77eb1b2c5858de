/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/launch.h"

#include "recorder/processes/tracer.h"

#include "probes/plan/allocator_plan.h"

#include "common/diag.h"
#include "common/scope.h"
#include "common/proc/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <elf.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/*
 * System calls to watch for the mapping of an allocator. The dynamic linker needs some ten for each
 * library before it has relocated them, which is when an allocator can first be called.
 */
#define MAX_SYSCALL_STOPS 40000

/* In the child: waits for the tracer, then becomes the command. Writes errno to @status_fd. */
static void __attribute__((noreturn))
run_child(char *const *argv, const struct launch_options *options, int go_fd, int status_fd)
{
	sigset_t none;
	char byte;
	int err;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	setpriority(PRIO_PROCESS, 0, options->niceness);
	if (options->own_stdout)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	/* If the tracer has ended, read() returns 0. */
	if (read(go_fd, &byte, 1) == 1)
		execvp(argv[0], argv);
	err = errno;
	if (write(status_fd, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

static int report_death(const char *command, int status, int status_fd)
{
	int err;

	if (read(status_fd, &err, sizeof(err)) == sizeof(err)) {
		diag_error("cannot run %s: %s", command, strerror(err));
		return -err;
	}
	if (WIFSIGNALED(status))
		diag_error("cannot record %s: signal %d killed it before it used an allocator",
			   command, WTERMSIG(status));
	else
		diag_error(
			"cannot record %s: it ended, with status %d, before it used an allocator",
			command, WEXITSTATUS(status));
	return -ECHILD;
}

/* A command on its way from fork() to its first allocator. */
struct launch {
	const char *command;
	pid_t pid;
	int status_fd;	     /* the child's errno, if exec fails */
	bool last_maps_code; /* its current system call is an mmap() of code */
	bool has_unmapped; /* it has called munmap(): glibc's dynamic linker does so when everything
			      is loaded */
	char tracer[TRACER_NAME_MAX]; /* of the child, if it cannot be traced; "": nobody */
	const struct launch_options *options;
};

/*
 * Waits for the stop of an exec or of a system call; passes signals on. Returns 0 or a negative
 * errno.
 */
static int wait_for_stop(struct launch *launch, int *ret_status)
{
	for (;;) {
		int status, signal_to_pass;

		if (waitpid(launch->pid, &status, __WALL) != launch->pid) {
			int err = errno;

			diag_error("cannot trace %s: %s", launch->command, strerror(err));
			return -err;
		}
		if (!WIFSTOPPED(status)) {
			launch->pid = -1;
			return report_death(launch->command, status, launch->status_fd);
		}
		*ret_status = status;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8) ||
		    WSTOPSIG(status) == (SIGTRAP | 0x80))
			return 0;
		/* Stops of other ptrace events, and of a whole process, deliver no signal. */
		signal_to_pass = status >> 16 ? 0 : WSTOPSIG(status);
		ptrace(PTRACE_SYSCALL, launch->pid, 0, signal_to_pass);
	}
}

/* True if the stop is the successful end of an mmap() of code. */
static bool mapped_code(struct launch *launch)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, launch->pid, sizeof(info), &info) < 0)
		return true; /* Linux before 5.3: look after each call */
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		launch->last_maps_code =
			info.entry.nr == SYS_mmap && (info.entry.args[2] & PROT_EXEC);
		launch->has_unmapped |= info.entry.nr == SYS_munmap;
		return false;
	}
	return info.op == PTRACE_SYSCALL_INFO_EXIT && launch->last_maps_code && !info.exit.is_error;
}

/* True if the program has no dynamic linker: everything that it will have is mapped already. */
static bool is_static(pid_t pid)
{
	_cleanup_fclose_ FILE *f = proc_file_open(pid, "auxv");
	unsigned long pair[2];

	while (f && fread(pair, sizeof(pair), 1, f) == 1)
		if (pair[0] == AT_BASE)
			return pair[1] == 0;
	return false;
}

static int plan_probes(const struct launch *launch, struct probe_set *ret)
{
	return allocator_plan_pid(ret, launch->pid, launch->options->operators);
}

/* Lets the command run until everything is mapped that launch.h requires, and plans the probes. */
static int reach_allocator(struct launch *launch, struct probe_set *ret_probes)
{
	bool has_allocator = false, has_libc = false;
	int status = 0;

	for (int i = 0; i < MAX_SYSCALL_STOPS; i++) {
		int err = wait_for_stop(launch, &status);
		bool exec;

		if (err)
			return err;
		exec = status >> 16 == PTRACE_EVENT_EXEC;
		if (exec)
			err = allocator_plan_check_program(launch->pid);
		if (err)
			return err;
		if (exec && is_static(launch->pid))
			return plan_probes(launch, ret_probes);
		launch->has_unmapped &= !exec;
		if (exec || mapped_code(launch))
			has_allocator = allocator_is_mapped(launch->pid, &has_libc);
		if (has_allocator &&
		    (launch->has_unmapped ||
		     (has_libc &&
		      resource_plan_is_mapped(launch->options->resources, launch->pid))))
			return plan_probes(launch, ret_probes);
		ptrace(PTRACE_SYSCALL, launch->pid, 0, 0);
	}
	diag_error("cannot record %s: it maps no library with malloc and free", launch->command);
	return -ENOENT;
}

/* Forks, seizes the child and lets it exec. */
static int start(struct launch *launch, char *const *argv)
{
	_cleanup_close_ int go_read = -1, go_write = -1, status_write = -1;
	int go[2], status[2];
	int err = 0;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	go_read = go[0];
	go_write = go[1];
	if (pipe2(status, O_CLOEXEC) < 0)
		return -errno;
	launch->status_fd = status[0];
	status_write = status[1];

	launch->pid = fork();
	if (launch->pid < 0)
		return -errno;
	if (launch->pid == 0) {
		close(go_write);
		run_child(argv, launch->options, go_read, status_write);
	}
	/* If the recorder is killed, the command ends: it was started only for the recording. */
	if (ptrace(PTRACE_SEIZE, launch->pid, 0,
		   PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0 ||
	    write(go_write, "", 1) != 1)
		err = -errno;
	/* The child waits until go_write is closed. Then it ends, and its tracer is no longer
	 * known. */
	if (err == -EPERM)
		tracer_name(launch->pid, launch->tracer);
	return err;
}

/* Under `strace -f` the command has a tracer as soon as it exists. */
static void report_start(const struct launch *launch, int err)
{
	if (launch->tracer[0])
		diag_error("cannot start %s: %s traces leakrec and what it starts, and leakrec has "
			   "to trace the command itself; start it first and record it with -p, or "
			   "trace leakrec alone (strace without -f)",
			   launch->command, launch->tracer);
	else
		diag_error("cannot start %s: %s%s", launch->command, strerror(-err),
			   err == -EPERM ? "; if this system forbids to trace it, start it first "
					   "and record it with -p"
					 : "");
}

int launch_command(char *const *argv, const struct launch_options *options, struct launched *ret,
		   struct probe_set *ret_probes)
{
	struct launch launch = {.command = argv[0], .pid = -1, .status_fd = -1, .options = options};
	int err = start(&launch, argv);

	*ret_probes = (struct probe_set){0};
	if (err)
		report_start(&launch, err);
	else
		err = reach_allocator(&launch, ret_probes);
	if (launch.status_fd >= 0)
		close(launch.status_fd);
	if (err && launch.pid > 0) {
		kill(launch.pid, SIGKILL);
		waitpid(launch.pid, NULL, __WALL);
	}
	*ret = (struct launched){.pid = err ? -1 : launch.pid, .stopped = !err};
	return err;
}

void launch_release(struct launched *launched)
{
	if (launched->stopped)
		ptrace(PTRACE_DETACH, launched->pid, 0, 0);
	launched->stopped = false;
}
