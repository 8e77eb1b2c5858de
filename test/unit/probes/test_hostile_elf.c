/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hostile ELF files: small files that claim to hold so much that reading takes very long, or all
 * memory.
 */
#include "probes/elf/analysis_limit.h"
#include "probes/plan/allocator_plan.h"
#include "common/proc/mapped_files.h"

#include "common/clock.h"
#include "common/scope.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (1ull << 20)

/* CPU time. Older versions took 8 to some hundred seconds for these files. */
#define MAX_SECONDS 10
#define SANE_NS	    (MAX_SECONDS * 1000000000ull) /* CPU time, for a busy machine */
#define MAX_KIB	    (256 * 1024)

enum { SYMBOLS_AT = 0x4000, CODE_AT = 0x1000, NAMES_AT = 0x2000 };
enum { TEXT = 1, SYMBOLS, STRINGS, SECTION_NAMES, NR_SECTIONS };

static const char section_names[] = "\0.text\0.dynsym\0.dynstr\0.shstrtab";
static const char symbol_names[] = "\0malloc\0free\0calloc";

/* The beginning of a file; the symbols follow at SYMBOLS_AT. */
struct head {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[NR_SECTIONS];
};

static Elf64_Sym function(uint32_t name, uint64_t address)
{
	return (Elf64_Sym){
		.st_name = name,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = TEXT,
		.st_value = address,
		.st_size = 16,
	};
}

/* An allocator with @nr_symbols, the last of which have the name at @name. */
static struct head make_head(size_t nr_symbols, uint64_t strings_at, uint64_t strings_size)
{
	return (struct head){.header =
				     {
					     .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
							 ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
					     .e_type = ET_DYN,
#if defined(__x86_64__)
					     .e_machine = EM_X86_64,
#else
					     .e_machine = EM_AARCH64,
#endif
					     .e_version = EV_CURRENT,
					     .e_phoff = offsetof(struct head, segment),
					     .e_shoff = offsetof(struct head, sections),
					     .e_ehsize = sizeof(Elf64_Ehdr),
					     .e_phentsize = sizeof(Elf64_Phdr),
					     .e_phnum = 1,
					     .e_shentsize = sizeof(Elf64_Shdr),
					     .e_shnum = NR_SECTIONS,
					     .e_shstrndx = SECTION_NAMES,
				     },
			     .segment = {.p_type = PT_LOAD,
					 .p_flags = PF_R | PF_X,
					 .p_filesz = NAMES_AT,
					 .p_memsz = NAMES_AT},
			     .sections = {
				     [TEXT] = {.sh_name = 1,
					       .sh_type = SHT_PROGBITS,
					       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					       .sh_addr = CODE_AT,
					       .sh_offset = CODE_AT,
					       .sh_size = 0x1000},
				     [SYMBOLS] = {.sh_name = 7,
						  .sh_type = SHT_DYNSYM,
						  .sh_offset = SYMBOLS_AT,
						  .sh_size = nr_symbols * sizeof(Elf64_Sym),
						  .sh_link = STRINGS,
						  .sh_entsize = sizeof(Elf64_Sym)},
				     [STRINGS] = {.sh_name = 15,
						  .sh_type = SHT_STRTAB,
						  .sh_offset = strings_at,
						  .sh_size = strings_size},
				     [SECTION_NAMES] = {.sh_name = 23,
							.sh_type = SHT_STRTAB,
							.sh_offset = NAMES_AT,
							.sh_size = sizeof(section_names)},
			     }};
}

static void put(int fd, const void *bytes, size_t size, uint64_t offset)
{
	assert_int_equal(pwrite(fd, bytes, size, (off_t)offset), size);
}

/*
 * Makes a file with @nr_symbols. All but three have the same name, which follows those of the
 * functions. The string table has @strings_size bytes: only the functions' names, or filled up with
 * 'A'.
 */
