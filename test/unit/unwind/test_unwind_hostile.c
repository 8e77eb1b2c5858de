/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hostile files, registers and names. Run it under the sanitizers, too. */
#include "unwind/names/demangler.h"
#include "unwind/frames/dump_registers.h"
#include "unwind/stacks/stack_store.h"

#include "common/scope.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NR_MUTANTS    300
#define X86_MASK      0xff0fffull
#define ARM64_MASK    0x1ffffffffull
#define LOAD_ADDRESS  0x7f0000000000ull
#define STACK_ADDRESS 0x7ffc00000000ull

static char *dir;

/* A generator of its own, so that each run is the same. */
static uint64_t next_random(void)
{
	static uint64_t state = 42;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void write_file(const char *path, const void *content, size_t size)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, size), size);
}

/* This program's own file: an ELF file with symbols, CFI and lines. */
static uint8_t *read_self(size_t *ret_size)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	uint8_t *content = malloc((size_t)st.st_size);
	assert_non_null(content);
	assert_int_equal(read(fd, content, (size_t)st.st_size), st.st_size);
	*ret_size = (size_t)st.st_size;
	return content;
}

/* The code segment of an ELF file in memory. */
static Elf64_Phdr code_segment(const uint8_t *content)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)content;
	const Elf64_Phdr *segments = (const Elf64_Phdr *)(content + header->e_phoff);

	for (int i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_X))
			return segments[i];
	fail();
	return (Elf64_Phdr){0};
}

/*
 * Maps the file, interns random addresses of it and random dumps in it, and names them all. Returns
 * the number of frames that got a name.
 */
static size_t exercise(const char *path, const Elf64_Phdr *code)
{
	size_t nr_named = 0;
	static uint64_t bytes[512];
	uint64_t registers[33], chain[16];
	struct stack_store *store;
	uint32_t id;
	struct stack_mapping mapping = {
		.pid = 1,
		.start = LOAD_ADDRESS,
		.len = code->p_filesz + 0x2000,
		.file_offset = code->p_offset & ~0xfffull,
		.path = path,
	};

	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);
	for (int round = 0; round < 8; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(chain); i++)
			chain[i] = LOAD_ADDRESS + next_random() % mapping.len;
		assert_int_equal(stack_store_add_callchain(store, 1, chain, 16, &id), 0);

		for (size_t i = 0; i < ARRAY_SIZE(registers); i++)
			registers[i] = STACK_ADDRESS + next_random() % sizeof(bytes);
		for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
			bytes[i] = i % 3 ? STACK_ADDRESS + next_random() % sizeof(bytes)
					 : LOAD_ADDRESS + next_random() % mapping.len;
		registers[7] = STACK_ADDRESS; /* sp */
		registers[8] = chain[round];  /* ip */
		const struct stack_dump dump = {
			.regs_abi = PERF_SAMPLE_REGS_ABI_64,
			.regs_mask = X86_MASK,
			.regs = registers,
			.bytes = (const uint8_t *)bytes,
			.nr_bytes = sizeof(bytes),
		};
		assert_int_equal(stack_store_add_dump(store, 1, &dump, &id), 0);
		assert_in_range(stack_store_nr_frames(store, id), 1, STACK_MAX_FRAMES);
	}
	for (id = 1; stack_store_nr_frames(store, id); id++) {
		struct stack_frame frame;

		for (size_t i = 0; i < stack_store_nr_frames(store, id) && i < 32; i++) {
			assert_int_equal(stack_store_frame(store, id, i, &frame), 0);
			nr_named += frame.function != NULL;
		}
	}
	stack_store_destroy(store);
	return nr_named;
}

