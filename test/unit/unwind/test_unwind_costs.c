/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that would take minutes of the process that unwinds through them, or much of its memory. */
#include "common/clock.h"
#include "test/unit/unwind/made_file.h"
#include "unwind/modules/owner_time.h"

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
	long peak;

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
	peak = unwind_frames(frames, at);
	/* After it, as this process needs memory to write the file, too. */
	assert_in_range(peak, 1, own_kib() + (32 << 10));
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

/* Root's files have no limits. */
static void give_away(const char *path)
{
	if (geteuid() == 0)
		assert_int_equal(chown(path, 65534, 65534), 0);
}

#define NR_CALLS 500

/* Each address of a stack makes libdw execute a long program. */
static void long_programs(void **state)
{
	static uint8_t frames[LONG_PROGRAM + FRAMES_MAX], program[LONG_PROGRAM];
	static const uint8_t first[] = {0x05, 0xff, 0x07, 0x01};
	const char *path = in_dir("file");
	uint64_t words[NR_CALLS], begin_ns, nr_windows;
	uint8_t *at = frames;
	struct rusage usage;

	/* remember_state, restore_state; before these, offset_extended of register 1023 */
	for (size_t i = 0; i < sizeof(program); i++)
		program[i] = i % 2 ? 0x0b : 0x0a;
	memcpy(program, first, sizeof(first));
	for (size_t i = 0; i < NR_CALLS; i++)
		words[i] = LOAD_ADDRESS + FRAME_FILE_MAX - NR_CALLS + i;
	put_common(&at, 0);
	put_range(&at, FRAME_FILE_MAX - NR_CALLS - 1, NR_CALLS + 1, program, sizeof(program));
	const struct added_section section =
		FRAMES_IN(".debug_frame", 0, frames, (size_t)(at - frames));
	write_sections(path, &section, 1);
	give_away(path);
	begin_ns = clock_now_ns();
	unwind_words(&path, 1, FRAME_FILE_MAX - NR_CALLS, words, NR_CALLS, &usage);
	nr_windows = (clock_now_ns() - begin_ns) / OWNER_TIME_WINDOW_NS + 1;
	assert_in_range(usage.ru_utime.tv_sec, 0, nr_windows * OWNER_TIME_NS / 1000000000 + 1);
}

#define NR_FILES   16
#define NR_ENTRIES 250000
/* KiB. ASan takes more for each block, and keeps 256 MiB of those that were freed. */
#ifdef __SANITIZE_ADDRESS__
#define MAX_MEMORY (800 << 10)
#else
#define MAX_MEMORY (300 << 10)
#endif

