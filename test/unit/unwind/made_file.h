/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes ELF files that are hostile to whoever unwinds through them, and unwinds a stack through
 * one, with what limits that.
 */
#ifndef LEAKTOOLS_TEST_MADE_FILE_H
#define LEAKTOOLS_TEST_MADE_FILE_H

#include "common/scope.h"
#include "test/support/frame_file.h"
#include "test/unit/unwind/scratch_dir.h"
#include "unwind/stacks/stack_store.h"

#include <elf.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define X86_MASK      0xff0fffull
#define LOAD_ADDRESS  0x7f0000000000ull
#define STACK_ADDRESS 0x7ffc00000000ull
#define CPU_SECONDS   20

static inline void write_file(const char *path, const void *content, size_t size)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, size), size);
}

/* Addresses that .eh_frame has no row for. After the second one comes a call of main(). */
#define BESIDE (FRAME_FILE_INSIDE + 0x60)
#define CALL   0x300

/* A section that is added to a made file. */
struct added_section {
	const char *name;
	uint32_t type;
	uint64_t flags;
	const void *data;
	size_t size;
	uint32_t link;	    /* another one's number, from 1 */
	size_t entry_bytes; /* of a table */
	size_t nr_copies;   /* headers besides the first one */
};

/* Makes a file with call frame information, and the sections. */
static inline void write_sections(const char *path, const struct added_section *added, size_t nr)
{
	size_t size = FRAME_FILE_MAX + 8192, nr_headers = nr + 2, at = FRAME_FILE_MAX, names = 1;

	for (size_t i = 0; i < nr; i++) {
		size += added[i].size + strlen(added[i].name) + 9;
		nr_headers += added[i].nr_copies;
	}
	static const uint8_t call[] = {0x89, 0xc7, 0xe8}; /* mov %eax,%edi; call */
	_cleanup_free_ uint8_t *file = calloc(1, size + nr_headers * sizeof(Elf64_Shdr));
	Elf64_Ehdr *header = (Elf64_Ehdr *)file;
	_cleanup_free_ Elf64_Shdr *headers = calloc(nr_headers, sizeof(*headers));
	Elf64_Shdr *last = headers + nr;

	assert_true(file && headers);
	frame_file_make(&frame_entries[0], file);
	memcpy(file + CALL + 1, call, sizeof(call));
	((Elf64_Phdr *)(header + 1))->p_filesz = FRAME_FILE_MAX;
	((Elf64_Phdr *)(header + 1))->p_memsz = FRAME_FILE_MAX;
	for (size_t i = 0; i < nr; i++) {
		headers[i + 1] = (Elf64_Shdr){.sh_name = (uint32_t)names,
					      .sh_type = added[i].type,
					      .sh_flags = added[i].flags,
					      .sh_offset = at,
					      .sh_size = added[i].size,
					      .sh_link = added[i].link,
					      .sh_entsize = added[i].entry_bytes};
		names += strlen(added[i].name) + 1;
		if (added[i].size)
			memcpy(file + at, added[i].data, added[i].size);
		at = (at + added[i].size + 7) & ~(size_t)7;
	}
	for (size_t i = 0; i < nr; i++)
		for (size_t j = 0; j < added[i].nr_copies; j++)
			*++last = headers[i + 1];
	*++last = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = names};
	for (size_t i = 0; i < nr; i++)
		memcpy(file + at + headers[i + 1].sh_name, added[i].name,
		       strlen(added[i].name) + 1);
	at = (at + names + 7) & ~(size_t)7;
	memcpy(file + at, headers, nr_headers * sizeof(*headers));
	header->e_shoff = at;
	header->e_shnum = (Elf64_Half)nr_headers;
	header->e_shstrndx = (Elf64_Half)(nr_headers - 1);
	write_file(path, file, at + nr_headers * sizeof(*headers));
}