static void damaged_elf_files(void **state)
{
	size_t size;
	_cleanup_free_ uint8_t *original = read_self(&size);
	_cleanup_free_ uint8_t *mutant = malloc(size);
	Elf64_Phdr code = code_segment(original);
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)original;
	size_t nr_readable = 0;
	char path[256];

	assert_non_null(mutant);
	snprintf(path, sizeof(path), "%s/mutant", dir);
	for (int i = 0; i < NR_MUTANTS; i++) {
		size_t mutant_size = i % 4 ? size : next_random() % size;

		memcpy(mutant, original, size);
		/*
		 * Changes a few bytes anywhere, and in the headers of file, segments and sections.
		 */
		for (int j = 0; j < 1 + i % 8; j++) {
			mutant[next_random() % size] = (uint8_t)next_random();
			if (i % 3 == 0)
				mutant[16 + next_random() % (header->e_phoff + 600)] =
					(uint8_t)next_random();
			mutant[header->e_shoff + next_random() % (size - header->e_shoff)] =
				(uint8_t)next_random();
		}
		write_file(path, mutant, mutant_size);
		nr_readable += exercise(path, &code) > 0;
	}
	/* Otherwise only the rejection of files was tested. */
	assert_in_range(nr_readable, NR_MUTANTS / 3, NR_MUTANTS);
	assert_true(exercise("/proc/self/exe", &code) > 0);
}

/* Finds a section of an ELF file in memory. */
static Elf64_Shdr section(const uint8_t *content, const char *name)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)content;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(content + header->e_shoff);
	const char *names = (const char *)content + sections[header->e_shstrndx].sh_offset;

	for (int i = 0; i < header->e_shnum; i++)
		if (strcmp(names + sections[i].sh_name, name) == 0)
			return sections[i];
	fail();
	return (Elf64_Shdr){0};
}

/* Random call frame information: offsets, registers, expressions, ranges. */
static void damaged_call_frames(void **state)
{
	static const char *const names[] = {".eh_frame", ".eh_frame", ".eh_frame_hdr"};
	size_t size;
	_cleanup_free_ uint8_t *original = read_self(&size);
	_cleanup_free_ uint8_t *mutant = malloc(size);
	Elf64_Phdr code = code_segment(original);
	char path[256];

	assert_non_null(mutant);
	snprintf(path, sizeof(path), "%s/mutant", dir);
	alarm(400);
	for (int i = 0; i < NR_MUTANTS; i++) {
		Elf64_Shdr frames = section(original, names[i % ARRAY_SIZE(names)]);

		memcpy(mutant, original, size);
		for (uint64_t j = 0; j < 1 + frames.sh_size / (16u << (i % 5)); j++)
			mutant[frames.sh_offset + next_random() % (frames.sh_size | 1)] =
				(uint8_t)next_random();
		write_file(path, mutant, size);
		assert_true(exercise(path, &code) > 0);
	}
	alarm(0);
}

static void files_that_are_no_modules(void **state)
{
	static const char *const names[] = {"empty",	 "text",   "fifo",
					    "directory", "absent", "header"};
	static const Elf64_Phdr code = {.p_filesz = 0x10000, .p_offset = 0x1000};
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (!strcmp(names[i], "empty"))
			write_file(path, "", 0);
		else if (!strcmp(names[i], "text"))
			write_file(path, "hello", 5);
		else if (!strcmp(names[i], "header"))
			write_file(path, ELFMAG "\2\1\1", 7);
		else if (!strcmp(names[i], "fifo"))
			assert_int_equal(mkfifo(path, 0600), 0);
		else if (!strcmp(names[i], "directory"))
			assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(exercise(path, &code), 0);
	}
	assert_int_equal(exercise("/dev/tty", &code), 0);
	assert_int_equal(exercise("/proc/self/mem", &code), 0);
	assert_int_equal(exercise("/etc/passwd", &code), 0);
	assert_int_equal(exercise("[vdso]", &code), 0);
}

