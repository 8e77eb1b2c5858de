/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a broker opens for a process that may ask for anything, and what becomes of bad requests. */
#include "common/broker/broker.h"
#include "common/elf/elf_file.h"
#include "common/scope.h"
#include "unwind/modules/file_services.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define OWN "/proc/self/exe"

static char directory[] = "/tmp/test_file_services_XXXXXX";
static int socket_fd;

/* Makes DIRECTORY/NAME of @size bytes. Returns its path. */
static const char *make_file(const char *name, const void *bytes, size_t size)
{
	static char path[256];
	_cleanup_fclose_ FILE *file = NULL;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	return path;
}

static const char *make_elf(const char *name, uint16_t type, bool big_endian)
{
	Elf64_Ehdr header = {.e_type = big_endian ? (uint16_t)(type << 8) : type};

	memcpy(header.e_ident, ELFMAG, SELFMAG);
	return make_file(name, &header, sizeof(header));
}

static int ask_to_open(const char *path)
{
	int fd = broker_open(BROKER_OPEN_ELF, path, NULL);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static void test_only_code(void **state)
{
	char path[256];

	(void)state;
	assert_int_equal(ask_to_open(OWN), 0);
	assert_int_equal(ask_to_open(make_elf("library", ET_DYN, false)), 0);
	assert_int_equal(ask_to_open(make_elf("program", ET_EXEC, true)), 0);
	assert_int_equal(ask_to_open(make_elf("core", ET_CORE, false)), -ENOEXEC);
	assert_int_equal(ask_to_open(make_elf("core.big", ET_CORE, true)), -ENOEXEC);
	assert_int_equal(ask_to_open(make_elf("none", ET_NONE, false)), -ENOEXEC);
	assert_int_equal(ask_to_open(make_file("short", ELFMAG, SELFMAG)), -ENOEXEC);
	assert_int_equal(ask_to_open("/etc/passwd"), -ENOEXEC);
	assert_int_equal(ask_to_open("/proc/kcore") >= 0, 0);
	assert_int_equal(ask_to_open("/etc"), -EISDIR);
	assert_int_equal(ask_to_open("/dev/zero"), -ENOEXEC);
	snprintf(path, sizeof(path), "%s/fifo", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(ask_to_open(path), -ENOEXEC); /* without waiting for a writer */
	assert_int_equal(ask_to_open("/not/there"), -ENOENT);
}

/* Those that come through the functions which ask if there is a broker. */
static void test_asked_by_functions(void **state)
{
	struct stat by_broker, own;
	int fd = elf_file_open(OWN, &by_broker);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
	assert_int_equal(stat(OWN, &own), 0);
	assert_int_equal(by_broker.st_ino, own.st_ino);
	assert_int_equal(elf_file_open("/etc/passwd", &by_broker), -ENOEXEC);
}

static int answer_to(const void *bytes, size_t size)
{
	int32_t answer = 1;

	assert_int_equal(send(socket_fd, bytes, size, 0), size);
	assert_int_equal(recv(socket_fd, &answer, sizeof(answer), 0), sizeof(answer));
	return answer;
}

static void test_bad_requests(void **state)
{
	char bytes[2 * BROKER_MAX_TEXT];
	struct broker_request request = {.fd = -1};
	char *text = calloc(1, BROKER_MAX_TEXT + 1);
	int fd;

	(void)state;
	memset(bytes, 1, sizeof(bytes));
	assert_int_equal(answer_to(bytes, sizeof(bytes)), -EINVAL);
	assert_int_equal(answer_to(bytes, 64), -ENOSYS);
	for (size_t size = 1; size < 24; size++)
		assert_int_equal(answer_to(bytes, size), -EINVAL);
	/* Without a NUL at its end. */
	memset(bytes, 0, 24);
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(bytes + 24, OWN, strlen(OWN));
	assert_int_equal(answer_to(bytes, 24 + strlen(OWN)), 0);
	request.op = BROKER_NR_OPS;
	assert_int_equal(broker_ask(&request, &fd), -ENOSYS);
	request.op = BROKER_OPEN_OUTPUT; /* not served */
	assert_int_equal(broker_ask(&request, &fd), -ENOSYS);
	request.op = BROKER_OPEN_BELOW; /* without --symfs */
	assert_int_equal(broker_ask(&request, &fd), -ENOENT);
	request.op = BROKER_FIND_THREAD;
	request.number = -1;
	assert_int_equal(broker_ask(&request, &fd), -EINVAL);
	request.number = INT64_MAX;
	assert_int_equal(broker_ask(&request, &fd), -EINVAL);
	request.number = getpid();
	assert_int_equal(broker_ask(&request, &fd), getpid());
	request.op = BROKER_FETCH_DEBUG;
	for (const char *const *bad =
		     (const char *const[]){"", "0", "zz name", "0102", "010 x", NULL};
	     *bad; bad++) {
		request.text = *bad;
		assert_int_equal(broker_ask(&request, &fd), -EINVAL);
	}
	memset(text, 'a', BROKER_MAX_TEXT);
	request.text = text;
	assert_int_equal(broker_ask(&request, &fd), -ENAMETOOLONG);
	text[BROKER_MAX_TEXT - 1] = '\0';
	request.op = BROKER_OPEN_ELF;
	assert_int_equal(broker_ask(&request, &fd), -ENAMETOOLONG); /* open()'s */
	free(text);
	/* It has survived all that. */
	assert_int_equal(ask_to_open(OWN), 0);
}

/* Threads that ask at the same time get their own answers. */
static void *ask_often(void *context)
{
	size_t *nr_wrong = context;
	struct stat st, own;

	if (stat(OWN, &own))
		return NULL;
	for (int i = 0; i < 500; i++) {
		int fd = broker_open(BROKER_OPEN_ELF, OWN, &st);

		*nr_wrong += fd < 0 || st.st_ino != own.st_ino;
		if (fd >= 0)
			close(fd);
		*nr_wrong += ask_to_open("/etc/passwd") != -ENOEXEC;
	}
	return NULL;
}

static void test_threads(void **state)
{
	size_t nr_wrong[2] = {0};
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, ask_often, &nr_wrong[0]), 0);
	ask_often(&nr_wrong[1]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(nr_wrong[0] + nr_wrong[1], 0);
}

/* The last test: whoever asks is told. */
static void test_end(void **state)
{
	(void)state;
	assert_int_equal(shutdown(socket_fd, SHUT_RDWR), 0);
	assert_int_equal(ask_to_open(OWN), -EIO);
}

static int remove_directory(void **state)
{
	static const char *const names[] = {"core", "core.big", "fifo", "library",
					    "none", "program",	"short"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	return rmdir(directory);
}

int main(void)
{
	struct broker_service services[BROKER_NR_OPS] = {0};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_code),    cmocka_unit_test(test_asked_by_functions),
		cmocka_unit_test(test_bad_requests), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_end),
	};
	int fds[2], result;
	pid_t pid;

	elf_version(EV_CURRENT);
	if (!mkdtemp(directory) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		file_services_add(services, NULL);
		broker_serve(fds[1], services);
		_exit(0);
	}
	close(fds[1]);
	socket_fd = fds[0];
	broker_use(socket_fd);
	result = cmocka_run_group_tests(tests, NULL, remove_directory);
	broker_leave();
	waitpid(pid, NULL, 0);
	return result;
}
