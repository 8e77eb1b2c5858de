/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that would end the process that unwinds through them, or use up its memory. */
#include "unwind/stacks/stack_store.h"

#include "common/scope.h"
#include "test/support/frame_file.h"
#include "test/unit/unwind/scratch_dir.h"

#include <elf.h>
#include <linux/perf_event.h>
#include <sys/resource.h>

#include <zlib.h>

#define X86_MASK      0xff0fffull
#define ARM64_MASK    0x1ffffffffull
#define LOAD_ADDRESS  0x7f0000000000ull
#define STACK_ADDRESS 0x7ffc00000000ull

static void write_file(const char *path, const void *content, size_t size)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, size), size);
}

/*
 * Unwinds a stack of return addresses through each of the made files, twice, in a child: one row
 * raises SIGFPE in libdwfl, one makes libdw take 2 GiB.
 */
static void unwind_made_files(const char *path)
{
	static uint64_t bytes[64];
	uint64_t registers[33];
	uint32_t id;

	for (size_t i = 0; i < ARRAY_SIZE(registers); i++)
		registers[i] = STACK_ADDRESS;
	for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
		bytes[i] = i % 2 ? LOAD_ADDRESS + FRAME_FILE_INSIDE : STACK_ADDRESS + 8 * (i + 2);
	for (size_t i = 0; i < FRAME_NR_ENTRIES; i++) {
		const bool is_arm64 = frame_entries[i].is_arm64;
		struct stack_mapping mapping = {
			.pid = 1, .start = LOAD_ADDRESS, .len = 0x1000, .path = path};
		const struct stack_dump dump = {
			.regs_abi = PERF_SAMPLE_REGS_ABI_64,
			.regs_mask = is_arm64 ? ARM64_MASK : X86_MASK,
			.regs = registers,
			.bytes = (const uint8_t *)bytes,
			.nr_bytes = sizeof(bytes),
		};
		uint8_t file[FRAME_FILE_MAX];
		struct stack_store *store;

		write_file(path, file, frame_file_make(&frame_entries[i], file));
		registers[is_arm64 ? 32 : 8] = LOAD_ADDRESS + FRAME_FILE_INSIDE;
		if (stack_store_create(NULL, &store) || stack_store_map(store, &mapping) ||
		    stack_store_add_dump(store, 1, &dump, &id) ||
		    stack_store_add_dump(store, 1, &dump, &id) || !stack_store_nr_frames(store, id))
			_exit(1);
		stack_store_destroy(store);
	}
	_exit(0);
}

static void hostile_call_frames(void **state)
{
	struct rusage usage;
	const char *path = in_dir("file");
	pid_t child;
	int status;

	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		unwind_made_files(path);
	assert_int_equal(wait4(child, &status, 0, &usage), child);
	assert_int_equal(status, 0);
	assert_in_range(usage.ru_maxrss, 1, 1 << 20); /* KiB; ASan takes some */
}

#define EXPANDED (256u << 20)

/* Compresses EXPANDED zeros. Returns how many bytes are at @ret, of at most @room. */
static size_t compress_zeros(uint8_t *ret, size_t room)
{
	static uint8_t zeros[1 << 20];
	z_stream stream = {.next_out = ret, .avail_out = (uInt)room};

	assert_int_equal(deflateInit(&stream, Z_BEST_SPEED), Z_OK);
	for (size_t i = 0; i < EXPANDED / sizeof(zeros); i++) {
		stream.next_in = zeros;
		stream.avail_in = sizeof(zeros);
		assert_int_equal(deflate(&stream, Z_NO_FLUSH), Z_OK);
	}
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	deflateEnd(&stream);
	return stream.total_out;
}

/* Writes a file with call frame information, and with compressed debugging information. */
static void write_compressed(const char *path)
{
	static const char names[] = "\0.debug_info\0.shstrtab";
	static uint8_t file[4 << 20];
	const Elf64_Chdr compression = {
		.ch_type = ELFCOMPRESS_ZLIB, .ch_size = EXPANDED, .ch_addralign = 1};
	Elf64_Ehdr *header = (Elf64_Ehdr *)file;
	Elf64_Shdr sections[3] = {
		[1] = {.sh_name = 1,
		       .sh_type = SHT_PROGBITS,
		       .sh_flags = SHF_COMPRESSED,
		       .sh_offset = FRAME_FILE_MAX},
		[2] = {.sh_name = 13, .sh_type = SHT_STRTAB, .sh_size = sizeof(names)},
	};
	size_t at = FRAME_FILE_MAX;

	frame_file_make(&frame_entries[0], file);
	memcpy(file + at, &compression, sizeof(compression));
	at += sizeof(compression);
	at += compress_zeros(file + at, sizeof(file) - 4096 - at);
	sections[1].sh_size = at - FRAME_FILE_MAX;
	sections[2].sh_offset = at;
	memcpy(file + at, names, sizeof(names));
	at = (at + sizeof(names) + 7) & ~(size_t)7;
	memcpy(file + at, sections, sizeof(sections));
	header->e_shoff = at;
	header->e_shnum = ARRAY_SIZE(sections);
	header->e_shstrndx = 2;
	write_file(path, file, at + sizeof(sections));
}