static void any_dump(void **state)
{
	static const uint8_t bytes[64] = {1, 2, 3};
	const uint64_t masks[] = {0, X86_MASK, ARM64_MASK, UINT64_MAX, 1ull << 7, 1ull << 8, 1};
	uint64_t registers[64], value;
	struct stack_store *store;
	size_t size;
	_cleanup_free_ uint8_t *self = read_self(&size);
	Elf64_Phdr code = code_segment(self);
	struct stack_mapping mapping = {
		.pid = 1,
		.start = LOAD_ADDRESS,
		.len = code.p_filesz + 0x1000,
		.file_offset = code.p_offset & ~0xfffull,
		.path = "/proc/self/exe",
	};
	uint32_t id;

	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);
	for (int round = 0; round < 2000; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
			registers[i] = next_random() >> (next_random() % 64);
			if (round % 3 == 0)
				registers[i] = LOAD_ADDRESS + registers[i] % mapping.len;
		}
		const struct stack_dump dump = {
			.regs_abi = next_random() % 4,
			.regs_mask = masks[next_random() % ARRAY_SIZE(masks)],
			.regs = registers,
			.bytes = round % 5 ? bytes : NULL,
			.nr_bytes = next_random() % (sizeof(bytes) + 1),
			.returned_from = round % 7 ? 0 : next_random(),
		};
		assert_int_equal(stack_store_add_dump(store, 1, &dump, &id), 0);
		assert_true(stack_store_nr_frames(store, id) <= STACK_MAX_FRAMES);
		stack_dump_read_u64(&dump, next_random() >> (next_random() % 64), &value);
	}
	const struct stack_dump no_registers = {.regs_abi = PERF_SAMPLE_REGS_ABI_64,
						.regs_mask = X86_MASK};
	assert_int_equal(stack_store_add_dump(store, 1, &no_registers, &id), 0);
	assert_int_equal(id, STACK_NONE);
	stack_store_destroy(store);
}

/* A dump with more frames than there can be. */
static void endless_stacks(void **state)
{
	static uint64_t bytes[8192];
	uint64_t registers[20] = {[6] = STACK_ADDRESS, [7] = STACK_ADDRESS, [8] = 0x1234};
	const struct stack_dump dump = {
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = X86_MASK,
		.regs = registers,
		.bytes = (const uint8_t *)bytes,
		.nr_bytes = sizeof(bytes),
		.returned_from = 0x1000,
	};
	struct stack_mapping mapping = {
		.pid = 1, .start = LOAD_ADDRESS, .len = 0x10000000, .path = "/proc/self/exe"};
	struct stack_store *store;
	uint32_t id;

	/* A chain of frame pointers. */
	for (size_t i = 0; i + 1 < ARRAY_SIZE(bytes); i += 2) {
		bytes[i] = STACK_ADDRESS + 8 * i + 16;
		bytes[i + 1] = 0x123456;
	}
	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);
	assert_int_equal(stack_store_add_dump(store, 1, &dump, &id), 0);
	assert_true(stack_store_nr_frames(store, id) <= STACK_MAX_FRAMES);
	assert_int_equal(stack_store_unwind_failures(store), 1);
	stack_store_destroy(store);
}

static void registers_decode(void **state)
{
	uint64_t registers[33];
	struct dump_registers decoded = {0};
	struct stack_dump dump = {.regs_abi = PERF_SAMPLE_REGS_ABI_64, .regs = registers};

	for (size_t i = 0; i < ARRAY_SIZE(registers); i++)
		registers[i] = 100 + i;
	dump.regs_mask = X86_MASK; /* ax bx cx dx si di bp sp ip flags cs ss r8-r15 */
	assert_int_equal(dump_registers_decode(&dump, &decoded), 0);
	assert_int_equal(decoded.machine, EM_X86_64);
	assert_int_equal(decoded.pc, 108);
	assert_int_equal(decoded.sp, 107);
	static const uint64_t x86[] = {100, 103, 102, 101, 104, 105, 106, 107, 112,
				       113, 114, 115, 116, 117, 118, 119, 108};
	assert_int_equal(decoded.nr_dwarf, ARRAY_SIZE(x86));
	assert_memory_equal(decoded.dwarf, x86, sizeof(x86));

	dump.regs_mask = ARM64_MASK;
	assert_int_equal(dump_registers_decode(&dump, &decoded), 0);
	assert_int_equal(decoded.machine, EM_AARCH64);
	assert_int_equal(decoded.pc, 132);
	assert_int_equal(decoded.sp, 131);
	assert_int_equal(decoded.nr_dwarf, 32);
	assert_int_equal(decoded.dwarf[30], 130);

	dump.regs_abi = PERF_SAMPLE_REGS_ABI_32;
	assert_true(dump_registers_decode(&dump, &decoded) < 0);
}

