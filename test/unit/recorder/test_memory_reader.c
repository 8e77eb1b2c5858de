/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading this process's memory, and leaving behind a thread that takes too long. */
#include "recorder/processes/memory_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS_NS 1000000ULL

static char *map(int fd, size_t pages)
{
	char *memory = mmap(NULL, pages * (size_t)getpagesize(), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static void test_reads_what_is_in_memory(void **state)
{
	size_t page_bytes = (size_t)getpagesize();
	struct memory_reader reader = {0};
	char *memory = map(-1, 3), to[64] = {0};

	memory[0] = memory[page_bytes] = 'a';
	assert_int_equal(memory_reader_open(&reader, getpid()), 0);
	memset(memory + page_bytes - 2, 'b', 2);
	assert_int_equal(memory_reader_read(&reader, (uintptr_t)memory + page_bytes - 2, to, 3), 3);
	assert_string_equal(to, "bba");
	/* The third page has never been written. */
	assert_int_equal(
		memory_reader_read(&reader, (uintptr_t)memory + 2 * page_bytes - 5, to, 64), 5);
	assert_int_equal(memory_reader_read(&reader, (uintptr_t)memory + 2 * page_bytes, to, 1), 0);
	memory_reader_close(&reader);
	munmap(memory, 3 * page_bytes);
}

/* The part of the mapping at @start that is of process @pid. */
static long pss_kib(pid_t pid, uintptr_t start)
{
	char path[32], line[256];
	unsigned long at = 0;
	long kib = -1;
	FILE *smaps;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	smaps = fopen(path, "re");
	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps) &&
	       (at != start || sscanf(line, "Pss: %ld", &kib) != 1))
		sscanf(line, "%lx-%*x ", &at);
	fclose(smaps);
	return kib;
}

static void test_keeps_what_is_shared_since_a_fork(void **state)
{
	const size_t pages = 1024, bytes = pages * (size_t)getpagesize();
	struct memory_reader reader = {0};
	char *memory = map(-1, pages), to[64];
	long kib, after;
	pid_t child;

	/* Another flag than a neighbour has, which it would be one with. */
	madvise(memory, bytes, MADV_HUGEPAGE);
	memset(memory, 'a', bytes);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	kib = pss_kib(child, (uintptr_t)memory);
	assert_int_equal(memory_reader_open(&reader, child), 0);
	assert_int_equal(memory_reader_read(&reader, (uintptr_t)memory + bytes / 2 - 32, to, 64),
			 64);
	after = pss_kib(child, (uintptr_t)memory);
	memory_reader_close(&reader);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_memory_equal(to, memory, 64);
	assert_true(kib > 0 && kib < (long)(bytes / 1024));
	assert_int_equal(after, kib);
	munmap(memory, bytes);
}

static void test_says_why_something_is_absent(void **state)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct memory_reader reader = {0};
	char *empty = map(-1, 1), *of_file;

	assert_int_equal(ftruncate(fd, getpagesize()), 0);
	of_file = map(fd, 1);
	assert_int_equal(memory_reader_open(&reader, getpid()), 0);
	assert_int_equal(memory_reader_absence(&reader, (uintptr_t)of_file), MEMORY_ELSEWHERE);
	assert_int_equal(memory_reader_absence(&reader, (uintptr_t)empty), MEMORY_ZERO);
	munmap(empty, (size_t)getpagesize());
	assert_int_equal(memory_reader_absence(&reader, (uintptr_t)empty), MEMORY_UNMAPPED);
	memory_reader_close(&reader);
	munmap(of_file, (size_t)getpagesize());
	close(fd);
}

static void test_process_that_is_not_there(void **state)
{
	struct memory_reader reader = {0};

	assert_int_equal(memory_reader_open(&reader, 0x7fffffff), -ENOENT);
	memory_reader_close(&reader);
}

struct work {
	pthread_mutex_t held; /* until the thread may end */
	int fd, err;
	pid_t tid;
	sigset_t blocked;
};

static void wait_and_use(void *argument)
{
	struct work *work = argument;

	pthread_mutex_lock(&work->held);
	work->err = fcntl(work->fd, F_GETFD) < 0 ? errno : 0;
	work->tid = gettid();
	pthread_sigmask(SIG_BLOCK, NULL, &work->blocked);
}

static void test_thread_that_takes_too_long(void **state)
{
	struct work work = {PTHREAD_MUTEX_INITIALIZER, .fd = dup(STDOUT_FILENO)};
	struct work later = {PTHREAD_MUTEX_INITIALIZER, .fd = work.fd};
	struct read_thread *thread = read_thread_create();
	sigset_t blocked;

	assert_non_null(thread);
	pthread_mutex_lock(&work.held);
	read_thread_begin(thread, wait_and_use, &work);
	assert_false(read_thread_wait(thread, 0));
	assert_false(read_thread_wait(thread, 20 * MS_NS));
	pthread_mutex_unlock(&work.held);
	assert_true(read_thread_wait(thread, 60000 * MS_NS));
	/* It keeps no descriptor, and does not close ours. */
	assert_int_equal(work.err, EBADF);
	/* It gets no signal, but this thread does. */
	assert_int_equal(sigismember(&work.blocked, SIGTSTP), 1);
	assert_int_equal(sigismember(&work.blocked, SIGTTIN), 1);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
	assert_int_equal(sigismember(&blocked, SIGTSTP), 0);
	/* It does more than one work. */
	read_thread_begin(thread, wait_and_use, &later);
	assert_true(read_thread_wait(thread, 60000 * MS_NS));
	assert_int_equal(later.tid, work.tid);
	assert_true(read_thread_destroy(thread));
	assert_int_equal(close(work.fd), 0);
}

static void test_thread_that_is_left_behind(void **state)
{
	static struct work work = {PTHREAD_MUTEX_INITIALIZER, .fd = -1};
	struct read_thread *thread = read_thread_create();

	assert_non_null(thread);
	pthread_mutex_lock(&work.held);
	read_thread_begin(thread, wait_and_use, &work);
	assert_false(read_thread_destroy(thread));
	pthread_mutex_unlock(&work.held);
	assert_true(read_thread_destroy(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_what_is_in_memory),
		cmocka_unit_test(test_keeps_what_is_shared_since_a_fork),
		cmocka_unit_test(test_says_why_something_is_absent),
		cmocka_unit_test(test_process_that_is_not_there),
		cmocka_unit_test(test_thread_that_takes_too_long),
		cmocka_unit_test(test_thread_that_is_left_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
