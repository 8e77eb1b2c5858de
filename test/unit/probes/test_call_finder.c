/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that a recording names are probed only where this program's own code has them. */
#include "common/scope.h"
#include "probes/calls/call_plan.h"
#include "probes/elf/debug_symbols.h"
#include "probes/x86/code_flow.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define CODE_BYTES 96

static void *volatile block;

/* Its first bytes are searched. */
static __attribute__((noinline)) void allocate_and_free(void)
{
	block = malloc(100);
	free(block);
	block = NULL;
}

static int find_base(struct dl_phdr_info *info, size_t size, void *base)
{
	*(uintptr_t *)base = info->dlpi_addr;
	/* The first one is this program. */
	return 1;
}

/* Where allocate_and_free() is in this program's file, whose build-id goes to @build_id. */
static uint64_t find_code(char build_id[CALL_BUILD_ID_SIZE])
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct debug_symbols_id id;
	struct elf_image image;
	uint64_t offset = 0;
	uintptr_t base = 0;

	dl_iterate_phdr(find_base, &base);
	assert_int_equal(elf_image_init(&image, fd), 0);
	assert_true(debug_symbols_id(&image, &id));
	for (size_t i = 0; i < id.build_id_size; i++)
		snprintf(build_id + 2 * i, 3, "%02x", id.build_id[i]);
	assert_true(elf_image_locate_code(&image, (uintptr_t)allocate_and_free - base, &offset));
	elf_image_deinit(&image);
	return offset;
}

/* A list that names every byte of the function, once as one kind and once as the other. */
static struct call_list list_all(void)
{
	char build_id[CALL_BUILD_ID_SIZE] = "", *text = NULL;
	uint64_t offset = find_code(build_id);
	struct call_list list;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	for (int kind = 0; kind < 2; kind++)
		for (size_t i = 0; i < CODE_BYTES; i++)
			fprintf(to, "%s 1\n\t%s\t0x%llx\t/some where\n\t-\t-\t-\n",
				kind ? "release" : "alloc", build_id,
				(unsigned long long)(offset + i));
	fclose(to);
	to = fmemopen(text, size, "r");
	assert_int_equal(call_list_read(&list, to), 0);
	assert_int_equal(list.nr, 2 * CODE_BYTES);
	fclose(to);
	free(text);
	return list;
}

/* How many probes of that point are on calls of the function. */
static size_t count_probes(const struct probe_set *set, const char *function,
			   enum probe_point point)
{
	size_t nr = 0;

	for (size_t i = 0; i < set->nr_files; i++)
		for (size_t k = 0; k < set->files[i].nr_probes; k++)
			nr += set->files[i].probes[k].point == point &&
			      strcmp(set->files[i].probes[k].schema->function, function) == 0;
	return nr;
}

/* The calls in the function, decoded from its beginning, are those that get probes. */
static void probes_are_on_calls(void **state)
{
#if !defined(__x86_64__)
	skip();
#endif
	void (*const function)(void) = allocate_and_free;
	struct call_list list = list_all();
	const uint8_t *code;
	struct probe_set set;

	assert_int_equal(call_plan_pid(&set, getpid(), &list), 0);
	assert_int_equal(set.nr_files, 1);
	assert_int_equal(count_probes(&set, "malloc", PROBE_ENTRY), 1);
	assert_int_equal(count_probes(&set, "malloc", PROBE_EXIT), 1);
	assert_int_equal(count_probes(&set, "free", PROBE_ENTRY), 1);
	assert_int_equal(set.files[0].nr_probes, 3);
	memcpy(&code, &function, sizeof(code));
	for (size_t i = 0; i < set.files[0].nr_probes; i++) {
		const struct probe *probe = &set.files[0].probes[i];
		uint64_t begin = list.frames[0].landing;
		struct instruction instruction;
		uint64_t at = 0;

		while (at < probe->function_offset - begin) {
			assert_true(instruction_decode(&instruction, code + at, CODE_BYTES));
			at += instruction.info.length;
		}
		assert_int_equal(at, probe->function_offset - begin);
		assert_true(instruction_decode(&instruction, code + at, CODE_BYTES));
		assert_int_equal(instruction.info.mnemonic, ZYDIS_MNEMONIC_CALL);
		assert_int_equal(instruction.info.length, probe->call.size_bytes);
		if (probe->point == PROBE_EXIT)
			assert_int_equal(probe->offset,
					 probe->function_offset + probe->call.size_bytes);
	}
	probe_set_deinit(&set);
	call_list_deinit(&list);
}

