/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a reader of recordings, and a broker, can still do after they have given up rights, and what
 * they cannot.
 */
#include "common/sandbox/unprivileged.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

static int sockets[2];
static int opened_fd, terminal_fd;

/* Each deed that is done is a bit. */
#define DEED(condition) done |= (uint64_t) !!(condition) << deeds++

static uint64_t attack(void)
{
	struct sockaddr address = {.sa_family = AF_UNIX};
	char byte = 'x';
	uint64_t done = 0;
	int deeds = 0;

	DEED(open("/etc/passwd", O_RDONLY) >= 0);
	DEED(syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", NULL, 0) >= 0 || errno != EPERM);
	DEED(socket(AF_INET, SOCK_STREAM, 0) >= 0);
	DEED(connect(sockets[1], &address, sizeof(address)) == 0 || errno != EPERM);
	DEED(kill(getppid(), 0) == 0);
	DEED(syscall(SYS_tgkill, getppid(), getppid(), 0) == 0);
	DEED(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
#ifdef SYS_fork
	DEED(syscall(SYS_fork) >= 0);
#endif
	DEED(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0);
	DEED(syscall(SYS_clone3, NULL, 0) >= 0 || errno != ENOSYS);
	DEED(execl("/bin/true", "true", NULL) == 0);
	DEED(setresuid(0, 0, 0) == 0);
	DEED(unlink("/tmp/a-file-that-is-not-there") == 0 || errno != EPERM);
	DEED(ioctl(STDERR_FILENO, TIOCSTI, &byte) == 0);
	DEED(syscall(SYS_bpf, 0, NULL, 0) >= 0 || errno != EPERM);
	DEED(syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0) >= 0 || errno != EPERM);
	DEED(syscall(SYS_process_vm_writev, getppid(), NULL, 0, NULL, 0, 0) >= 0 || errno != EPERM);
	DEED(syscall(SYS_io_uring_setup, 1, NULL) >= 0 || errno != EPERM);
	DEED(prctl(PR_SET_DUMPABLE, 1) == 0);
	DEED(fcntl(opened_fd, F_SETFL, O_ASYNC) == 0);
	DEED(fchmod(opened_fd, 0777) == 0 || errno != EPERM);
	return done;
}

static void *run_thread(void *context)
{
	*(int *)context = 1;
	return NULL;
}

static uint64_t work(void)
{
	struct winsize size;
	pthread_t thread;
	int ran = 0, deeds = 0;
	uint64_t done = 0;
	char byte = 'x';

	DEED(pthread_create(&thread, NULL, run_thread, &ran) == 0 &&
	     pthread_join(thread, NULL) == 0 && ran);
	DEED(pread(opened_fd, &byte, 1, 0) == 1);
	DEED(mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE, opened_fd, 0) != MAP_FAILED);
	DEED(write(sockets[1], &byte, 1) == 1);
	DEED(ioctl(opened_fd, TIOCGWINSZ, &size) == 0 || errno == ENOTTY);
	DEED(!isatty(opened_fd) && errno == ENOTTY);
	DEED(memfd_create("x", MFD_CLOEXEC) >= 0);
	return done;
}

#define NR_WORKS 7

/* Returns what @run returned in a process that has given up rights by @give_up. */
static uint64_t run_in_child(int (*give_up)(void), uint64_t (*run)(void))
{
	uint64_t done = UINT64_MAX;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (give_up() == 0)
			done = run();
		if (write(fds[1], &done, sizeof(done)) < 0)
			_exit(1);
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &done, sizeof(done)), sizeof(done));
	close(fds[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return done;
}

static int be_a_reader(void)
{
	return unprivileged_confine(false);
}

static int be_a_viewer(void)
{
	return unprivileged_confine(true);
}

static int be_a_broker(void)
{
	unprivileged_limit_broker(0);
	return 0;
}

static int be_a_broker_that_signals(void)
{
	unprivileged_limit_broker(getppid());
	return 0;
}

/* As glibc does it before 2.42, and from then on (struct termios2, asm-generic/termbits.h). */
static uint64_t set_terminal(void)
{
	struct termios settings;
	char settings2[44];
	uint64_t done = 0;
	int deeds = 0;

	DEED(ioctl(terminal_fd, TCGETS, &settings) == 0 &&
	     ioctl(terminal_fd, TCSETSW, &settings) == 0);
	DEED(ioctl(terminal_fd, _IOC(_IOC_READ, 'T', 0x2a, 44), settings2) == 0 &&
	     ioctl(terminal_fd, _IOC(_IOC_WRITE, 'T', 0x2c, 44), settings2) == 0);
	return done;
}

static uint64_t signal_others(void)
{
	return kill(getppid(), 0) == 0 ? kill(getpid(), 0) == 0 || kill(0, 0) == 0 : 2;
}

static uint64_t attack_as_broker(void)
{
	uint64_t done = 0;
	int deeds = 0, pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);

	DEED(kill(getppid(), 0) == 0);
	DEED(syscall(SYS_tgkill, getppid(), getppid(), 0) == 0);
	DEED(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	DEED(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0) >= 0 || errno != EPERM);
	DEED(syscall(SYS_pidfd_getfd, pidfd, opened_fd, 0) >= 0 || errno != EPERM);
	DEED(syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0);
	DEED(fork() >= 0);
	DEED(syscall(SYS_clone3, NULL, 0) >= 0 || errno != ENOSYS);
	DEED(execl("/bin/true", "true", NULL) == 0);
	return done;
}

static uint64_t work_as_broker(void)
{
	pthread_t thread;
	int ran = 0, deeds = 0;
	uint64_t done = 0;

	DEED(pthread_create(&thread, NULL, run_thread, &ran) == 0 &&
	     pthread_join(thread, NULL) == 0 && ran);
	DEED(open("/etc/passwd", O_RDONLY) >= 0);
	DEED(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	DEED(syscall(SYS_tgkill, getpid(), gettid(), 0) == 0);
	return done;
}

static void test_a_broker_reaches_no_process(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(be_a_broker, attack_as_broker), 0);
	assert_int_equal(run_in_child(be_a_broker, work_as_broker), 15);
	assert_int_equal(run_in_child(be_a_broker_that_signals, signal_others), 0);
}

static void test_only_a_viewer_sets_the_terminal(void **state)
{
	(void)state;
	terminal_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(terminal_fd >= 0);
	assert_int_equal(run_in_child(be_a_viewer, set_terminal), 3);
	assert_int_equal(run_in_child(be_a_reader, set_terminal), 0);
	assert_int_equal(run_in_child(be_a_viewer, attack), 0);
	close(terminal_fd);
}

static void test_nothing_gained(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(be_a_reader, attack), 0);
}

static void test_works(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(be_a_reader, work), (1 << NR_WORKS) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_gained),
		cmocka_unit_test(test_works),
		cmocka_unit_test(test_only_a_viewer_sets_the_terminal),
		cmocka_unit_test(test_a_broker_reaches_no_process),
	};

	opened_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (opened_fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
