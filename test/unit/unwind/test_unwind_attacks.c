/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that would end the process that unwinds through them, or use up its memory. */
#include "unwind/stacks/stack_store.h"

#include "common/scope.h"
#include "test/support/frame_file.h"
#include "test/unit/unwind/scratch_dir.h"

#include <elf.h>
#include <linux/perf_event.h>
#include <sys/resource.h>

#include <lzma.h>
#include <zlib.h>

#define X86_MASK      0xff0fffull
#define ARM64_MASK    0x1ffffffffull
#define LOAD_ADDRESS  0x7f0000000000ull
#define STACK_ADDRESS 0x7ffc00000000ull
#define CPU_SECONDS   20

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
static void write_sections(const char *path, const struct added_section *added, size_t nr)
{
	size_t size = FRAME_FILE_MAX + 8192, nr_headers = nr + 2, at = FRAME_FILE_MAX, names = 1;

	for (size_t i = 0; i < nr; i++) {
		size += added[i].size + 8;
		nr_headers += added[i].nr_copies;
	}
	_cleanup_free_ uint8_t *file = calloc(1, size + nr_headers * sizeof(Elf64_Shdr));
	Elf64_Ehdr *header = (Elf64_Ehdr *)file;
	_cleanup_free_ Elf64_Shdr *headers = calloc(nr_headers, sizeof(*headers));
	Elf64_Shdr *last = headers + nr;

	assert_true(file && headers);
	frame_file_make(&frame_entries[0], file);
	memcpy(file + CALL + 1, "\x89\xc7\xe8", 3); /* mov %eax,%edi; call */
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
		strcpy((char *)file + at + headers[i + 1].sh_name, added[i].name);
	at = (at + names + 7) & ~(size_t)7;
	memcpy(file + at, headers, nr_headers * sizeof(*headers));
	header->e_shoff = at;
	header->e_shnum = (Elf64_Half)nr_headers;
	header->e_shstrndx = (Elf64_Half)(nr_headers - 1);
	write_file(path, file, at + nr_headers * sizeof(*headers));
}

/* Unwinds a stack at @address of the file in a child. Returns the most memory that it had, in KiB.
 */
static long unwind_file(const char *path, uint64_t address)
{
	static uint64_t bytes[64];
	const uint64_t registers[20] = {
		[6] = STACK_ADDRESS, [7] = STACK_ADDRESS, [8] = LOAD_ADDRESS + address};
	const struct stack_dump dump = {
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = X86_MASK,
		.regs = registers,
		.bytes = (const uint8_t *)bytes,
		.nr_bytes = sizeof(bytes),
	};
	struct stack_mapping mapping = {
		.pid = 1, .start = LOAD_ADDRESS, .len = 0x1000, .path = path};
	struct stack_store *store;
	struct rusage usage;
	pid_t child;
	uint32_t id;
	int status;

	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		/* Seconds; they would be minutes. */
		setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_SECONDS, CPU_SECONDS});
		_exit(stack_store_add_dump(store, 1, &dump, &id) != 0);
	}
	assert_int_equal(wait4(child, &status, 0, &usage), child);
	assert_int_equal(status, 0);
	stack_store_destroy(store);
	return usage.ru_maxrss;
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

static long own_kib(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

/* Where .eh_frame has no row, debugging information is asked, but not at any price. */
static void compressed_debug_information(void **state)
{
	static uint8_t content[4 << 20];
	const Elf64_Chdr compression = {
		.ch_type = ELFCOMPRESS_ZLIB, .ch_size = EXPANDED, .ch_addralign = 1};
	struct added_section section = {.name = ".debug_info",
					.type = SHT_PROGBITS,
					.flags = SHF_COMPRESSED,
					.data = content,
					.size = sizeof(compression)};

	memcpy(content, &compression, sizeof(compression));
	section.size += compress_zeros(content + section.size, sizeof(content) - section.size);
	write_sections(in_dir("file"), &section, 1);
	assert_in_range(unwind_file(in_dir("file"), BESIDE), 1, own_kib() + EXPANDED / 2 / 1024);
}

/* Unwinding needs no symbols, so it does not expand a MiniDebugInfo. */
static void compressed_symbols(void **state)
{
	static uint8_t zeros[64 << 20], content[1 << 20];
	struct added_section section = {
		.name = ".gnu_debugdata", .type = SHT_PROGBITS, .data = content};

	assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_NONE, NULL, zeros, sizeof(zeros),
						 content, &section.size, sizeof(content)),
			 LZMA_OK);
	write_sections(in_dir("file"), &section, 1);
	assert_in_range(unwind_file(in_dir("file"), BESIDE), 1,
			own_kib() + sizeof(zeros) / 2 / 1024);
}

static void put(uint8_t **at, const void *bytes, size_t nr)
{
	memcpy(*at, bytes, nr);
	*at += nr;
}

#define FRAMES_MAX 128

/* Puts the common entry (CIE) of a .debug_frame, with @nr_nops more instructions. */
static void put_common(uint8_t **at, uint32_t nr_nops)
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