/* Only a place behind a call of the function leads to an entry, which is its first byte. */
static void entries_are_those_of_the_function(void **state)
{
#if !defined(__x86_64__)
	skip();
#endif
	void (*const function)(void) = allocate_and_free;
	char build_id[CALL_BUILD_ID_SIZE] = "";
	uint64_t offset = find_code(build_id);
	struct call_entry entries[CODE_BYTES + 2] = {0};
	const uint8_t *code;
	struct instruction instruction;
	struct probe_set set;
	size_t nr_found = 0, nr = 0;

	for (size_t i = 0; i < CODE_BYTES; i++)
		entries[i].address = (uintptr_t)function + i;
	memcpy(&code, &function, sizeof(code));
	entries[CODE_BYTES].address = (uintptr_t)entries; /* no code */
	assert_int_equal(call_plan_entries(&set, getpid(), entries, CODE_BYTES + 2), 0);
	for (size_t i = 0; i < CODE_BYTES + 2; i++)
		nr_found += entries[i].file_fd >= 0 && entries[i].offset == offset;
	/* Later functions, if they begin within these bytes, have entries of their own. */
	for (size_t at = 0; at < CODE_BYTES && nr < 2; at += instruction.info.length) {
		assert_true(instruction_decode(&instruction, code + at, CODE_BYTES));
		if (instruction.info.mnemonic != ZYDIS_MNEMONIC_CALL)
			continue;
		nr++;
		assert_true(entries[at + instruction.info.length].file_fd >= 0);
		assert_int_equal(entries[at + instruction.info.length].offset, offset);
	}
	assert_int_equal(nr, 2);
	assert_int_equal(nr_found, 2);
	assert_int_equal(entries[0].file_fd, -1);
	assert_int_equal(entries[CODE_BYTES].file_fd, -1);
	assert_int_equal(entries[CODE_BYTES + 1].file_fd, -1);
	probe_set_deinit(&set);
}

static void other_builds_have_no_calls(void **state)
{
	struct call_list list = list_all();
	struct probe_set set;

	for (size_t i = 0; i < list.nr_frames; i++)
		if (*list.frames[i].build_id)
			list.frames[i].build_id[0] ^= 1;
	assert_int_equal(call_plan_pid(&set, getpid(), &list), -ENODATA);
	call_list_deinit(&list);
}

static int read_text(const char *text)
{
	FILE *from = fmemopen((char *)text, strlen(text), "r");
	struct call_list list;
	int err = call_list_read(&list, from);

	fclose(from);
	call_list_deinit(&list);
	return err;
}

static void texts_may_be_bad(void **state)
{
	assert_int_equal(read_text("# nothing\n"), -ENODATA);
	assert_int_equal(read_text("alloc 1\n\t-\t-\t-\n"), 0);
	assert_int_equal(read_text("observed 1.5\nalloc 1\n\t-\t-\t-\n"), 0);
	assert_int_equal(read_text("observed x\nalloc 1\n\t-\t-\t-\n"), -EINVAL);
	assert_int_equal(read_text("observed nan\nalloc 1\n\t-\t-\t-\n"), -EINVAL);
	assert_int_equal(read_text("alloc\n"), -EINVAL);
	assert_int_equal(read_text("alloc -1\n"), -EINVAL);
	assert_int_equal(read_text("alloc 1x\n"), -EINVAL);
	assert_int_equal(read_text("\tab\t0x10\t/x\n"), -EINVAL);
	assert_int_equal(read_text("alloc 1\n\tab\n"), -EINVAL);
	assert_int_equal(read_text("alloc 1\n\tab\t0x1z\t/x\n"), -EINVAL);
	assert_int_equal(read_text("alloc 1\n\tab\t0xffffffffffffffff\t/x\n"), -EINVAL);
	/* A build-id that is too long, or none, is that of no file. */
	assert_int_equal(
		read_text("alloc 1\n\t0123456789012345678901234567890123456789012\t0x1\t/x\n"
			  "\t../..\t0x1\t/x\n"),
		0);
	assert_int_equal(read_text("free 1\n"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_are_on_calls),
		cmocka_unit_test(entries_are_those_of_the_function),
		cmocka_unit_test(other_builds_have_no_calls),
		cmocka_unit_test(texts_may_be_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
