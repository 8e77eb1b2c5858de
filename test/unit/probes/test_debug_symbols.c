/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which files are passed on as the debug file that a hostile program names. */
#include "probes/elf/debug_symbols.h"

#include "common/scope.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/test_debug_symbols_XXXXXX";
static char program[64], candidate[64];
static int program_fd;

static void make_elf(const char *path, uint16_t type)
{
	Elf64_Ehdr header = {.e_type = type};
	_cleanup_fclose_ FILE *file = fopen(path, "we");

	memcpy(header.e_ident, ELFMAG, SELFMAG);
	assert_non_null(file);
	assert_int_equal(fwrite(&header, sizeof(header), 1, file), 1);
}

/* How many files are passed on, and then the name is removed. */
static size_t nr_passed(void)
{
	const struct debug_symbols_id id = {.link = "x.debug"};
	struct debug_symbols_files files;
	size_t nr;

	debug_symbols_open(&id, program_fd, program, "/program", &files);
	nr = files.nr;
	debug_symbols_files_deinit(&files);
	assert_int_equal(unlink(candidate), 0);
	return nr;
}

static void only_code_is_passed_on(void **state)
{
	make_elf(candidate, ET_EXEC);
	assert_int_equal(nr_passed(), 1);
	make_elf(candidate, ET_CORE);
	assert_int_equal(nr_passed(), 0);
	assert_int_equal(symlink("/etc/passwd", candidate), 0);
	assert_int_equal(nr_passed(), 0);
	assert_int_equal(symlink("/proc/self/exe", candidate), 0);
	assert_int_equal(nr_passed(), 1);
}

static void what_others_could_write_is_not_passed_on(void **state)
{
	make_elf(candidate, ET_DYN);
	assert_int_equal(chmod(candidate, 0666), 0);
	assert_int_equal(nr_passed(), 0);
	if (geteuid())
		skip();
	make_elf(candidate, ET_DYN);
	assert_int_equal(chown(candidate, 65534, 65534), 0);
	assert_int_equal(nr_passed(), 0);
}

static int set_up(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	snprintf(program, sizeof(program), "%s/program", directory);
	snprintf(candidate, sizeof(candidate), "%s/x.debug", directory);
	make_elf(program, ET_EXEC);
	program_fd = open(program, O_RDONLY | O_CLOEXEC);
	return program_fd < 0;
}

static int tear_down(void **state)
{
	close(program_fd);
	unlink(program);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_code_is_passed_on),
		cmocka_unit_test(what_others_could_write_is_not_passed_on),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
