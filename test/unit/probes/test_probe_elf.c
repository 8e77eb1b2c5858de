/* SPDX-License-Identifier: GPL-2.0-or-later */
/* File offsets of symbols, in this process's libc and in damaged copies of it. */
#include "probes/elf/elf_image.h"
#include "probes/plan/probe_plan.h"
#include "probes/plan/allocator_plan.h"
#include "probes/plan/probe_set.h"

#include "common/scope.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* Finds the file that holds @address in this process, and the offset in it. */
static uint64_t file_offset_of(const void *address, char *ret_path, size_t size)
{
	_cleanup_fclose_ FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end, offset;
		int path_at = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &start, &end,
			   &offset, &path_at) != 3 ||
		    (uintptr_t)address < start || (uintptr_t)address >= end)
			continue;
		snprintf(ret_path, size, "%.*s", (int)strcspn(line + path_at, "\n"),
			 line + path_at);
		return (uintptr_t)address - start + offset;
	}
	fail();
	return 0;
}

/* The address of libc's own function, whatever precedes it in the search order. */
static void *libc_function(const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	void *function;

	assert_non_null(libc);
	function = dlsym(libc, name);
	assert_non_null(function);
	dlclose(libc);
	return function;
}

static const struct probe *find_probe(const struct probe_file *file, const char *event)
{
	for (size_t i = 0; i < file->nr_probes; i++)
		if (strcmp(file->probes[i].event, event) == 0)
			return &file->probes[i];
	return NULL;
}

static void libc_offsets_are_those_of_its_mapping(void **state)
{
	static const char *const names[] = {"malloc", "calloc", "realloc", "free", "no such name"};
	struct elf_function functions[ARRAY_SIZE(names)];
	struct elf_image image;
	char path[4096];

	file_offset_of(libc_function("malloc"), path, sizeof(path));
	assert_int_equal(elf_image_open(&image, path), 0);
	assert_true(image.is_native);
	assert_false(elf_image_is_loader(&image));
	assert_false(elf_image_is_static(&image));
	elf_image_find_functions(&image, names, ARRAY_SIZE(names), functions);
	for (size_t i = 0; i < 4; i++) {
		assert_true(functions[i].is_found);
		assert_true(functions[i].size_bytes > 0);
		assert_int_equal(functions[i].offset,
				 file_offset_of(libc_function(names[i]), path, sizeof(path)));
	}
	assert_false(functions[4].is_found);
	elf_image_deinit(&image);
}

static void imported_functions_are_not_defined(void **state)
{
	static const char *const names[] = {"dlopen", "main"};
	struct elf_function functions[ARRAY_SIZE(names)];
	struct elf_image image;

	assert_int_equal(elf_image_open(&image, "/proc/self/exe"), 0);
	elf_image_find_functions(&image, names, ARRAY_SIZE(names), functions);
	assert_false(functions[0].is_found);
	assert_true(functions[1].is_found);
	elf_image_deinit(&image);
}

static void plan_of_libc_has_each_address_once(void **state)
{
	struct probe_set set;
	const struct probe_file *file;
	char path[4096];

	file_offset_of(libc_function("malloc"), path, sizeof(path));
	assert_int_equal(allocator_plan_file(&set, path, false), 0);
	assert_int_equal(set.nr_files, 1);
	file = &set.files[0];
	for (size_t i = 0; i < file->nr_probes; i++) {
		assert_int_equal(file->probes[i].tracefs_id, -1);
		for (size_t j = 0; j < i; j++)
			assert_false(file->probes[i].point == file->probes[j].point &&
				     file->probes[i].offset == file->probes[j].offset);
	}
	assert_non_null(find_probe(file, "malloc"));
	assert_non_null(find_probe(file, "malloc_ret"));
	assert_non_null(find_probe(file, "free"));
	assert_null(find_probe(file, "free_ret"));
	if (libc_function("memalign") == libc_function("aligned_alloc"))
		assert_null(find_probe(file, "memalign"));
#if defined(__x86_64__)
	assert_string_equal(find_probe(file, "calloc")->fetch_args,
			    "n=%di:u64 elem_size=%si:u64 caller=+0(%sp):x64");
	assert_string_equal(find_probe(file, "realloc")->fetch_args,
			    "oldmem=%di:x64 bytes=%si:u64 caller=+0(%sp):x64");
	assert_string_equal(find_probe(file, "malloc_ret")->fetch_args, "ret=$retval:x64");
	assert_string_equal(find_probe(file, "posix_memalign_ret")->fetch_args, "ret=$retval:s32");
	assert_non_null(find_probe(file, "posix_memalign_store"));
#endif
	probe_set_deinit(&set);
}