static void assert_demangled(const char *mangled, const char *expected)
{
	_cleanup_free_ char *name = demangle(mangled);

	if (!expected) {
		assert_null(name);
		return;
	}
	assert_non_null(name);
	assert_string_equal(name, expected);
}

static void names_demangle(void **state)
{
	assert_demangled("_ZN3app5LayerILi1EE2goEm", "app::Layer<1>::go");
	assert_demangled("_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
			 "core::ptr::drop_in_place");
	assert_demangled("_RNvC6_123foo3bar", "123foo::bar");
	assert_demangled("_RNvMs_CsiU3zNXuPpX8_1rINtB4_5StoreNtNtCs5x0Y_5alloc6string6StringE3add",
			 "<r::Store<alloc::string::String>>::add");
	assert_demangled("_RNCNvNtCs1234_3std2rt10lang_start0B5_",
			 "std::rt::lang_start::{closure#0}");
	assert_demangled("malloc", NULL);
	assert_demangled("_start", NULL);
	assert_demangled("", NULL);
	assert_demangled("_Z", NULL);
	assert_demangled("_ZN", NULL);
}

/* Each step doubles the name, to 2^40 letters without a limit. */
static void name_bombs_fizzle(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char bomb[1024] = "_Z1fI4pairIiiE", *end = bomb + strlen(bomb);
	_cleanup_free_ char *long_name = calloc(1, 1 << 20);
	_cleanup_free_ char *small = demangle("_Z1fI4pairIiiES0_IS1_S1_EEvv");

	assert_non_null(small);
	assert_string_equal(small, "f<pair<int, int>, pair<pair<int, int>, pair<int, int> > >");
	alarm(100);
	/* As above, and further: each pair is one of two of the pairs before. */
	for (int i = 1; i < 34; i++)
		end += snprintf(end, (size_t)(bomb + sizeof(bomb) - end), "S0_IS%c_S%c_E",
				digits[i], digits[i]);
	snprintf(end, (size_t)(bomb + sizeof(bomb) - end), "Evv");
	assert_null(demangle(bomb));

	assert_non_null(long_name);
	memset(long_name, 'P', (1 << 20) - 1);
	memcpy(long_name, "_Z1f", 4);
	assert_null(demangle(long_name));
	long_name[4000] = '\0';
	free(demangle(long_name));
	alarm(0);
}

static int setup(void **state)
{
	char *template = strdup(TEST_BUILD_DIR "/unwind-hostile-XXXXXX");

	dir = template ? mkdtemp(template) : NULL;
	if (!dir)
		free(template);
	return dir ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = {"mutant", "empty", "text", "fifo", "header"};
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/directory", dir);
	rmdir(path);
	int err = rmdir(dir);
	free(dir);
	return err;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_are_no_modules),
		cmocka_unit_test(damaged_elf_files),
		cmocka_unit_test(damaged_call_frames),
		cmocka_unit_test(any_dump),
		cmocka_unit_test(endless_stacks),
		cmocka_unit_test(registers_decode),
		cmocka_unit_test(names_demangle),
		cmocka_unit_test(name_bombs_fizzle),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
