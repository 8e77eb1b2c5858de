/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that would end the process that unwinds through them, or use up its memory. */
#include "test/unit/unwind/made_file.h"

#include <lzma.h>
#include <zlib.h>

#define ARM64_MASK 0x1ffffffffull

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

/* Root's file is unwound through itself, others' through a copy. */
static const mode_t modes[] = {0600, 0666};

/* Where .eh_frame has no row, debugging information is asked, but not at any price. */
static void compressed_debug_information(void **state)
{
	static uint8_t content[4 << 20];
	const Elf64_Chdr compression = {
		.ch_type = ELFCOMPRESS_ZLIB, .ch_size = EXPANDED, .ch_addralign = 1};
	/* It is copied. */
	struct added_section section = {.name = ".debug_frame",
					.type = SHT_PROGBITS,
					.flags = SHF_COMPRESSED,
					.data = content,
					.size = sizeof(compression)};

	memcpy(content, &compression, sizeof(compression));
	section.size += compress_zeros(content + section.size, sizeof(content) - section.size);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		write_sections(in_dir("file"), &section, 1);
		assert_int_equal(chmod(in_dir("file"), modes[i]), 0);
		assert_in_range(unwind_file(in_dir("file"), BESIDE), 1,
				own_kib() + EXPANDED / 2 / 1024);
	}
}

/* Writes a file whose debug file is file.debug. */
static void write_with_debug_file(void)
{
	struct {
		char name[12];
		uint32_t checksum;
	} link = {.name = "file.debug"};
	const struct added_section section = {.name = ".gnu_debuglink",
					      .type = SHT_PROGBITS,
					      .data = &link,
					      .size = sizeof(link)};
	_cleanup_close_ int fd = open(in_dir("file.debug"), O_RDONLY | O_CLOEXEC);
	uint8_t content[4096];
	ssize_t nr;

	assert_true(fd >= 0);
	while ((nr = read(fd, content, sizeof(content))) > 0)
		link.checksum = (uint32_t)crc32(link.checksum, content, (uInt)nr);
	write_sections(in_dir("file"), &section, 1);
}

/* Unwinds through such a file, and removes its debug file. As unwind_file(). */
static long unwind_with_debug_file(void)
{
	long max_kib;

	write_with_debug_file();
	max_kib = unwind_file(in_dir("file"), BESIDE);
	assert_int_equal(unlink(in_dir("file.debug")), 0);
	return max_kib;
}

/* Unwinding needs no symbols, so it does not expand a MiniDebugInfo, nor that of a debug file. */
static void compressed_symbols(void **state)
{
	static uint8_t zeros[64 << 20], content[1 << 20];
	struct added_section section = {
		.name = ".gnu_debugdata", .type = SHT_PROGBITS, .data = content};

	assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_NONE, NULL, zeros, sizeof(zeros),
						 content, &section.size, sizeof(content)),
			 LZMA_OK);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		write_sections(in_dir("file"), &section, 1);
		assert_int_equal(chmod(in_dir("file"), modes[i]), 0);
		assert_in_range(unwind_file(in_dir("file"), BESIDE), 1,
				own_kib() + sizeof(zeros) / 2 / 1024);
		write_sections(in_dir("file.debug"), &section, 1);
		assert_int_equal(chmod(in_dir("file.debug"), modes[i]), 0);
		assert_in_range(unwind_with_debug_file(), 1, own_kib() + sizeof(zeros) / 2 / 1024);
	}
}

#define HOLE (192u << 20) /* whole symbols and relocations */

/*
 * Writes a file with this section, which goes on with zeros, and one that has the code. Behind them
 * is the section table. Other tables begin at an odd offset.
 */
