/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is copied of a file that others than root can change, and how much of many such files. */
#include "common/elf/elf_section.h"
#include "test/unit/unwind/made_file.h"
#include "unwind/modules/frames_copy.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
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
		if (!data || !data->d_buf || data->d_size == 0 || data->d_size > LARGE ||
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
	static const Elf64_Dyn needed = {.d_tag = DT_NEEDED};
	const struct {
		const char *special;
		uint64_t entry;
		const char *expected;
		const void *data;
	} programs[] = {
		{".library", 0, "edzln", content},     {".interp", 0x100, "edzin", content},
		{".gopclntab", 0, "edzgnss", content}, {".static", 0x100, "edzsntss", content},
		{".dynamic", 0x100, "edzn", &needed},  {".dynamic", 0x100, "edzdntss", content},
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
			FRAMES_IN(programs[i].special, 0, programs[i].data, 16),
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

/* libdwfl would relocate it. */
static void relocatable_file(void **state)
{
	const uint16_t type = ET_REL;
	int fd;

	write_sections(in_dir("file"), NULL, 0);
	fd = open(in_dir("file"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &type, sizeof(type), offsetof(Elf64_Ehdr, e_type)),
			 sizeof(type));
	close(fd);
	assert_int_equal(copy_of(in_dir("file")), -ENOEXEC);
}

#define NR_ATTEMPTS 3000

struct changing_file {
	Elf64_Ehdr *header; /* what is written there, is in the file */
	atomic_bool is_done;
};

static void *change_type(void *context)
{
	struct changing_file *file = context;

	while (!file->is_done) {
		__atomic_store_n(&file->header->e_type, ET_REL, __ATOMIC_RELAXED);
		__atomic_store_n(&file->header->e_type, ET_DYN, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* A header that has been looked at is not read again, where the whole file is copied. */
static void changing_header(void **state)
{
	_cleanup_close_ int fd = -1;
	struct changing_file file = {0};
	pthread_t thread;
	Elf64_Ehdr copied;
	size_t nr_others = 0;
	uint64_t bytes;

	write_sections(in_dir("changing"), NULL, 0);
	fd = open(in_dir("changing"), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	file.header = mmap(NULL, sizeof(*file.header), PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(file.header, MAP_FAILED);
	assert_int_equal(pthread_create(&thread, NULL, change_type, &file), 0);
	for (size_t i = 0; i < NR_ATTEMPTS; i++) {
		_cleanup_close_ int copy = frames_copy(fd, &bytes);

		if (copy < 0)
			continue;
		assert_int_equal(pread(copy, &copied, sizeof(copied), 0), sizeof(copied));
		nr_others += copied.e_type != ET_DYN;
	}
	file.is_done = true;
	pthread_join(thread, NULL);
	munmap(file.header, sizeof(*file.header));
	assert_int_equal(nr_others, 0);
}

#define HUGE (60u << 20)

static const uint8_t build_id[] = {4,	0,   0,	  0, 8, 0, 0, 0, 3, 0, 0, 0,
				   'G', 'N', 'U', 0, 1, 2, 3, 4, 5, 6, 7, 8};

#define BUILD_ID                                                                                   \
	{                                                                                          \
		.name = ".note", .type = SHT_NOTE, .data = build_id, .size = sizeof(build_id)      \
	}

/* Makes a file with a .debug_frame of @size, most of which is a hole. */
static void write_huge(const char *path, uint64_t size)
{
	const struct added_section sections[] = {FRAMES_IN(".debug_frame", 0, content, 64),
						 BUILD_ID};
	Elf64_Ehdr header;
	int fd;

	write_sections(path, sections, ARRAY_SIZE(sections));
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

#define MAX_COPIES 64

/* Returns what all copies take. *@ret_nr: how many there are; each may have several descriptors. */
static uint64_t copied_bytes(size_t *ret_nr)
{
	DIR *fds = opendir("/proc/self/fd");
	const struct dirent *entry;
	ino_t seen[MAX_COPIES];
	uint64_t bytes = 0;
	size_t nr = 0, i;
	char link[64];
	struct stat st;

	assert_non_null(fds);
	while ((entry = readdir(fds))) {
		ssize_t size = readlinkat(dirfd(fds), entry->d_name, link, sizeof(link));

		if (size <= 13 || memcmp(link, "/memfd:frames", 13) != 0 ||
		    fstatat(dirfd(fds), entry->d_name, &st, 0) != 0)
			continue;
		for (i = 0; i < nr && seen[i] != st.st_ino; i++)
			;
		if (i < nr)
			continue;
		assert_true(nr < MAX_COPIES);
		seen[nr++] = st.st_ino;
		bytes += (uint64_t)st.st_blocks * 512;
	}
	closedir(fds);
	*ret_nr = nr;
	return bytes;
}

#define NR_LARGE 6

/* Unwinds through large files. Returns what their copies take at most. */
static uint64_t unwind_large(char paths[NR_LARGE][512])
{
	uint64_t registers[20] = {[6] = STACK_ADDRESS, [7] = STACK_ADDRESS}, bytes, max = 0;
	const struct stack_dump dump = X86_DUMP(registers, content);
	struct stack_store *store;
	uint32_t id;
	size_t nr;

	memset(content, 0, sizeof(content));
	assert_int_equal(stack_store_create(NULL, &store), 0);
	for (uint64_t i = 0; i < NR_LARGE; i++) {
		const struct stack_mapping mapping = {.pid = 1,
						      .start = LOAD_ADDRESS + i * UNWIND_STEP,
						      .len = 0x1000,
						      .path = paths[i]};

		assert_int_equal(stack_store_map(store, &mapping), 0);
		registers[8] = mapping.start + BESIDE;
		assert_int_equal(stack_store_add_dump(store, 1, &dump, &id), 0);
		bytes = copied_bytes(&nr);
		if (bytes > max)
			max = bytes;
	}
	stack_store_destroy(store);
	copied_bytes(&nr);
	assert_int_equal(nr, 0);
	return max;
}

/* Copies are closed when they take too much together, and too large ones are not made. */
static void large_copies(void **state)
{
	char paths[NR_LARGE][512];

	write_huge(in_dir("file"), 2 * HUGE);
	assert_int_equal(copy_of(in_dir("file")), -E2BIG);
	for (size_t i = 0; i < NR_LARGE; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s-%zu", in_dir("file"), i);
		write_huge(paths[i], HUGE);
	}
	assert_in_range(unwind_large(paths), HUGE, 4 * HUGE - 1);
}

/* Without a copy, the file has no call frame information. That is said, of one file. */
static void too_large_copies(void **state)
{
	int saved = dup(STDERR_FILENO), fd = memfd_create("stderr", MFD_CLOEXEC);
	char paths[NR_LARGE][512], text[1024] = "";
	const char *reason;

	for (size_t i = 0; i < NR_LARGE; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s-%zu", in_dir("too-large"), i);
		write_huge(paths[i], 2 * HUGE);
	}
	dup2(fd, STDERR_FILENO);
	unwind_large(paths);
	dup2(saved, STDERR_FILENO);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	close(saved);
	close(fd);
	reason = strstr(text,
			"too-large-0: cannot copy its call frame information: it has more than");
	assert_non_null(reason);
	assert_null(strstr(reason + strlen("too-large-0: cannot"), "cannot"));
}

#define NAMES_BYTES (256u << 10)

/* A file may have many sections, with long names. */
static void long_names(void **state)
{
	_cleanup_free_ char *name = malloc(NAMES_BYTES);
	char copied[4];

	assert_non_null(name);
	memset(name, 'n', NAMES_BYTES - 1);
	name[NAMES_BYTES - 1] = '\0';
	memset(content, 'x', sizeof(content));
	const struct added_section sections[] = {
		FRAMES_IN(name, 0, content, 16),
		LARGE_SECTION(".eh_frame", SHT_PROGBITS, 0),
		LARGE_SECTION(".info", SHT_PROGBITS, 0),
	};

	write_sections(in_dir("names"), sections, ARRAY_SIZE(sections));
	list_copied(in_dir("names"), copied);
	assert_string_equal(copied, "ne");
}

/* Those of debug files are found later than the others. */
static void large_debug_copies(void **state)
{
	const struct added_section note = BUILD_ID;
	char paths[NR_LARGE][512], debug_name[64];

	for (size_t i = 0; i < NR_LARGE; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s-%zu", in_dir("stripped"), i);
		write_sections(paths[i], &note, 1);
		snprintf(debug_name, sizeof(debug_name), "stripped-%zu.debug", i);
		write_huge(in_dir(debug_name), HUGE);
	}
	assert_in_range(unwind_large(paths), HUGE, 4 * HUGE - 1);
}

/* Writes a file with a row that no rule has, for BESIDE: libdwfl has to unwind. */
static void write_complex(const char *path)
{
	/* def_cfa_expression rsp + 8, lit0, plus */
	static const uint8_t row[] = {0x0f, 0x04, 0x77, 0x08, 0x30, 0x22};
	uint8_t frames[FRAMES_MAX], *at = frames;

	put_common(&at, 0);
	put_entry(&at, BESIDE, row, sizeof(row));
	const struct added_section section =
		FRAMES_IN(".debug_frame", 0, frames, (size_t)(at - frames));

	write_sections(path, &section, 1);
	assert_int_equal(chmod(path, 0666), 0);
}

/* Puts an entry for BESIDE, and one that takes the rest of a huge section. */
static void put_huge(uint8_t *at)
{
	const uint8_t *begin = at;
	uint32_t size;

	put_common(&at, 0);
	put_entry(&at, BESIDE, NULL, 0);
	size = HUGE - (uint32_t)(at - begin) - sizeof(size);
	put_common(&at, 0);
	memcpy(at - 20, &size, sizeof(size));
}

/* Each frame of a stack is in another file, root's or not, and takes its debug file. */
static void copies_for_one_stack(void **state)
{
	const struct added_section note = BUILD_ID;
	const uint64_t registers[20] = {
		[6] = STACK_ADDRESS, [7] = STACK_ADDRESS, [8] = LOAD_ADDRESS + BESIDE};
	uint64_t words[NR_LARGE + 1] = {0};
	const struct stack_dump dump = X86_DUMP(registers, words);
	struct stack_mapping mapping = {
		.pid = 1, .start = LOAD_ADDRESS, .len = 0x1000, .path = in_dir("complex")};
	char path[512], debug_name[64];
	struct stack_store *store;
	uint32_t id;
	size_t nr;

	memset(content, 0, sizeof(content));
	put_huge(content);
	write_complex(mapping.path);
	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);
	for (size_t i = 0; i < NR_LARGE; i++) {
		snprintf(path, sizeof(path), "%s-%zu", in_dir("framed"), i);
		write_sections(path, &note, 1);
		assert_int_equal(chmod(path, i % 2 ? 0666 : 0600), 0);
		snprintf(debug_name, sizeof(debug_name), "framed-%zu.debug", i);
		write_huge(in_dir(debug_name), HUGE);
		mapping.start += UNWIND_STEP;
		mapping.path = path;
		assert_int_equal(stack_store_map(store, &mapping), 0);
		words[i] = mapping.start + BESIDE + 4;
	}
	assert_int_equal(stack_store_add_dump(store, 1, &dump, &id), 0);
	assert_int_equal(stack_store_unwind_stats(store)->by_dwfl, 1);
	assert_in_range(copied_bytes(&nr), HUGE, 4 * HUGE - 1);
	stack_store_destroy(store);
}

#define NR_PROCESSES 8

/* One copy of a file is enough, for rules and for libdwfl in each process. */
static void shared_copies(void **state)
{
	const uint64_t registers[20] = {
		[6] = STACK_ADDRESS, [7] = STACK_ADDRESS, [8] = LOAD_ADDRESS + BESIDE};
	const struct stack_dump dump = X86_DUMP(registers, content);
	struct stack_store *store;
	uint32_t id;
	size_t nr;

	write_complex(in_dir("shared"));
	assert_int_equal(stack_store_create(NULL, &store), 0);
	for (pid_t pid = 1; pid <= NR_PROCESSES; pid++) {
		const struct stack_mapping mapping = {
			.pid = pid, .start = LOAD_ADDRESS, .len = 0x1000, .path = in_dir("shared")};

		assert_int_equal(stack_store_map(store, &mapping), 0);
		assert_int_equal(stack_store_add_dump(store, pid, &dump, &id), 0);
	}
	assert_int_equal(stack_store_unwind_stats(store)->by_dwfl, NR_PROCESSES);
	copied_bytes(&nr);
	assert_int_equal(nr, 1);
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
	const struct stack_dump dump = X86_DUMP(registers, words);
	const struct stack_mapping mapping = {
		.pid = 1, .start = LOAD_ADDRESS, .len = SPARSE, .path = in_dir("code")};
	struct stack_store *store;
	uint32_t id;
	size_t nr;

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
	assert_in_range(copied_bytes(&nr), 1, 1 << 20);
	stack_store_destroy(store);
}

/* libdwfl may ask for a constant that was not copied. 0 would be the end of a stack. */
static void constants(void **state)
{
	/* The return address: expression, DW_OP_addr of .rodata + 64 */
	static const uint8_t at_constant[] = {0x10, 16, 9, 0x03, 0x40, FRAME_FILE_MAX >> 8,
					      0,    0,	0, 0,	 0,    0};
	const uint64_t registers[20] = {
		[6] = STACK_ADDRESS, [7] = STACK_ADDRESS, [8] = LOAD_ADDRESS + BESIDE};
	/* Of the segment: in the file, in memory */
	const uint64_t sizes[] = {FRAME_FILE_MAX + LARGE, FRAME_FILE_MAX + LARGE};
	uint8_t frames[FRAMES_MAX], *at = frames;
	const struct stack_dump dump = {
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = X86_MASK,
		.regs = registers,
		.bytes = content,
		.nr_bytes = 64,
	};
	const struct stack_mapping mapping = {
		.pid = 1, .start = LOAD_ADDRESS, .len = 0x1000, .path = in_dir("constants")};
	struct stack_store *store;
	uint32_t id;
	int fd;

	memset(content, 'x', sizeof(content));
	put_common(&at, 0);
	put_entry(&at, BESIDE, at_constant, sizeof(at_constant));
	const struct added_section sections[] = {
		LARGE_SECTION(".rodata", SHT_PROGBITS, 0),
		FRAMES_IN(".debug_frame", 0, frames, (size_t)(at - frames)),
	};

	write_sections(mapping.path, sections, ARRAY_SIZE(sections));
	fd = open(mapping.path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, sizes, sizeof(sizes),
				sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_filesz)),
			 sizeof(sizes));
	assert_int_equal(fchmod(fd, 0666), 0);
	close(fd);
	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);
	assert_int_equal(stack_store_add_dump(store, 1, &dump, &id), 0);
	assert_int_equal(stack_store_unwind_stats(store)->by_dwfl, 1);
	assert_int_equal(stack_store_unwind_stats(store)->lost, 1);
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

	assert_non_null(frames);
	assert_non_null(packed);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copied_parts),	      cmocka_unit_test(relocatable_file),
		cmocka_unit_test(changing_header),    cmocka_unit_test(large_copies),
		cmocka_unit_test(too_large_copies),   cmocka_unit_test(long_names),
		cmocka_unit_test(large_debug_copies), cmocka_unit_test(copies_for_one_stack),
		cmocka_unit_test(shared_copies),      cmocka_unit_test(holes),
		cmocka_unit_test(constants),	      cmocka_unit_test(expanded_frames),
	};

	return cmocka_run_group_tests(tests, scratch_dir_setup, scratch_dir_teardown);
}