/* Where .eh_frame has no row, debugging information is asked, but not at any price. */
static void compressed_debug_information(void **state)
{
	static uint64_t bytes[64];
	uint64_t registers[20] = {[6] = STACK_ADDRESS,
				  [7] = STACK_ADDRESS,
				  [8] = LOAD_ADDRESS + FRAME_FILE_INSIDE + 0x60};
	const struct stack_dump dump = {
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = X86_MASK,
		.regs = registers,
		.bytes = (const uint8_t *)bytes,
		.nr_bytes = sizeof(bytes),
	};
	const char *path = in_dir("file");
	struct stack_mapping mapping = {
		.pid = 1, .start = LOAD_ADDRESS, .len = 0x1000, .path = path};
	struct stack_store *store;
	struct rusage before, usage;
	pid_t child;
	uint32_t id;
	int status;

	write_compressed(path);
	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(stack_store_add_dump(store, 1, &dump, &id) != 0);
	assert_int_equal(wait4(child, &status, 0, &usage), child);
	assert_int_equal(status, 0);
	assert_in_range(usage.ru_maxrss, 1, before.ru_maxrss + EXPANDED / 2 / 1024); /* KiB */
	stack_store_destroy(store);
}

static void copy_self(const char *path)
{
	_cleanup_close_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t nr;

	assert_true(from >= 0 && to >= 0);
	do {
		nr = copy_file_range(from, NULL, to, NULL, 1 << 20, 0);
		assert_true(nr >= 0);
	} while (nr > 0);
}

extern const char __executable_start[]; /* the linker's */

/* The owner of a file truncates it between two looks at its call frame information. */
static void truncated_files(void **state)
{
	static uint64_t bytes[64];
	uint64_t registers[20] = {[6] = STACK_ADDRESS, [7] = STACK_ADDRESS};
	const struct stack_dump dump = {
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = X86_MASK,
		.regs = registers,
		.bytes = (const uint8_t *)bytes,
		.nr_bytes = sizeof(bytes),
	};
	struct stack_mapping mapping = {
		.pid = 1,
		.start = LOAD_ADDRESS,
		.len = 16 << 20,
		.path = in_dir("file"),
	};
	const uint64_t code = (uint64_t)((const char *)write_file - __executable_start);
	const struct stack_frame *frames;
	struct stack_store *store;
	size_t nr;
	uint32_t id;

	copy_self(mapping.path);
	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);
	for (uint64_t i = 0; i < 16; i++) {
		if (i == 1)
			assert_int_equal(truncate(mapping.path, 4096), 0);
		registers[8] = LOAD_ADDRESS + code + i;
		assert_int_equal(stack_store_add_dump(store, 1, &dump, &id), 0);
		assert_int_equal(stack_store_frames(store, id, 0, &frames, &nr), 0);
	}
	stack_store_destroy(store);
}

#define NR_SYMBOLS   100000
#define STRING_BYTES (16u << 20)

/* Looks for one function among many symbols, whose names have no end. */
static void endless_names(void **state)
{
	static const char names[] = "\0.gopclntab\0.symtab\0.strtab\0.shstrtab";
	static uint64_t bytes[64];
	const uint64_t registers[20] = {
		[6] = STACK_ADDRESS, [7] = STACK_ADDRESS, [8] = LOAD_ADDRESS + FRAME_FILE_INSIDE};
	const struct stack_dump dump = {
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = X86_MASK,
		.regs = registers,
		.bytes = (const uint8_t *)bytes,
		.nr_bytes = sizeof(bytes),
	};
	const uint64_t symbols_at = FRAME_FILE_MAX;
	const uint64_t strings_at = symbols_at + NR_SYMBOLS * sizeof(Elf64_Sym);
	const uint64_t names_at = strings_at + STRING_BYTES;
	const uint64_t sections_at = (names_at + sizeof(names) + 7) & ~7ull;
	const Elf64_Shdr sections[] = {
		{0},
		{.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_size = 8},
		{.sh_name = 12,
		 .sh_type = SHT_SYMTAB,
		 .sh_offset = symbols_at,
		 .sh_size = strings_at - symbols_at,
		 .sh_entsize = sizeof(Elf64_Sym),
		 .sh_link = 3},
		{.sh_name = 20,
		 .sh_type = SHT_STRTAB,
		 .sh_offset = strings_at,
		 .sh_size = STRING_BYTES},
		{.sh_name = 28,
		 .sh_type = SHT_STRTAB,
		 .sh_offset = names_at,
		 .sh_size = sizeof(names)},
	};
	_cleanup_free_ uint8_t *file = calloc(1, sections_at + sizeof(sections));
	Elf64_Ehdr *header = (Elf64_Ehdr *)file;
	struct stack_mapping mapping = {
		.pid = 1, .start = LOAD_ADDRESS, .len = 0x1000, .path = in_dir("file")};
	struct stack_store *store;
	uint32_t id;

	assert_non_null(file);
	frame_file_make(&frame_entries[0], file);
	header->e_shoff = sections_at;
	header->e_shnum = ARRAY_SIZE(sections);
	header->e_shstrndx = ARRAY_SIZE(sections) - 1;
	for (size_t i = 0; i < NR_SYMBOLS; i++)
		((Elf64_Sym *)(file + symbols_at))[i].st_name = 1;
	memset(file + strings_at + 1, 'a', STRING_BYTES - 1);
	memcpy(file + names_at, names, sizeof(names));
	memcpy(file + sections_at, sections, sizeof(sections));
	write_file(mapping.path, file, sections_at + sizeof(sections));
	/* It would take an hour. */
	alarm(300);
	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);
	assert_int_equal(stack_store_add_dump(store, 1, &dump, &id), 0);
	stack_store_destroy(store);
	alarm(0);
}

static int setup(void **state)
{
	return scratch_dir_create("unwind-attacks");
}

static int teardown(void **state)
{
	scratch_dir_remove();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_call_frames),
		cmocka_unit_test(compressed_debug_information),
		cmocka_unit_test(truncated_files),
		cmocka_unit_test(endless_names),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