/* Each of many files makes libdw keep 28 MB. */
static void many_files(void **state)
{
	_cleanup_free_ uint8_t *frames = malloc((NR_ENTRIES + 2) * 24);
	char names[NR_FILES][512];
	const char *paths[NR_FILES];
	uint64_t words[NR_FILES];
	uint8_t *at = frames;
	struct rusage usage;

	assert_non_null(frames);
	put_common(&at, 0);
	for (size_t i = 0; i < NR_ENTRIES; i++)
		put_entry(&at, FRAME_FILE_MAX + 16 * i, NULL, 0);
	put_entry(&at, BESIDE, NULL, 0);
	const struct added_section section =
		FRAMES_IN(".debug_frame", 0, frames, (size_t)(at - frames));
	write_sections(in_dir("file"), &section, 1);
	give_away(in_dir("file"));
	for (size_t i = 0; i < NR_FILES; i++) {
		snprintf(names[i], sizeof(names[i]), "%s-%zu", in_dir("file"), i);
		paths[i] = names[i];
		words[i] = LOAD_ADDRESS + (i + 1) % NR_FILES * UNWIND_STEP + BESIDE + 4;
		assert_int_equal(link(in_dir("file"), names[i]), 0);
	}
	unwind_words(paths, NR_FILES, BESIDE, words, NR_FILES, &usage);
	assert_in_range(usage.ru_maxrss, 1, own_kib() + MAX_MEMORY);
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

#define NR_TABLES     4000
#define NR_OF_A_TABLE 1000000

/* Looks for the functions that may end a program in many copies of one table. */
static void many_symbol_tables(void **state)
{
	_cleanup_free_ Elf64_Sym *symbols = calloc(NR_OF_A_TABLE, sizeof(*symbols));
	const struct added_section sections[] = {
		{.name = ".strtab", .type = SHT_STRTAB, .data = "\0a", .size = 3},
		{.name = ".symtab",
		 .type = SHT_SYMTAB,
		 .data = symbols,
		 .size = NR_OF_A_TABLE * sizeof(*symbols),
		 .link = 1,
		 .entry_bytes = sizeof(*symbols),
		 .nr_copies = NR_TABLES},
	};

	assert_non_null(symbols);
	for (size_t i = 0; i < NR_OF_A_TABLE; i++)
		symbols[i].st_name = 1;
	write_sections(in_dir("file"), sections, ARRAY_SIZE(sections));
	unwind_file(in_dir("file"), CALL);
}

#define SPARSE_BYTES (4LL << 30)

/* The checksum of a debug file would take seconds. */
static void large_debug_files(void **state)
{
	const struct {
		char name[12];
		uint32_t checksum;
	} link = {.name = "file.debug", .checksum = 1};
	const struct added_section section = {.name = ".gnu_debuglink",
					      .type = SHT_PROGBITS,
					      .data = &link,
					      .size = sizeof(link)};
	const char *path = in_dir("file");
	const uint64_t word = 0;
	struct rusage usage;

	write_sections(path, &section, 1);
	write_file(in_dir("file.debug"), "", 0);
	assert_int_equal(truncate(in_dir("file.debug"), SPARSE_BYTES), 0);
	give_away(in_dir("file.debug"));
	unwind_words(&path, 1, BESIDE, &word, 1, &usage);
	assert_in_range(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec, 0, 0);
	assert_int_equal(unlink(in_dir("file.debug")), 0);
}

#define NR_LINKS     500
#define SUMMED_BYTES (64u << 20)

#define SLACK_NS     1000000000 /* for the last file, and all else */

static uint64_t cpu_ns(const struct rusage *usage)
{
	const struct timeval *user = &usage->ru_utime, *system = &usage->ru_stime;

	return (uint64_t)(user->tv_sec + system->tv_sec) * 1000000000 +
	       (uint64_t)(user->tv_usec + system->tv_usec) * 1000;
}

/* Root's files, each with a debug file of a user's, whose checksum differs */
static void many_checksums(void **state)
{
	/* def_cfa_expression rsp + 8, lit0, plus: no rule has it. rbp at CFA + 8 */
	static const uint8_t row[] = {0x0f, 4, 0x77, 8, 0x30, 0x22, 0x11, 6, 0x7f};
	const struct {
		char name[12];
		uint32_t checksum;
	} link_to = {.name = "roots.debug", .checksum = 1};
	const struct added_section section =
		FRAMES_IN(".gnu_debuglink", 0, &link_to, sizeof(link_to));
	char names[NR_LINKS][512];
	const char *paths[NR_LINKS];
	uint64_t words[2 * NR_LINKS] = {0}, begin_ns, nr_windows;
	uint8_t frames[FRAMES_MAX], *at = frames;
	struct rusage usage;

	put_common(&at, 0);
	put_entry(&at, BESIDE, row, sizeof(row));
	const struct added_section complex_row =
		FRAMES_IN(".debug_frame", 0, frames, (size_t)(at - frames));
	write_sections(in_dir("complex"), &complex_row, 1);
	write_sections(in_dir("roots"), &section, 1);
	write_file(in_dir("roots.debug"), "", 0);
	assert_int_equal(truncate(in_dir("roots.debug"), SUMMED_BYTES), 0);
	give_away(in_dir("roots.debug"));
	for (size_t i = 0; i < NR_LINKS; i++) {
		snprintf(names[i], sizeof(names[i]), "%s-%zu", in_dir("roots"), i);
		assert_int_equal(link(in_dir("roots"), names[i]), 0);
		paths[i] = names[i];
		words[2 * i] = STACK_ADDRESS + 16 * (i + 1);
		words[2 * i + 1] = LOAD_ADDRESS + (i + 1) % NR_LINKS * UNWIND_STEP + BESIDE + 4;
	}
	/* By rules, then by libdwfl */
	for (int i = 0; i < 2; i++) {
		if (i) {
			paths[0] = in_dir("complex");
			words[0] = words[1];
		}
		begin_ns = clock_now_ns();
		unwind_words(paths, NR_LINKS, BESIDE, words, ARRAY_SIZE(words), &usage);
		nr_windows = (clock_now_ns() - begin_ns) / OWNER_TIME_WINDOW_NS + 1;
		assert_in_range(cpu_ns(&usage), 0, nr_windows * OWNER_TIME_OPENING_NS + SLACK_NS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_entries),	     cmocka_unit_test(long_expressions),
		cmocka_unit_test(long_programs),     cmocka_unit_test(many_files),
		cmocka_unit_test(endless_names),     cmocka_unit_test(many_symbol_tables),
		cmocka_unit_test(large_debug_files), cmocka_unit_test(many_checksums),
	};

	return cmocka_run_group_tests(tests, scratch_dir_setup, scratch_dir_teardown);
}