static void plan_of_a_process_is_the_plan_of_its_libc(void **state)
{
	struct probe_set by_pid, by_file;
	char path[4096];
	size_t nr_same = 0;

	file_offset_of(libc_function("malloc"), path, sizeof(path));
	assert_int_equal(allocator_plan_file(&by_file, path, false), 0);
	assert_int_equal(allocator_plan_pid(&by_pid, getpid(), false), 0);
	for (size_t i = 0; i < by_pid.nr_files; i++)
		nr_same += strcmp(by_pid.files[i].group, by_file.files[0].group) == 0;
	assert_int_equal(nr_same, 1);
	/* A file that is there already is not added. */
	assert_int_equal(probe_set_merge(&by_pid, &by_file), 0);
	assert_int_equal(by_file.nr_files, 0);
	nr_same = by_pid.nr_files;
	assert_int_equal(allocator_plan_pid(&by_file, getpid(), false), 0);
	assert_int_equal(by_file.nr_files, nr_same);
	probe_set_deinit(&by_file);
	probe_set_deinit(&by_pid);
}

static void own_groups_name_this_process(void **state)
{
	struct probe_set set;
	char path[4096], prefix[64];

	file_offset_of(libc_function("malloc"), path, sizeof(path));
	assert_int_equal(allocator_plan_file(&set, path, false), 0);
	assert_int_equal(probe_set_make_own(&set), 0);
	snprintf(prefix, sizeof(prefix), "leakrec%d_", (int)getpid());
	assert_memory_equal(set.files[0].group, prefix, strlen(prefix));
	assert_non_null(strstr(set.files[0].probes[0].definition, set.files[0].group));
	/* They fetch from no memory, in place of "+0(%sp)". */
	for (size_t i = 0; i < set.files[0].nr_probes; i++)
		assert_null(strstr(set.files[0].probes[i].definition, "("));
	assert_string_equal(find_probe(&set.files[0], "calloc")->fetch_args,
			    "n=%di:u64 elem_size=%si:u64 caller=%sp:x64");
	assert_true(find_probe(&set.files[0], "calloc")->fetches_caller_at);
	assert_false(find_probe(&set.files[0], "calloc_ret")->fetches_caller_at);
	probe_set_deinit(&set);
}

static void bad_targets_are_refused(void **state)
{
	struct probe_set set;

	assert_int_equal(allocator_plan_pid(&set, -1, false), -ESRCH);
	assert_int_equal(allocator_plan_pid(&set, 0x7ffffffe, false), -ESRCH);
	assert_int_equal(allocator_plan_file(&set, "/nonexistent", false), -ENOENT);
	assert_int_equal(allocator_plan_file(&set, "/dev/null", false), -ENOEXEC);
	assert_int_equal(allocator_plan_file(&set, "/", false), -EISDIR);
	assert_int_equal(allocator_plan_file(&set, TEST_SOURCE_DIR "/unit/CMakeLists.txt", false),
			 -ENOEXEC);
}

/* A memory file with libc's first @size bytes. */
static int libc_copy(size_t size)
{
	_cleanup_free_ char *bytes = malloc(size);
	_cleanup_close_ int libc = -1;
	char path[4096];
	int fd = memfd_create("libc", MFD_CLOEXEC);
	ssize_t len;

	file_offset_of(libc_function("malloc"), path, sizeof(path));
	libc = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && libc >= 0 && bytes);
	len = pread(libc, bytes, size, 0);
	assert_true(len > 0);
	assert_int_equal(pwrite(fd, bytes, len, 0), len);
	return fd;
}

/* The file offset of the symbol @name in .dynsym. */
static uint64_t dynamic_symbol_offset(const struct elf_image *image, const char *name)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(image->elf, section))) {
		Elf_Data *data = elf_getdata(section, NULL);
		GElf_Shdr header;
		GElf_Sym symbol;

		assert_non_null(gelf_getshdr(section, &header));
		if (header.sh_type != SHT_DYNSYM)
			continue;
		for (int i = 0; gelf_getsym(data, i, &symbol); i++)
			if (strcmp(elf_strptr(image->elf, header.sh_link, symbol.st_name), name) ==
			    0)
				return header.sh_offset + i * sizeof(Elf64_Sym);
	}
	fail();
	return 0;
}

