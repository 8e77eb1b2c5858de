/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mapped files that others truncate. */
#include "parser/bytes/perf_source.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define NR_PAGES 8

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* A file of NR_PAGES pages, each full of its number from 1. */
static int make_file(void)
{
	char path[] = "/tmp/test_file_window.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);
	uint8_t *page = malloc(page_bytes());

	assert_true(fd >= 0);
	assert_non_null(page);
	unlink(path);
	for (int i = 1; i <= NR_PAGES; i++) {
		memset(page, i, page_bytes());
		assert_int_equal(write(fd, page, page_bytes()), page_bytes());
	}
	free(page);
	return fd;
}

static void holds_what_was_asked_for(void **state)
{
	int fd = make_file();
	uint64_t offset = page_bytes() + 10, end = NR_PAGES * page_bytes() - 5;
	volatile sig_atomic_t is_cut = false;
	struct file_window window;

	assert_int_equal(file_window_map(&window, fd, offset, end, 100, &is_cut), 0);
	assert_int_equal(window.offset, page_bytes());
	assert_int_equal(window.size_bytes, 110);
	assert_int_equal(window.bytes[0], 2);
	assert_int_equal(window.bytes[109], 2);
	file_window_unmap(&window);
	file_window_unmap(&window);

	assert_int_equal(file_window_map(&window, fd, offset, end, 1 << 20, &is_cut), 0);
	assert_int_equal(window.offset + window.size_bytes, end);
	assert_int_equal(window.bytes[window.size_bytes - 1], NR_PAGES);
	window.bytes[0] = 77;
	file_window_unmap(&window);
	assert_int_equal(file_window_map(&window, fd, offset, end, 1, &is_cut), 0);
	assert_int_equal(window.bytes[0], 2);
	file_window_unmap(&window);
	assert_false(is_cut);
	close(fd);
}

static void what_is_cut_off_is_zero(void **state)
{
	int cut_fd = make_file(), whole_fd = make_file();
	uint64_t end = NR_PAGES * page_bytes();
	volatile sig_atomic_t is_cut = false, is_other_cut = false;
	struct file_window window, other;

	assert_int_equal(file_window_map(&window, cut_fd, 0, end, end, &is_cut), 0);
	assert_int_equal(file_window_map(&other, whole_fd, 0, end, end, &is_other_cut), 0);
	assert_int_equal(ftruncate(cut_fd, (off_t)(3 * page_bytes())), 0);
	assert_int_equal(window.bytes[3 * page_bytes() - 1], 3);
	assert_false(is_cut);
	assert_int_equal(window.bytes[5 * page_bytes() + 1], 0);
	assert_true(is_cut);
	/* Zeros only from there on. */
	assert_int_equal(window.bytes[2 * page_bytes()], 3);
	assert_int_equal(window.bytes[end - 1], 0);
	assert_int_equal(window.bytes[4 * page_bytes()], 0);
	assert_int_equal(other.bytes[end - 1], NR_PAGES);
	assert_false(is_other_cut);
	file_window_unmap(&window);
	file_window_unmap(&other);
	close(cut_fd);
	close(whole_fd);
}

static void a_source_tells(void **state)
{
	int fd = make_file();
	uint64_t end = NR_PAGES * page_bytes();
	struct perf_source source;
	struct file_window window;

	perf_source_init(&source, fd, "cut off");
	assert_true(source.mappable);
	assert_int_equal(perf_source_map(&source, 0, UINT64_MAX, end, &window), 1);
	assert_int_equal(window.size_bytes, end);
	assert_int_equal(perf_source_check(&source), 0);
	/* Truncated within a page: no bus error shows it. */
	assert_int_equal(ftruncate(fd, (off_t)(end - 1)), 0);
	assert_int_equal(perf_source_check(&source), -EIO);
	/* The file's size does not show it either, if the file was shorter only in between. */
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(window.bytes[end - 1], 0);
	assert_int_equal(ftruncate(fd, (off_t)end), 0);
	assert_int_equal(perf_source_check(&source), -EIO);
	file_window_unmap(&window);
	perf_source_deinit(&source);
	close(fd);
}

/* Another bus error still ends the program. */
static void other_bus_errors_stay(void **state)
{
	int fd = make_file(), status;
	uint64_t end = NR_PAGES * page_bytes();
	volatile sig_atomic_t is_cut = false;
	struct file_window window;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct rlimit no_core = {0};
		uint8_t *bytes = mmap(NULL, end, PROT_READ, MAP_SHARED, fd, 0);

		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGBUS, SIG_DFL); /* cmocka's handler would continue with the tests here */
		alarm(100);
		if (bytes == MAP_FAILED || file_window_map(&window, fd, 0, end, end, &is_cut) ||
		    ftruncate(fd, 0) < 0)
			_exit(1);
		_exit(*(volatile uint8_t *)bytes);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	close(fd);
}

static void only_what_nobody_else_writes_is_mapped(void **state)
{
	static const struct {
		mode_t mode;
		bool may;
	} cases[] = {{0600, true}, {0644, true}, {0400, true}, {0660, false}, {0602, false}};
	int fd = make_file(), pipe_fds[2];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(fchmod(fd, cases[i].mode), 0);
		assert_int_equal(file_window_may_map(fd), cases[i].may);
	}
	assert_int_equal(fchmod(fd, 0600), 0);
	if (geteuid() == 0) {
		assert_int_equal(fchown(fd, 12345, (gid_t)-1), 0);
		assert_false(file_window_may_map(fd));
	}
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_false(file_window_may_map(pipe_fds[0]));
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_what_was_asked_for),
		cmocka_unit_test(what_is_cut_off_is_zero),
		cmocka_unit_test(a_source_tells),
		cmocka_unit_test(other_bus_errors_stay),
		cmocka_unit_test(only_what_nobody_else_writes_is_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
