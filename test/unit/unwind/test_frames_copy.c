/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is copied of a file that others than root can change, and how much of many such files. */
#include "common/elf/elf_section.h"
#include "test/unit/unwind/made_file.h"
#include "unwind/modules/frames_copy.h"

#include <dirent.h>
#include <zlib.h>

#define LARGE (96u << 10) /* whole symbols */

static uint8_t content[LARGE];

#define LARGE_SECTION(NAME, TYPE, FLAGS)                                                           \
	{                                                                                          \
		.name = (NAME), .type = (TYPE), .flags = (FLAGS), .data = content,                 \
		.size = sizeof(content)                                                            \
	}

/* Copies the file. Returns the descriptor of the copy, or -1. */
static int copy_of(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t bytes;

	assert_true(fd >= 0);
	return frames_copy(fd, &bytes);
}

/* Writes, in the order of the sections, the first letter of the names of those that are copied. */
static void list_copied(const char *path, char *ret)
{
	_cleanup_close_ int fd = copy_of(path);
	struct elf_section section = {0};
	Elf *elf;

	assert_true(fd >= 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	while (elf_section_next(elf, &section)) {
		const Elf_Data *data = elf_rawdata(section.handle, NULL);

		if (section.header.sh_type == SHT_STRTAB && section.header.sh_size < LARGE)
			break;
		if (!data || !data->d_buf || data->d_size == 0 ||
		    memcmp(data->d_buf, content, data->d_size) != 0)
			continue;
		*ret++ = section.name[1];
	}
	*ret = '\0';
	elf_end(elf);
}

/* Call frame information always; symbols and code only where unwinding looks for them. */
static void copied_parts(void **state)
{
	const struct {
		const char *special;
		uint64_t entry;
		const char *expected;
	} programs[] = {
		{".library", 0, "edzln"},
		{".interp", 0x100, "edzin"},
		{".gopclntab", 0, "edzgnss"},
		{".static", 0x100, "edzsntss"},
	};

	memset(content, 'x', sizeof(content));
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		const struct added_section sections[] = {
			LARGE_SECTION(".bulk_info", SHT_PROGBITS, 0),
			LARGE_SECTION(".debug_info", SHT_PROGBITS, 0),
			LARGE_SECTION(".eh_frame", SHT_PROGBITS, 0),
			LARGE_SECTION(".debug_frame", SHT_PROGBITS, 0),
			LARGE_SECTION(".zdebug_frame", SHT_PROGBITS, 0),
			FRAMES_IN(".debug_line", 0, content, 16),
			FRAMES_IN(programs[i].special, 0, content, 16),
			FRAMES_IN(".note", 0, content, 16),
			LARGE_SECTION(".text", SHT_PROGBITS, SHF_EXECINSTR),
			LARGE_SECTION(".symtab", SHT_SYMTAB, 0),
			LARGE_SECTION(".strtab", SHT_STRTAB, 0),
		};
		char copied[ARRAY_SIZE(sections) + 1];
		int fd;

		write_sections(in_dir("file"), sections, ARRAY_SIZE(sections));
		fd = open(in_dir("file"), O_WRONLY | O_CLOEXEC);
		assert_int_equal(pwrite(fd, &programs[i].entry, sizeof(programs[i].entry),
					offsetof(Elf64_Ehdr, e_entry)),
				 sizeof(programs[i].entry));
		close(fd);
		list_copied(in_dir("file"), copied);
		assert_string_equal(copied, programs[i].expected);
	}
}

#define HUGE (60u << 20)

/* Makes a file with a .debug_frame of @size, most of which is a hole. */
static void write_huge(const char *path, uint64_t size)
{
	const struct added_section section = FRAMES_IN(".debug_frame", 0, content, 64);
	Elf64_Ehdr header;
	int fd;

	write_sections(path, &section, 1);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(pwrite(fd, &size, sizeof(size),
				(off_t)(header.e_shoff + sizeof(Elf64_Shdr) +
					offsetof(Elf64_Shdr, sh_size))),
			 sizeof(size));
	assert_int_equal(ftruncate(fd, (off_t)size + LARGE), 0);
	assert_int_equal(fchmod(fd, 0666), 0);
	close(fd);
}

static uint64_t copied_bytes(void)
{
	DIR *fds = opendir("/proc/self/fd");
	const struct dirent *entry;
	uint64_t bytes = 0;
	char link[64];
	struct stat st;

	assert_non_null(fds);
	while ((entry = readdir(fds))) {
		ssize_t nr = readlinkat(dirfd(fds), entry->d_name, link, sizeof(link));

		if (nr > 7 && memcmp(link, "/memfd:", 7) == 0 &&
		    fstatat(dirfd(fds), entry->d_name, &st, 0) == 0)
			bytes += (uint64_t)st.st_blocks * 512;
	}
	closedir(fds);
	return bytes;
}