static void write_large(const char *path, const struct added_section *section, uint64_t size,
			mode_t mode)
{
	const struct added_section sections[] = {*section, FRAMES_IN(".text", 0, NULL, 0)};
	Elf64_Shdr headers[4];
	Elf64_Ehdr file;
	int fd;

	write_sections(path, sections, ARRAY_SIZE(sections));
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &file, sizeof(file), 0), sizeof(file));
	assert_int_equal(pread(fd, headers, sizeof(headers), (off_t)file.e_shoff), sizeof(headers));
	headers[1].sh_offset += section->type != SHT_PROGBITS;
	headers[1].sh_size = size;
	headers[2].sh_offset = 0;
	headers[2].sh_size = FRAME_FILE_MAX;
	file.e_shoff = headers[1].sh_offset + size;
	assert_int_equal(pwrite(fd, &file, sizeof(file), 0), sizeof(file));
	assert_int_equal(pwrite(fd, headers, sizeof(headers), (off_t)file.e_shoff),
			 sizeof(headers));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* libelf copies and converts tables that are not aligned, and reads whole sections of some files.
 */
static void large_sections(void **state)
{
	const Elf64_Chdr compression = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = 64};
	static const uint8_t gnu_compression[16] = "ZLIB";
	static const Elf64_Rela relocation;
	const struct added_section sections[] = {
		{.name = ".debug_info",
		 .type = SHT_RELA,
		 .data = &relocation,
		 .size = sizeof(relocation)},
		{.name = ".dynsym",
		 .type = SHT_DYNSYM,
		 .data = &relocation,
		 .size = sizeof(relocation),
		 .link = 3},
	};
	const struct added_section debug_sections[] = {
		FRAMES_IN(".debug_info", SHF_COMPRESSED, &compression, sizeof(compression)),
		FRAMES_IN(".zdebug_info", 0, gnu_compression, sizeof(gnu_compression)),
	};

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		write_large(in_dir("file"), &sections[i], i ? HOLE / 2 : HOLE, 0666);
		assert_in_range(unwind_file(in_dir("file"), BESIDE), 1,
				own_kib() + HOLE / 3 / 1024);
		assert_in_range(unwind_file(in_dir("file"), CALL), 1, own_kib() + HOLE / 3 / 1024);
	}
	for (size_t i = 0; i < ARRAY_SIZE(debug_sections) * ARRAY_SIZE(modes); i++) {
		write_large(in_dir("file.debug"), &debug_sections[i / ARRAY_SIZE(modes)], HOLE,
			    modes[i % ARRAY_SIZE(modes)]);
		assert_in_range(unwind_with_debug_file(), 1, own_kib() + HOLE / 3 / 1024);
	}
}

/* Makes a .debug_frame with one entry, for BESIDE. Returns its size. */
static size_t make_debug_frames(const struct frame_entry *entry, uint8_t ret[static FRAMES_MAX])
{
	uint8_t *at = ret;

	put_common(&at, 0);
	put_entry(&at, BESIDE, entry->instructions, entry->nr);
	return (size_t)(at - ret);
}

static const struct frame_entry *find_entry(const char *name)
{
	for (size_t i = 0; i < FRAME_NR_ENTRIES; i++)
		if (strcmp(frame_entries[i].name, name) == 0)
			return &frame_entries[i];
	fail();
	return NULL;
}

/* Of several sections, libdw's .debug_frame is not the first of that name: one takes 2 GiB. */
static void hidden_debug_frames(void **state)
{
	uint8_t good[FRAMES_MAX], bad[FRAMES_MAX];
	const size_t nr_good = make_debug_frames(find_entry("offset"), good);
	const size_t nr_bad = make_debug_frames(find_entry("register"), bad);
	const Elf64_Chdr damaged = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = 64, .ch_addralign = 1};
	const struct added_section files[][2] = {
		{FRAMES_IN(".debug_frame", 0, bad, nr_bad)},
		{FRAMES_IN(".debug_frame.dwo", 0, bad, nr_bad)},
		{FRAMES_IN(".gnu.debuglto_.debug_frame", 0, bad, nr_bad)},
		{FRAMES_IN(".debug_frame", SHF_GROUP, good, nr_good),
		 FRAMES_IN(".debug_frame", 0, bad, nr_bad)},
		{FRAMES_IN(".debug_frame", 0, good, 0), FRAMES_IN(".debug_frame", 0, bad, nr_bad)},
		{FRAMES_IN(".debug_frame", SHF_COMPRESSED, &damaged, sizeof(damaged)),
		 FRAMES_IN(".debug_frame", 0, bad, nr_bad)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		write_sections(in_dir("file"), files[i], files[i][1].name ? 2 : 1);
		assert_in_range(unwind_file(in_dir("file"), BESIDE), 1, 1 << 20);
	}
}