/* Puts an entry for 16 bytes of code. */
static void put_entry(uint8_t **at, uint64_t code, const void *instructions, uint32_t nr)
{
	const uint32_t head[] = {20 + nr, 0};
	const uint64_t range[] = {code, 16};

	put(at, head, sizeof(head));
	put(at, range, sizeof(range));
	if (nr)
		put(at, instructions, nr);
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

#define FRAMES_IN(NAME, FLAGS, DATA, SIZE)                                                         \
	{                                                                                          \
		.name = (NAME), .type = SHT_PROGBITS, .flags = (FLAGS), .data = (DATA),            \
		.size = (SIZE)                                                                     \
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
	struct {
		char name[12];
		uint32_t checksum;
	} link = {.name = "file.debug"};
	const struct added_section section = {.name = ".gnu_debuglink",
					      .type = SHT_PROGBITS,
					      .data = &link,
					      .size = sizeof(link)};
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
	link.checksum = (uint32_t)crc32(0, (const uint8_t *)&file, sizeof(file));
	write_file(in_dir("file.debug"), &file, sizeof(file));
	write_sections(in_dir("file"), &section, 1);
	assert_in_range(unwind_file(in_dir("file"), BESIDE), 1, 1 << 20);
	assert_int_equal(unlink(in_dir("file.debug")), 0);
}

#define LONG_PROGRAM 250000
#define NR_LONG	     200000
#define NR_SHORT     1000000

/* Unwinds through a file with this .debug_frame, which ends at @end. */
static long unwind_frames(uint8_t *frames, const uint8_t *end)
{
	const struct added_section section =
		FRAMES_IN(".debug_frame", 0, frames, (size_t)(end - frames));

	write_sections(in_dir("file"), &section, 1);
	return unwind_file(in_dir("file"), BESIDE);
}

/* Without a table, libdw reads one entry after the other. */
static void many_entries(void **state)
{
	_cleanup_free_ uint8_t *frames = malloc(LONG_PROGRAM + (NR_SHORT + 2) * 24);
	uint8_t *at = frames;

	assert_non_null(frames);
	/* A long common program for each of them, which would be looked at for a minute */
	put_common(&at, LONG_PROGRAM);
	for (size_t i = 0; i < NR_LONG; i++)
		put_entry(&at, FRAME_FILE_MAX + 16 * i, NULL, 0);
	unwind_frames(frames, at);
	/* So many that libdw would take 100 MB */
	at = frames;
	put_common(&at, 0);
	for (size_t i = 0; i < NR_SHORT; i++)
		put_entry(&at, FRAME_FILE_MAX + 16 * i, NULL, 0);
	assert_in_range(unwind_frames(frames, at), 1, own_kib() + (32 << 10));
}

/* libdw makes 32 bytes of each in an expression, and keeps them. */
static void long_expressions(void **state)
{
	static uint8_t frames[LONG_PROGRAM + FRAMES_MAX], program[LONG_PROGRAM];
	/* def_cfa_expression of 200,000 bytes: nops */
	static const uint8_t begin[] = {0x0f, 0xc0, 0x9a, 0x0c};
	uint8_t *at = frames;

	memset(program, 0x96, sizeof(program));
	memcpy(program, begin, sizeof(begin));
	put_common(&at, 0);
	put_entry(&at, BESIDE, program, sizeof(begin) + 200000);
	assert_in_range(unwind_frames(frames, at), 1, own_kib() + (4 << 10));
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
	_cleanup_free_ Elf64_Sym *symbols = calloc(NR_SYMBOLS, sizeof(*symbols));
	_cleanup_free_ char *strings = malloc(STRING_BYTES);
	const struct added_section sections[] = {
		{.name = ".gopclntab", .type = SHT_PROGBITS},
		{.name = ".symtab",
		 .type = SHT_SYMTAB,
		 .data = symbols,
		 .size = NR_SYMBOLS * sizeof(*symbols),
		 .link = 3,
		 .entry_bytes = sizeof(*symbols)},
		{.name = ".strtab", .type = SHT_STRTAB, .data = strings, .size = STRING_BYTES},
	};

	assert_true(symbols && strings);
	for (size_t i = 0; i < NR_SYMBOLS; i++)
		symbols[i].st_name = 1;
	memset(strings, 'a', STRING_BYTES);
	write_sections(in_dir("file"), sections, ARRAY_SIZE(sections));
	unwind_file(in_dir("file"), FRAME_FILE_INSIDE);
}

/* Looks for the functions that may end a program in many copies of one table. */
static void many_symbol_tables(void **state)
{
	_cleanup_free_ Elf64_Sym *symbols = calloc(NR_SYMBOLS, sizeof(*symbols));
	const struct added_section sections[] = {
		{.name = ".strtab", .type = SHT_STRTAB, .data = "\0a", .size = 3},
		{.name = ".symtab",
		 .type = SHT_SYMTAB,
		 .data = symbols,
		 .size = NR_SYMBOLS * sizeof(*symbols),
		 .link = 1,
		 .entry_bytes = sizeof(*symbols),
		 .nr_copies = 60000},
	};

	assert_non_null(symbols);
	for (size_t i = 0; i < NR_SYMBOLS; i++)
		symbols[i].st_name = 1;
	write_sections(in_dir("file"), sections, ARRAY_SIZE(sections));
	unwind_file(in_dir("file"), CALL);
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
		cmocka_unit_test(compressed_symbols),
		cmocka_unit_test(hidden_debug_frames),
		cmocka_unit_test(small_debug_file),
		cmocka_unit_test(many_entries),
		cmocka_unit_test(long_expressions),
		cmocka_unit_test(truncated_files),
		cmocka_unit_test(endless_names),
		cmocka_unit_test(many_symbol_tables),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