/* Copies are closed when they take too much together, and too large ones are not made. */
static void large_copies(void **state)
{
	uint64_t registers[20] = {[6] = STACK_ADDRESS, [7] = STACK_ADDRESS}, max = 0;
	const struct stack_dump dump = {
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = X86_MASK,
		.regs = registers,
		.bytes = content,
		.nr_bytes = sizeof(content),
	};
	struct stack_store *store;
	uint32_t id;

	memset(content, 0, sizeof(content));
	write_huge(in_dir("file"), 2 * HUGE);
	assert_int_equal(copy_of(in_dir("file")), -1);
	write_huge(in_dir("file"), HUGE);
	assert_int_equal(stack_store_create(NULL, &store), 0);
	for (uint64_t i = 0; i < 5; i++) {
		char path[512];
		const struct stack_mapping mapping = {.pid = 1,
						      .start = LOAD_ADDRESS + i * UNWIND_STEP,
						      .len = 0x1000,
						      .path = path};

		snprintf(path, sizeof(path), "%s-%u", in_dir("file"), (unsigned int)i);
		assert_int_equal(link(in_dir("file"), path), 0);
		assert_int_equal(stack_store_map(store, &mapping), 0);
		registers[8] = mapping.start + BESIDE;
		assert_int_equal(stack_store_add_dump(store, 1, &dump, &id), 0);
		if (copied_bytes() > max)
			max = copied_bytes();
	}
	assert_in_range(max, HUGE, 4 * HUGE - 1);
	stack_store_destroy(store);
}

#define SPARSE	  (1u << 30)
#define NR_STACKS 40
#define NR_PAGES  1024 /* of a stack */

/* Makes a file with a section of code, which is a hole, and its section table behind that. */
static void write_code(const char *path)
{
	const struct added_section section = FRAMES_IN(".text", SHF_EXECINSTR, content, 64);
	struct {
		Elf64_Ehdr file;
		Elf64_Phdr segment;
	} head;
	Elf64_Shdr headers[3];
	int fd;

	write_sections(path, &section, 1);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pread(fd, headers, sizeof(headers), (off_t)head.file.e_shoff),
			 sizeof(headers));
	head.file.e_shoff = SPARSE;
	head.segment.p_filesz = head.segment.p_memsz = SPARSE;
	headers[1].sh_size = SPARSE - headers[1].sh_offset;
	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pwrite(fd, headers, sizeof(headers), SPARSE), sizeof(headers));
	assert_int_equal(fchmod(fd, 0666), 0);
	close(fd);
}

/* Where a file has a hole, a copy that is read takes memory. */
static void holes(void **state)
{
	static uint64_t words[2 * NR_PAGES];
	uint64_t registers[20] = {[6] = STACK_ADDRESS, [7] = STACK_ADDRESS}, page = 1;
	const struct stack_dump dump = {
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = X86_MASK,
		.regs = registers,
		.bytes = (const uint8_t *)words,
		.nr_bytes = sizeof(words),
	};
	const struct stack_mapping mapping = {
		.pid = 1, .start = LOAD_ADDRESS, .len = SPARSE, .path = in_dir("code")};
	struct stack_store *store;
	uint32_t id;

	write_code(mapping.path);
	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);
	for (size_t i = 0; i < NR_STACKS; i++) {
		/* Frame pointers and return addresses */
		for (size_t j = 0; j < NR_PAGES; j++) {
			words[2 * j] = STACK_ADDRESS + 16 * (j + 1);
			words[2 * j + 1] = LOAD_ADDRESS + 4096 * page++;
		}
		registers[8] = words[1];
		assert_int_equal(stack_store_add_dump(store, 1, &dump, &id), 0);
	}
	assert_in_range(copied_bytes(), 1, 1 << 20);
	stack_store_destroy(store);
}

#define EXPANDED    (60u << 20)
#define NR_EXPANDED 8
/* ASan keeps 256 MiB of what was freed. */
#ifdef __SANITIZE_ADDRESS__
#define MAX_EXPANDED_KIB ((4 * EXPANDED + (256u << 20)) >> 10)
#else
#define MAX_EXPANDED_KIB (4 * EXPANDED >> 10)
#endif

/* libdw expands a .debug_frame, and keeps it. */
static void expanded_frames(void **state)
{
	_cleanup_free_ uint8_t *frames = malloc(EXPANDED), *packed = malloc(EXPANDED / 100);
	const Elf64_Chdr compression = {
		.ch_type = ELFCOMPRESS_ZLIB, .ch_size = EXPANDED, .ch_addralign = 1};
	uLongf size = EXPANDED / 100 - sizeof(compression);
	char names[NR_EXPANDED][512];
	const char *paths[NR_EXPANDED];
	uint64_t words[NR_EXPANDED];
	uint8_t *at = frames;
	struct rusage usage;

	assert_true(frames && packed);
	put_common(&at, 0);
	put_entry(&at, BESIDE, NULL, 0);
	put_common(&at, EXPANDED - 2 * FRAMES_MAX);
	memset(at, 0, EXPANDED - (size_t)(at - frames));
	memcpy(packed, &compression, sizeof(compression));
	assert_int_equal(compress2(packed + sizeof(compression), &size, frames, EXPANDED, 1), Z_OK);
	const struct added_section section =
		FRAMES_IN(".debug_frame", SHF_COMPRESSED, packed, sizeof(compression) + size);

	for (size_t i = 0; i < NR_EXPANDED; i++) {
		snprintf(names[i], sizeof(names[i]), "%s-%zu", in_dir("expanded"), i);
		paths[i] = names[i];
		words[i] = LOAD_ADDRESS + (i + 1) % NR_EXPANDED * UNWIND_STEP + BESIDE + 4;
		write_sections(paths[i], &section, 1);
		assert_int_equal(chmod(paths[i], 0666), 0);
	}
	unwind_words(paths, NR_EXPANDED, BESIDE, words, NR_EXPANDED, &usage);
	assert_in_range(usage.ru_maxrss, 1, own_kib() + MAX_EXPANDED_KIB);
}

static int setup(void **state)
{
	return scratch_dir_create("frames-copy");
}

static int teardown(void **state)
{
	scratch_dir_remove();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copied_parts),
		cmocka_unit_test(large_copies),
		cmocka_unit_test(holes),
		cmocka_unit_test(expanded_frames),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