/* A debug file whose addresses have 4 bytes: so the entry's instructions begin earlier. */
static void small_debug_file(void **state)
{
	static const char names[] = "\0.debug_frame\0.shstrtab";
	const struct frame_entry *entry = find_entry("register");
	struct {
		Elf32_Ehdr header;
		Elf32_Phdr segment;
		Elf32_Shdr sections[3];
		uint8_t frames[FRAMES_MAX];
		char names[sizeof(names)];
	} file = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = sizeof(Elf32_Ehdr),
			   .e_shoff = sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
			   .e_ehsize = sizeof(Elf32_Ehdr),
			   .e_phentsize = sizeof(Elf32_Phdr),
			   .e_phnum = 1,
			   .e_shentsize = sizeof(Elf32_Shdr),
			   .e_shnum = 3,
			   .e_shstrndx = 2},
	};
	const uint32_t range[] = {BESIDE, 16};
	size_t size = make_debug_frames(entry, file.frames), at = 28;

	memcpy(file.frames + at, range, sizeof(range));
	memcpy(file.frames + at + sizeof(range), entry->instructions, entry->nr);
	memset(file.frames + at + sizeof(range) + entry->nr, 0, 16 - sizeof(range));
	memcpy(file.names, names, sizeof(names));
	/* libdwfl compares where the first segments end. */
	file.segment.p_type = PT_LOAD;
	file.segment.p_memsz = FRAME_FILE_MAX;
	file.sections[1] =
		(Elf32_Shdr){.sh_name = 1,
			     .sh_type = SHT_PROGBITS,
			     .sh_offset = (Elf32_Off)((char *)file.frames - (char *)&file),
			     .sh_size = (Elf32_Word)size};
	file.sections[2] =
		(Elf32_Shdr){.sh_name = 14,
			     .sh_type = SHT_STRTAB,
			     .sh_offset = (Elf32_Off)((char *)file.names - (char *)&file),
			     .sh_size = sizeof(names)};
	write_file(in_dir("file.debug"), &file, sizeof(file));
	assert_in_range(unwind_with_debug_file(), 1, 1 << 20);
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
	const struct stack_dump dump = X86_DUMP(registers, bytes);
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

#define ENTRY_AT (FRAME_FILE_MAX + 20 + 24) /* the instructions of the only entry */

/* Unwinds at BESIDE, makes the entry in @changed one that takes 2 GiB, and unwinds at the next
 * byte. */
static void unwind_changing(const char *path, const char *changed, const struct frame_entry *bad)
{
	static const uint64_t words[64];
	const struct stack_store_options options = {.limit_time = true};
	const struct stack_mapping mapping = {
		.pid = 1, .start = LOAD_ADDRESS, .len = 0x1000, .path = path};
	uint64_t registers[20] = {[6] = STACK_ADDRESS, [7] = STACK_ADDRESS};
	const struct stack_dump dump = X86_DUMP(registers, words);
	int fd = open(changed, O_WRONLY | O_CLOEXEC);
	struct stack_store *store;
	uint32_t id;

	if (fd < 0 || stack_store_create(&options, &store) || stack_store_map(store, &mapping))
		_exit(1);
	for (uint64_t i = 0; i < 2; i++) {
		registers[8] = LOAD_ADDRESS + BESIDE + i;
		if (stack_store_add_dump(store, 1, &dump, &id) ||
		    pwrite(fd, bad->instructions, bad->nr, ENTRY_AT) != bad->nr)
			_exit(1);
	}
	_exit(0);
}