/* A dump with these registers, of an array. */
#define X86_DUMP(REGISTERS, BYTES)                                                                 \
	{                                                                                          \
		.regs_abi = PERF_SAMPLE_REGS_ABI_64, .regs_mask = X86_MASK, .regs = (REGISTERS),   \
		.bytes = (const uint8_t *)(BYTES), .nr_bytes = sizeof(BYTES)                       \
	}

#define UNWIND_STEP 0x10000 /* from one file to the next */

/* Unwinds a stack of @words at @address of the first file, as leakrec does, in a child. */
static inline void unwind_words(const char *const *paths, size_t nr_paths, uint64_t address,
				const uint64_t *words, size_t nr, struct rusage *ret)
{
	const struct stack_store_options options = {.limit_time = true};
	const uint64_t registers[20] = {
		[6] = STACK_ADDRESS, [7] = STACK_ADDRESS, [8] = LOAD_ADDRESS + address};
	const struct stack_dump dump = {
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = X86_MASK,
		.regs = registers,
		.bytes = (const uint8_t *)words,
		.nr_bytes = nr * sizeof(*words),
	};
	struct stack_store *store;
	pid_t child;
	uint32_t id;
	int status;

	assert_int_equal(stack_store_create(&options, &store), 0);
	for (size_t i = 0; i < nr_paths; i++) {
		const struct stack_mapping mapping = {.pid = 1,
						      .start = LOAD_ADDRESS + i * UNWIND_STEP,
						      .len = 0x1000,
						      .path = paths[i]};

		assert_int_equal(stack_store_map(store, &mapping), 0);
	}
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		/* Seconds; they would be minutes. */
		setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_SECONDS, CPU_SECONDS});
		_exit(stack_store_add_dump(store, 1, &dump, &id) != 0);
	}
	assert_int_equal(wait4(child, &status, 0, ret), child);
	assert_int_equal(status, 0);
	stack_store_destroy(store);
}

/* Unwinds a stack at @address of the file in a child. Returns the most memory that it had, in KiB.
 */
static inline long unwind_file(const char *path, uint64_t address)
{
	static const uint64_t words[64];
	struct rusage usage;

	unwind_words(&path, 1, address, words, ARRAY_SIZE(words), &usage);
	return usage.ru_maxrss;
}

static inline long own_kib(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

static inline void put(uint8_t **at, const void *bytes, size_t nr)
{
	memcpy(*at, bytes, nr);
	*at += nr;
}

#define FRAMES_MAX 128

/* Puts the common entry (CIE) of a .debug_frame, with @nr_nops more instructions. */
static inline void put_common(uint8_t **at, uint32_t nr_nops)
{
	/* Its number, version 1, no augmentation; alignments 1 and -8; the return address;
	 * def_cfa rsp, 8; the return address at CFA - 8; nops. */
	static const uint8_t common[] = {0xff, 0xff, 0xff, 0xff, 1,    0, 1, 0x78,
					 16,   0x0c, 7,	   8,	 0x90, 1, 0, 0};
	const uint32_t size = sizeof(common) + nr_nops;

	put(at, &size, sizeof(size));
	put(at, common, sizeof(common));
	memset(*at, 0, nr_nops);
	*at += nr_nops;
}

/* Puts an entry for this code. */
static inline void put_range(uint8_t **at, uint64_t code, uint64_t nr_bytes,
			     const void *instructions, uint32_t nr)
{
	const uint32_t head[] = {20 + nr, 0};
	const uint64_t range[] = {code, nr_bytes};

	put(at, head, sizeof(head));
	put(at, range, sizeof(range));
	if (nr)
		put(at, instructions, nr);
}

static inline void put_entry(uint8_t **at, uint64_t code, const void *instructions, uint32_t nr)
{
	put_range(at, code, 16, instructions, nr);
}

#define FRAMES_IN(NAME, FLAGS, DATA, SIZE)                                                         \
	{                                                                                          \
		.name = (NAME), .type = SHT_PROGBITS, .flags = (FLAGS), .data = (DATA),            \
		.size = (SIZE)                                                                     \
	}

#endif