/* In a program that is not a PIE, an imported function has the address of its PLT stub. */
static void plt_stubs_and_resolvers_are_no_functions(void **state)
{
	static const char *const names[] = {"malloc", "free", "calloc"};
	static const uint16_t undefined = SHN_UNDEF;
	static const uint8_t resolver = GELF_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
	struct elf_function functions[ARRAY_SIZE(names)];
	_cleanup_close_ int fd = libc_copy(4 << 20);
	struct allocator allocator;
	struct elf_image image;
	uint64_t offset;

	assert_int_equal(elf_image_init(&image, fd), 0);
	offset = dynamic_symbol_offset(&image, "malloc");
	assert_int_equal(
		pwrite(fd, &undefined, sizeof(undefined), offset + offsetof(Elf64_Sym, st_shndx)),
		sizeof(undefined));
	offset = dynamic_symbol_offset(&image, "free");
	assert_int_equal(pwrite(fd, &resolver, 1, offset + offsetof(Elf64_Sym, st_info)), 1);
	elf_image_deinit(&image);

	assert_int_equal(elf_image_init(&image, fd), 0);
	elf_image_find_functions(&image, names, ARRAY_SIZE(names), functions);
	assert_false(functions[0].is_found);
	assert_false(functions[1].is_found);
	assert_true(functions[2].is_found);
	assert_int_equal(allocator_init(&allocator, &image, false), 0);
	assert_int_equal(allocator.nr, 0);
	allocator_deinit(&allocator);
	elf_image_deinit(&image);
}

/* Plans for any file in @fd; it only has to survive and free its memory. */
static void plan_from(int fd, bool with_operators)
{
	struct allocator allocator;
	struct probe_set set = {0};
	struct elf_image image;
	struct stat stat;
	uint32_t hash;

	assert_int_equal(fstat(fd, &stat), 0);
	if (elf_image_init(&image, fd))
		return;
	free(elf_image_interpreter(&image));
	elf_image_build_hash(&image, &hash);
	assert_int_equal(allocator_init(&allocator, &image, with_operators), 0);
	if (allocator.nr > 0) {
		const struct probe_source source = {fd, &image, &stat, "/x", "/x"};

		probe_plan_file(&set, &source, &allocator);
	}
	allocator_deinit(&allocator);
	for (size_t i = 0; i < set.nr_files; i++)
		for (size_t j = 0; j < set.files[i].nr_probes; j++)
			assert_true(set.files[i].probes[j].offset < (uint64_t)stat.st_size);
	probe_set_deinit(&set);
	elf_image_deinit(&image);
}

static void plan_anything(int fd)
{
	plan_from(fd, false);
	plan_from(fd, true);
}

static void truncated_files_are_survived(void **state)
{
	static const size_t sizes[] = {1, 4, 16, 63, 64, 65, 500, 4096, 100000, 700000, 1500000};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_close_ int fd = libc_copy(sizes[i]);

		plan_anything(fd);
	}
}

/* Overwrites @nr bytes somewhere in [@from, @to). */
static void damage(int fd, uint32_t *seed, uint64_t from, uint64_t to, int nr)
{
	for (int i = 0; i < nr; i++) {
		unsigned char byte;

		*seed = *seed * 1103515245u + 12345u;
		byte = *seed >> 24;
		*seed = *seed * 1103515245u + 12345u;
		assert_int_equal(pwrite(fd, &byte, 1, from + (*seed >> 4) % (to - from)), 1);
	}
}

static void damaged_headers_are_survived(void **state)
{
	uint32_t seed = 4711;

	for (int round = 0; round < 60; round++) {
		_cleanup_close_ int fd = libc_copy(4 << 20);
		struct stat stat;

		assert_int_equal(fstat(fd, &stat), 0);
		/* Class and machine stay, since otherwise the rest would not be read. */
		damage(fd, &seed, 0x20, 0x40 + 14 * 56, 1 + round % 8);
		damage(fd, &seed, stat.st_size - 4000, stat.st_size, 1 + round % 16);
		plan_anything(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libc_offsets_are_those_of_its_mapping),
		cmocka_unit_test(imported_functions_are_not_defined),
		cmocka_unit_test(plan_of_libc_has_each_address_once),
		cmocka_unit_test(plan_of_a_process_is_the_plan_of_its_libc),
		cmocka_unit_test(own_groups_name_this_process),
		cmocka_unit_test(bad_targets_are_refused),
		cmocka_unit_test(plt_stubs_and_resolvers_are_no_functions),
		cmocka_unit_test(truncated_files_are_survived),
		cmocka_unit_test(damaged_headers_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