/* Unwinds through the file while its owner changes that of @name. */
static void change(const char *name, const struct frame_entry *bad)
{
	struct rusage usage;
	pid_t child;
	int status;

	/* Not only root can change it. */
	assert_int_equal(chmod(in_dir(name), 0666), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		unwind_changing(in_dir("file"), in_dir(name), bad);
	assert_int_equal(wait4(child, &status, 0, &usage), child);
	assert_int_equal(status, 0);
	assert_in_range(usage.ru_maxrss, 1, 1 << 20);
}

/* The owner of a file, or of its debug file, changes it after its entries were looked at. */
static void changed_files(void **state)
{
	const struct frame_entry *bad = find_entry("register");
	struct frame_entry good = {.name = "nops", .nr = bad->nr};
	static const uint8_t zeros[128 << 10];
	uint8_t frames[FRAMES_MAX];
	const struct added_section sections[] = {
		FRAMES_IN(".debug_frame", 0, frames, make_debug_frames(&good, frames)),
		FRAMES_IN(".data", 0, zeros, sizeof(zeros)),
	};

	/* Small files are copied as a whole, others in parts. */
	for (size_t nr = 1; nr <= ARRAY_SIZE(sections); nr++) {
		write_sections(in_dir("file"), sections, nr);
		change("file", bad);
		write_sections(in_dir("file.debug"), sections, nr);
		write_with_debug_file();
		change("file.debug", bad);
		assert_int_equal(unlink(in_dir("file.debug")), 0);
	}
}

/* A unit with one function at FRAME_FILE_INSIDE, and its line (DWARF 3, 7.5 and 6.2). */
static const uint8_t abbreviations[] = {
	1, 0x11, 1, 0x10, 0x06, 0x11, 0x01, 0x12, 0x01, 0, 0, /* unit: line table, addresses */
	2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x01, 0, 0, /* function: name, addresses */
	0,
};

struct __attribute__((packed)) entries {
	uint32_t size;
	uint16_t version;
	uint32_t abbreviations;
	uint8_t address_bytes;
	uint8_t unit;
	uint32_t lines;
	uint64_t unit_begin, unit_end;
	uint8_t function;
	char name[2];
	uint64_t begin, end;
	uint8_t last;
};

#define SOURCE "/absolute.c"

struct __attribute__((packed)) lines {
	uint32_t size;
	uint16_t version;
	uint32_t header_size;
	uint8_t head[15]; /* instructions of 1 byte, 9 standard opcodes; no directories */
	char source[sizeof(SOURCE)];
	uint8_t last_source[4];
	uint8_t set_address[3]; /* the program begins */
	uint64_t address;
	uint8_t program[8]; /* line 10; a row; 64 bytes on; the end */
};

/* The owner of a file truncates it after a position in it was named. */
static void truncated_names(void **state)
{
	const uint64_t begin = FRAME_FILE_INSIDE - 16, end = FRAME_FILE_INSIDE + 16;
	const struct entries entries = {
		sizeof(entries) - 4, 3, 0, 8, 1, 0, begin, end, 2, "f", begin, end, 0};
	const struct lines lines = {
		.size = sizeof(lines) - 4,
		.version = 3,
		.header_size = offsetof(struct lines, set_address) - 10,
		.head = {1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0},
		.source = SOURCE,
		.set_address = {0, 9, 2},
		.address = begin,
		.program = {3, 9, 1, 2, 64, 0, 1, 1},
	};
	const struct added_section sections[] = {
		FRAMES_IN(".debug_abbrev", 0, abbreviations, sizeof(abbreviations)),
		FRAMES_IN(".debug_info", 0, &entries, sizeof(entries)),
		FRAMES_IN(".debug_line", 0, &lines, sizeof(lines)),
	};
	const struct stack_mapping mapping = {
		.pid = 1, .start = LOAD_ADDRESS, .len = 0x1000, .path = in_dir("file")};
	const uint64_t address = LOAD_ADDRESS + FRAME_FILE_INSIDE;
	const struct stack_frame *frames;
	struct stack_store *store;
	size_t nr;
	uint32_t id;

	write_sections(mapping.path, sections, ARRAY_SIZE(sections));
	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);
	assert_int_equal(stack_store_add_callchain(store, 1, &address, 1, &id), 0);
	assert_int_equal(stack_store_frames(store, id, 0, &frames, &nr), 0);
	assert_int_equal(truncate(mapping.path, 0), 0);
	assert_string_equal(frames[0].function, "f");
	assert_string_equal(frames[0].file, SOURCE);
	assert_int_equal(frames[0].line, 10);
	stack_store_destroy(store);
}

