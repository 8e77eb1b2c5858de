/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The USDT probes of this program, from <leaktools/leak_probes.h> and from hand-made notes. */
#include "probes/elf/usdt_notes.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <leaktools/leak_probes.h>

#define MAX_PROBES 16

/* A note of provider "test": its address, semaphore and strings. */
#define NOTE(address, semaphore, strings)                                                          \
	".pushsection .note.stapsdt,\"\",\"note\"\n"                                               \
	".balign 4\n"                                                                              \
	".4byte 2f-1f, 4f-3f, 3\n"                                                                 \
	"1: .asciz \"stapsdt\"\n"                                                                  \
	"2: .balign 4\n"                                                                           \
	"3: .8byte " address "\n"                                                                  \
	".8byte _.stapsdt.base\n"                                                                  \
	".8byte " semaphore "\n"                                                                   \
	".asciz \"test\"\n" strings "4: .balign 4\n"                                               \
	".popsection\n"

/* A nop that may not be probed (docs/placement.md). */
#if defined(__x86_64__)
#define NOP5 ".byte 0x0f, 0x1f, 0x44, 0, 0\n"
#else
#define NOP5 ""
#endif
#define SIXTY_FOUR "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* The test's own notes. This never runs. */
__attribute__((used, noinline)) static void notes(void)
{
	__asm__ volatile(
		"91: nop\n" NOTE("91b", "0", ".asciz \"one\"\n.asciz \"8@%rdi -4@$7\"\n")
		/* once more */
		NOTE("91b", "0", ".asciz \"one\"\n.asciz \"8@%rdi -4@$7\"\n") "92: nop\n" NOP5 NOTE(
			"92b", "92b", ".asciz \"two\"\n.asciz \"\"\n")
		/* Addresses of the long nop, inside it, outside the file, outside code. */
		NOTE("92b + 1", "0", ".asciz \"x\"\n.asciz \"\"\n")
			NOTE("92b + 2", "0", ".asciz \"x\"\n.asciz \"\"\n")
				NOTE("-1", "0", ".asciz \"x\"\n.asciz \"\"\n")
					NOTE("_.stapsdt.base", "0", ".asciz \"x\"\n.asciz \"\"\n")
		/* Strings without an end, missing ones, too long ones. */
		NOTE("91b", "0", ".asciz \"x\"\n.ascii \"8@%rdi!\"\n") NOTE("91b", "0", "")
			NOTE("91b", "0", ".asciz \"" SIXTY_FOUR "\"\n.asciz \"\"\n"));
}

static int open_self(struct elf_image *ret)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_image_init(ret, fd), 0);
	return fd;
}

static void close_image(struct elf_image *image, int fd)
{
	elf_image_deinit(image);
	close(fd);
}

__attribute__((noinline)) static void pass_marks(const char *text)
{
	LEAK_MARK("a mark");
	LEAK_MARK(text);
}

static void the_header_s_marks_are_found(void **state)
{
	struct usdt_probes probes;
	struct elf_image image;
	int fd = open_self(&image);

	pass_marks("another");
	assert_int_equal(usdt_probes_find(&image, "leaktools", MAX_PROBES, &probes), 0);
	assert_int_equal(probes.nr, 2);
	assert_int_equal(probes.nr_rejected, 0);
	for (size_t i = 0; i < probes.nr; i++) {
		assert_string_equal(probes.probes[i].name, "leak_mark");
		assert_false(probes.probes[i].has_semaphore);
#if defined(__x86_64__)
		assert_string_equal(probes.probes[i].arguments, "8@%rdi");
#endif
	}
	assert_int_not_equal(probes.probes[0].offset, probes.probes[1].offset);
	usdt_probes_deinit(&probes);
	close_image(&image, fd);
}

static void only_what_can_be_is_taken_and_once(void **state)
{
	struct usdt_probes probes;
	struct elf_image image;
	int fd = open_self(&image);

	assert_int_equal(usdt_probes_find(&image, "test", MAX_PROBES, &probes), 0);
	assert_int_equal(probes.nr, 2);
	assert_string_equal(probes.probes[0].name, "one");
	assert_string_equal(probes.probes[0].arguments, "8@%rdi -4@$7");
	assert_string_equal(probes.probes[1].name, "two");
	assert_true(probes.probes[1].has_semaphore);
	assert_int_equal(probes.nr_rejected, 7);
	usdt_probes_deinit(&probes);
	assert_int_equal(usdt_probes_find(&image, "test", 1, &probes), 0);
	assert_int_equal(probes.nr, 1);
	assert_int_equal(probes.nr_rejected, 8);
	usdt_probes_deinit(&probes);
	assert_int_equal(usdt_probes_find(&image, "nobody", MAX_PROBES, &probes), 0);
	assert_int_equal(probes.nr + probes.nr_rejected, 0);
	usdt_probes_deinit(&probes);
	close_image(&image, fd);
}

/* A copy of this program's file in memory. */
static int copy_self(uint8_t **ret_bytes, size_t *ret_size)
{
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int copy = memfd_create("copy", MFD_CLOEXEC);
	off_t size = lseek(self, 0, SEEK_END);

	assert_true(self >= 0 && copy >= 0 && size > 0);
	assert_int_equal(ftruncate(copy, size), 0);
	*ret_bytes = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
	*ret_size = (size_t)size;
	assert_true(*ret_bytes != MAP_FAILED);
	assert_int_equal(pread(self, *ret_bytes, *ret_size, 0), size);
	close(self);
	return copy;
}

/* Finds the section of the notes. */
static void find_notes(const struct elf_image *image, size_t *ret_at, size_t *ret_size)
{
	Elf_Scn *section = NULL;
	size_t names;

	*ret_size = 0;
	assert_int_equal(elf_getshdrstrndx(image->elf, &names), 0);
	while ((section = elf_nextscn(image->elf, section))) {
		GElf_Shdr header;

		assert_non_null(gelf_getshdr(section, &header));
		if (strcmp(elf_strptr(image->elf, names, header.sh_name), ".note.stapsdt") == 0) {
			*ret_at = header.sh_offset;
			*ret_size = header.sh_size;
		}
	}
	assert_int_not_equal(*ret_size, 0);
}

/* Whatever the notes hold, the probes found are within the file, and limited. */
static void any_bytes_do_no_harm(void **state)
{
	size_t size, at = 0, notes_size;
	uint8_t *bytes, whole[1024];
	struct elf_image image;
	int fd = copy_self(&bytes, &size);
	unsigned int seed = 1;

	assert_int_equal(elf_image_init(&image, fd), 0);
	find_notes(&image, &at, &notes_size);
	assert_true(notes_size <= sizeof(whole));
	memcpy(whole, bytes + at, notes_size);
	for (int round = 0; round < 20000; round++) {
		struct usdt_probes probes;

		memcpy(bytes + at, whole, notes_size);
		for (int i = 0; i <= round % 8; i++) {
			size_t where = (size_t)rand_r(&seed) % sizeof(whole);

			if (where < notes_size)
				bytes[at + where] = (uint8_t)rand_r(&seed);
		}
		assert_int_equal(usdt_probes_find(&image, "test", MAX_PROBES, &probes), 0);
		assert_true(probes.nr <= MAX_PROBES);
		for (size_t i = 0; i < probes.nr; i++)
			assert_true(probes.probes[i].offset < size);
		usdt_probes_deinit(&probes);
	}
	close_image(&image, fd);
	munmap(bytes, size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_header_s_marks_are_found),
		cmocka_unit_test(only_what_can_be_is_taken_and_once),
		cmocka_unit_test(any_bytes_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
