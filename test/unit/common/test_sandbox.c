/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What code in a sandbox can do, if it does what it likes, and what becomes of its reply. */
#include "common/sandbox/message.h"
#include "common/sandbox/sandbox.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PART_NS 1000000000ull

static int given_fd, other_fd;

static void run_task(void (*run)(void *, size_t, FILE *), size_t nr_parts,
		     struct sandbox_reply *ret)
{
	const struct sandbox_task task = {
		.run = run,
		.nr_parts = nr_parts,
		.fds = &given_fd,
		.nr_fds = 1,
		.cpu_ns = PART_NS,
		.elapsed_ns = 60 * PART_NS,
	};

	assert_int_equal(sandbox_run(&task, ret), 0);
}

/* Each attack must fail. The reply is a bit for each that did not. */
static void attack(void *context, size_t nr, FILE *reply)
{
	char byte = 'x';
	uint64_t gained = 0;
	int attacks = 0;

	(void)context;
	(void)nr;
#define ATTACK(condition) gained |= (uint64_t) !!(condition) << attacks++
	ATTACK(open("/etc/passwd", O_RDONLY) >= 0);
	ATTACK(syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", NULL, 0) >= 0);
	ATTACK(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	ATTACK(kill(getppid(), 0) == 0);
	ATTACK(syscall(SYS_tgkill, getpid(), gettid(), 0) == 0);
	ATTACK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
#ifdef SYS_fork
	ATTACK(syscall(SYS_fork) >= 0);
#endif
	ATTACK(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0);
	ATTACK(execl("/bin/true", "true", NULL) == 0);
	ATTACK(setresuid(0, 0, 0) == 0);
	ATTACK(unlink("/tmp/a-file-that-is-not-there") == 0 || errno != EPERM);
	ATTACK(ioctl(STDERR_FILENO, 0x5412 /* TIOCSTI */, &byte) == 0);
	ATTACK(syscall(SYS_bpf, 0, NULL, 0) >= 0 || errno != EPERM);
	ATTACK(syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0) >= 0 || errno != EPERM);
	ATTACK(write(other_fd, &byte, 1) >= 0);
	ATTACK(read(STDIN_FILENO, &byte, 1) >= 0);
	ATTACK(prctl(PR_SET_DUMPABLE, 1) == 0);
	ATTACK(pread(given_fd, &byte, 1, 0) != 1 || byte != 'T');
	ATTACK(mmap(NULL, 2 * SANDBOX_MAX_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED);
	message_put_number(reply, gained);
}

static void test_nothing_gained(void **state)
{
	struct sandbox_reply reply;
	struct message_reader reader;
	int64_t gained;

	(void)state;
	run_task(attack, 1, &reply);
	assert_int_equal(reply.nr_parts, 1);
	reader = (struct message_reader){reply.bytes, reply.bytes + reply.size_bytes, false};
	gained = message_get_number(&reader, 0, INT64_MAX);
	assert_false(reader.is_bad);
#ifdef __SANITIZE_ADDRESS__
	gained &= ~(1 << 18); /* its memory has no limit */
#endif
	assert_int_equal(gained, 0);
	assert_null(reply.messages);
	sandbox_reply_deinit(&reply);
}

static void fail_in_second(void *context, size_t nr, FILE *reply)
{
	(void)context;
	message_put_number(reply, nr);
	if (nr == 1)
		raise(SIGKILL);
	if (nr == 1)
		_exit(7);
}

/* What was complete before the child ended is there. */
static void test_crash(void **state)
{
	struct sandbox_reply reply;

	(void)state;
	run_task(fail_in_second, 3, &reply);
	assert_int_equal(reply.nr_parts, 1);
	assert_int_equal(reply.part_ends[0], 8);
	assert_int_equal(reply.size_bytes, 8);
	sandbox_reply_deinit(&reply);
}

/* A part that @run does not complete has no more time than any other. */
static void assert_is_ended(void (*run)(void *context, size_t nr, FILE *reply))
{
	const struct sandbox_task task = {
		.run = run,
		.nr_parts = 1,
		.fds = &given_fd,
		.nr_fds = 1,
		.cpu_ns = 100 * PART_NS,
		.elapsed_ns = PART_NS / 4,
	};
	struct sandbox_reply reply;

	assert_int_equal(sandbox_run(&task, &reply), 0);
	assert_int_equal(reply.nr_parts, 0);
	sandbox_reply_deinit(&reply);
}

/* Writes a byte to the pipe itself, whose number it finds, whenever it has slept a while. */
static void dribble(void *context, size_t nr, FILE *reply)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	int word = 0, pipe_fd = -1;

	(void)context;
	(void)nr;
	(void)reply;
	for (int fd = 3; fd < 100 && pipe_fd < 0; fd++)
		if (fd != given_fd && write(fd, "x", 1) == 1)
			pipe_fd = fd;
	while (write(pipe_fd, "x", 1) == 1)
		syscall(SYS_futex, &word, FUTEX_WAIT, 0, &pause, NULL, 0);
	_exit(0);
}

static void test_dribble(void **state)
{
	(void)state;
	assert_is_ended(dribble);
}

static void hang(void *context, size_t nr, FILE *reply)
{
	(void)context;
	(void)reply;
	for (volatile size_t i = nr; i == 1; i = nr)
		;
}

static void sleep_long(void *context, size_t nr, FILE *reply)
{
	char byte;

	(void)context;
	(void)nr;
	(void)reply;
	while (syscall(SYS_futex, &byte, 0, 0, NULL, NULL, 0))
		;
}

static void test_sleep(void **state)
{
	(void)state;
	assert_is_ended(sleep_long);
}

static void test_hang(void **state)
{
	struct sandbox_reply reply;

	(void)state;
	run_task(hang, 2, &reply);
	assert_int_equal(reply.nr_parts, 1);
	assert_true(reply.cpu_ns > 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	sandbox_reply_deinit(&reply);
}

/* Writes to the pipe itself, whose number it finds, sizes that are not so. */
static void forge(void *context, size_t nr, FILE *reply)
{
	const uint64_t sizes[] = {UINT64_MAX, 1, 1ull << 40};

	(void)context;
	(void)nr;
	(void)reply;
	for (int fd = 3; fd < 100; fd++)
		if (fd != given_fd && write(fd, sizes, sizeof(sizes)) > 0)
			_exit(0);
}

static void flood(void *context, size_t nr, FILE *reply)
{
	char line[4096];

	(void)context;
	(void)nr;
	(void)reply;
	memset(line, 'a', sizeof(line));
	for (;;)
		if (write(STDERR_FILENO, line, sizeof(line)) < 0)
			_exit(0);
}

static void test_forged_reply(void **state)
{
	struct sandbox_reply reply;

	(void)state;
	run_task(forge, 2, &reply);
	assert_int_equal(reply.nr_parts, 0);
	sandbox_reply_deinit(&reply);
	run_task(flood, 1, &reply);
	assert_int_equal(reply.nr_parts, 0);
	assert_true(strlen(reply.messages) <= 65536);
	sandbox_reply_deinit(&reply);
}

static void print_forged(void *context, size_t nr, FILE *reply)
{
	(void)context;
	(void)nr;
	(void)reply;
	fputs("leakrec: a \\x1b b\n\x1b]0;title\a\xe2\x80\xae\n", stderr);
}

/* The child's messages cannot control the terminal. */
static void test_messages(void **state)
{
	struct sandbox_reply reply;
	char text[256] = "";
	int saved = dup(STDERR_FILENO), fd = memfd_create("stderr", MFD_CLOEXEC);

	(void)state;
	run_task(print_forged, 1, &reply);
	dup2(fd, STDERR_FILENO);
	sandbox_reply_print(&reply);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "leakrec: a \\x1b b\n\\x1b]0;title\\x07\\xe2\\x80\\xae\n");
	close(fd);
	sandbox_reply_deinit(&reply);
}

static void test_bad_messages(void **state)
{
	static const char bytes[] = "\5\0\0\0\0\0\0\0ab\0c\nd\0no end";
	struct message_reader reader = {bytes, bytes + sizeof(bytes) - 1, false};

	(void)state;
	assert_int_equal(message_get_number(&reader, 0, 5), 5);
	assert_string_equal(message_get_string(&reader, 2, NULL), "ab");
	assert_string_equal(message_get_string(&reader, 9, NULL), "");
	assert_true(reader.is_bad);
	assert_int_equal(message_get_number(&reader, 0, 5), 0);
	reader = (struct message_reader){bytes, bytes + 8, false};
	assert_int_equal(message_get_number(&reader, 0, 4), 0);
	assert_true(reader.is_bad);
	reader = (struct message_reader){bytes + 8, bytes + 10, false};
	assert_string_equal(message_get_string(&reader, 9, NULL), "");
	assert_true(reader.is_bad);
	reader = (struct message_reader){bytes + 8, bytes + 11, false};
	assert_string_equal(message_get_string(&reader, 1, NULL), "");
	assert_true(reader.is_bad);
	reader = (struct message_reader){bytes + 8, bytes + 11, false};
	assert_string_equal(message_get_string(&reader, 2, "a"), "");
	assert_true(reader.is_bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_gained), cmocka_unit_test(test_crash),
		cmocka_unit_test(test_sleep),	       cmocka_unit_test(test_dribble),
		cmocka_unit_test(test_hang),	       cmocka_unit_test(test_forged_reply),
		cmocka_unit_test(test_messages),       cmocka_unit_test(test_bad_messages),
	};

	given_fd = memfd_create("given", 0);
	other_fd = memfd_create("other", 0);
	if (given_fd < 0 || other_fd < 0 || write(given_fd, "T", 1) != 1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