/* The owner of a file makes it one that libdwfl relocates, and sets its time back. */
static void make_relocatable(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	const uint32_t first = 1;
	Elf64_Ehdr header;
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	header.e_type = ET_REL;
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(pwrite(fd, &first, sizeof(first),
				(off_t)(header.e_shoff + 4 * sizeof(Elf64_Shdr) +
					offsetof(Elf64_Shdr, sh_info))),
			 sizeof(first));
	assert_int_equal(futimens(fd, (const struct timespec[]){st.st_atim, st.st_mtim}), 0);
	close(fd);
}

/* It is found for a stack in another file, which needs libdwfl, and relocatable when it is opened
 * again: to unwind, then to name a position. */
static void relocatable_files(void **state)
{
	static const uint8_t code[64];
	static const Elf64_Sym symbols[2] = {{0}, {.st_name = 1, .st_shndx = 1}};
	static const Elf64_Rela relocation = {.r_info = ELF64_R_INFO(1, R_X86_64_64)};
	const struct added_section sections[] = {
		FRAMES_IN(".text", SHF_ALLOC, code, sizeof(code)),
		{".symtab", SHT_SYMTAB, 0, symbols, sizeof(symbols), 3, sizeof(symbols[0]), 0},
		{".strtab", SHT_STRTAB, 0, "\0a", 3, 0, 0, 0},
		{".rela.text", SHT_RELA, 0, &relocation, sizeof(relocation), 2, sizeof(relocation),
		 0},
	};
	/* def_cfa_expression rsp + 8, lit0, plus: no rule has it. */
	const struct frame_entry entry = {.nr = 6, .instructions = {15, 4, 0x77, 8, 0x30, 0x22}};
	uint8_t frames[FRAMES_MAX];
	const struct added_section other =
		FRAMES_IN(".debug_frame", 0, frames, make_debug_frames(&entry, frames));
	struct stack_mapping mapping = {.pid = 1, .len = 0x1000};
	uint64_t registers[20] = {[6] = STACK_ADDRESS, [7] = STACK_ADDRESS};
	const struct stack_dump dump = X86_DUMP(registers, code);
	const struct stack_frame *named;
	struct stack_store *store;
	size_t nr;
	uint32_t id;

	write_sections(in_dir("other"), &other, 1);
	write_sections(in_dir("file"), sections, ARRAY_SIZE(sections));
	assert_int_equal(chmod(in_dir("file"), 0666), 0);
	assert_int_equal(stack_store_create(NULL, &store), 0);
	for (uint64_t i = 0; i < 2; i++) {
		mapping.path = i ? in_dir("file") : in_dir("other");
		mapping.start = LOAD_ADDRESS + i * UNWIND_STEP;
		assert_int_equal(stack_store_map(store, &mapping), 0);
	}
	for (uint64_t i = 0; i < 2; i++) {
		registers[8] = LOAD_ADDRESS + i * UNWIND_STEP + BESIDE;
		assert_int_equal(stack_store_add_dump(store, 1, &dump, &id), 0);
		if (i == 0)
			make_relocatable(in_dir("file"));
	}
	assert_int_equal(stack_store_frames(store, id, 0, &named, &nr), 0);
	assert_null(named[0].function);
	stack_store_destroy(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_call_frames),
		cmocka_unit_test(compressed_debug_information),
		cmocka_unit_test(compressed_symbols),
		cmocka_unit_test(large_sections),
		cmocka_unit_test(hidden_debug_frames),
		cmocka_unit_test(small_debug_file),
		cmocka_unit_test(truncated_files),
		cmocka_unit_test(changed_files),
		cmocka_unit_test(truncated_names),
		cmocka_unit_test(relocatable_files),
	};

	return cmocka_run_group_tests(tests, scratch_dir_setup, scratch_dir_teardown);
}