static int make_file(size_t nr_symbols, uint64_t strings_size, bool fill, bool ends)
{
	uint64_t strings_at = SYMBOLS_AT + nr_symbols * sizeof(Elf64_Sym);
	struct head head = make_head(nr_symbols, strings_at, strings_size);
	_cleanup_free_ Elf64_Sym *symbols = calloc(nr_symbols, sizeof(*symbols));
	_cleanup_free_ char *strings = fill ? malloc(strings_size) : NULL;
	uint8_t code[0x1000];
	int fd = memfd_create("hostile", MFD_CLOEXEC);

	assert_true(fd >= 0 && symbols && (strings || !fill));
	memset(code, 0xc3, sizeof(code));
	symbols[1] = function(1, CODE_AT);
	symbols[2] = function(8, CODE_AT + 16);
	symbols[3] = function(13, CODE_AT + 32);
	for (size_t i = 4; i < nr_symbols; i++)
		symbols[i] = function(sizeof(symbol_names), CODE_AT + 48);
	put(fd, &head, sizeof(head), 0);
	put(fd, code, sizeof(code), CODE_AT);
	put(fd, section_names, sizeof(section_names), NAMES_AT);
	put(fd, symbols, nr_symbols * sizeof(*symbols), SYMBOLS_AT);
	put(fd, symbol_names, sizeof(symbol_names), strings_at);
	if (fill) {
		memset(strings, 'A', strings_size);
		memcpy(strings, symbol_names, sizeof(symbol_names));
		if (ends)
			strings[strings_size - 1] = '\0';
		put(fd, strings, strings_size, strings_at);
	}
	assert_int_equal(ftruncate(fd, (off_t)(strings_at + strings_size)), 0);
	return fd;
}

/*
 * Plans for the file in a child process, within @limit_ns; 0: the default. Returns the number of
 * files planned: 0 or 1.
 */
static int plan_within(int fd, uint64_t limit_ns)
{
	struct rusage used;
	int status;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		struct rlimit limit = {MAX_SECONDS, MAX_SECONDS};
		char name[] = "hostile";
		struct mapped_file file = {.fd = fd, .path = name, .display = name};
		struct probe_set set = {.limit_ns = limit_ns};

		setrlimit(RLIMIT_CPU, &limit);
		if (fstat(fd, &file.stat) || allocator_plan_mapped(&set, &file))
			_exit(100);
		_exit((int)set.nr_files);
	}
	assert_int_equal(wait4(pid, &status, 0, &used), pid);
	assert_true(WIFEXITED(status));
	assert_true(used.ru_maxrss < MAX_KIB);
	close(fd);
	return WEXITSTATUS(status);
}

static int plan(int fd)
{
	return plan_within(fd, 0);
}

static void sane_files_are_planned_for(void **state)
{
	assert_int_equal(plan_within(make_file(4, sizeof(symbol_names), true, true), SANE_NS), 1);
	assert_int_equal(plan_within(make_file(100000, MIB, true, true), SANE_NS), 1);
}

static void strings_that_are_a_hole_take_no_memory(void **state)
{
	assert_int_equal(plan(make_file(4, 2048 * MIB, false, false)), 0);
}

static void names_without_an_end_take_no_time(void **state)
{
	assert_int_equal(plan(make_file(200000, 32 * MIB, true, false)), 0);
}

static void very_long_names_take_limited_time(void **state)
{
	/* A fast machine reads these names in less than ANALYSIS_LIMIT_NS, but not in a tenth of
	 * it. */
	assert_int_equal(
		plan_within(make_file(2000000, 32 * MIB, true, true), ANALYSIS_LIMIT_NS / 10), 0);
}

static void symbols_that_are_a_hole_take_no_time(void **state)
{
	struct head head = make_head(44000000, 0x3000, sizeof(symbol_names));
	int fd = make_file(4, sizeof(symbol_names), true, true);

	put(fd, &head, sizeof(head), 0);
	put(fd, symbol_names, sizeof(symbol_names), 0x3000);
	assert_int_equal(ftruncate(fd, SYMBOLS_AT + 44000000 * (off_t)sizeof(Elf64_Sym)), 0);
	assert_int_equal(plan(fd), 0);
}

/* libelf allocates memory for as many sections as a file claims to have, if it is long enough. */
static void numbers_of_sections_are_limited(void **state)
{
	int fd = make_file(4, sizeof(symbol_names), true, true);
	struct head head = make_head(4, SYMBOLS_AT + 4 * sizeof(Elf64_Sym), sizeof(symbol_names));

	head.header.e_shnum = 0;
	head.sections[0].sh_size = 8000000;
	put(fd, &head, sizeof(head), 0);
	assert_int_equal(ftruncate(fd, 8000000 * (off_t)sizeof(Elf64_Shdr) + 0x10000), 0);
	assert_int_equal(plan(fd), 0);
}

static void notes_that_are_a_hole_take_no_memory(void **state)
{
	int fd = make_file(4, sizeof(symbol_names), true, true);
	struct head head = make_head(4, SYMBOLS_AT + 4 * sizeof(Elf64_Sym), sizeof(symbol_names));

	head.sections[0] = (Elf64_Shdr){0};
	head.sections[TEXT] =
		(Elf64_Shdr){.sh_type = SHT_NOTE, .sh_offset = 0x10000, .sh_size = 2048 * MIB};
	put(fd, &head, sizeof(head), 0);
	assert_int_equal(ftruncate(fd, 2049 * (off_t)MIB), 0);
	assert_int_equal(plan(fd), 0);
}

static void a_limit_stays_reached_until_it_ends(void **state)
{
	assert_false(analysis_limit_is_reached(UINT32_MAX)); /* no limit is set */
	analysis_limit_begin(3600ull * 1000000000);
	assert_false(analysis_limit_is_reached(UINT32_MAX));
	assert_false(analysis_limit_end());
	analysis_limit_begin(0);
	while (!analysis_limit_is_reached(UINT32_MAX))
		;
	assert_true(analysis_limit_is_reached(0));
	assert_true(analysis_limit_end());
	assert_false(analysis_limit_is_reached(0));
	analysis_limit_begin(3600ull * 1000000000);
	analysis_limit_reach();
	assert_true(analysis_limit_is_reached(0));
	assert_true(analysis_limit_end());
}

#define PAUSE_NS 20000000ULL

static void take_cpu_time(void *context)
{
	uint64_t end_ns = clock_thread_ns() + PAUSE_NS;

	while (clock_thread_ns() < end_ns)
		;
	++*(int *)context;
}

static void pauses_do_not_count(void **state)
{
	uint64_t begin_ns = analysis_limit_thread_ns();
	int nr = 0;

	analysis_limit_set_pause(take_cpu_time, &nr);
	analysis_limit_begin(3600ull * 1000000000);
	assert_false(analysis_limit_is_reached(1));
	assert_int_equal(nr, 0);
	assert_false(analysis_limit_is_reached(UINT32_MAX));
	assert_int_equal(nr, 1);
	assert_true(analysis_limit_thread_ns() < begin_ns + PAUSE_NS);
	analysis_limit_set_pause(NULL, NULL);
	assert_false(analysis_limit_is_reached(UINT32_MAX));
	assert_int_equal(nr, 1);
	assert_false(analysis_limit_end());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sane_files_are_planned_for),
		cmocka_unit_test(strings_that_are_a_hole_take_no_memory),
		cmocka_unit_test(names_without_an_end_take_no_time),
		cmocka_unit_test(very_long_names_take_limited_time),
		cmocka_unit_test(symbols_that_are_a_hole_take_no_time),
		cmocka_unit_test(numbers_of_sections_are_limited),
		cmocka_unit_test(notes_that_are_a_hole_take_no_memory),
		cmocka_unit_test(a_limit_stays_reached_until_it_ends),
		cmocka_unit_test(pauses_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
