/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The calls of causes in generated recordings. */
#include "common/scope.h"
#include "report/call_sites/call_sites_text.h"
#include "test/support/perf_data_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define SECOND	UINT64_C(1000000000)

#define LIBRARY 0x100000
#define PROGRAM 0x200000
#define MALLOC	(LIBRARY + 0x800)
#define FREE	(LIBRARY + 0x900)
#define REALLOC (LIBRARY + 0xa00)

/* The program's calls: where they return to. */
#define CALLER (PROGRAM + 0x10)
#define MAIN   (PROGRAM + 0x50)
#define NOBODY 0x909090

struct recording {
	struct perf_data_writer *writer;
	int malloc_call, free_entry, realloc_entry, realloc_return;
	uint64_t time_ns;
};

static int setup(void **state)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	struct perf_data_writer *writer = perf_data_writer_create(NULL);

	assert_non_null(recording);
	*recording = (struct recording){
		.writer = writer,
		.malloc_call = perf_data_add_probe(writer, "malloc", PROBE_CALL),
		.free_entry = perf_data_add_probe(writer, "free", PROBE_ENTRY),
		.realloc_entry = perf_data_add_probe(writer, "realloc", PROBE_ENTRY),
		.realloc_return = perf_data_add_probe(writer, "realloc", PROBE_RETURN),
		.time_ns = SECOND,
	};
	perf_data_mmap_build_id(writer, 7, 1, LIBRARY, 0x1000, "/nowhere/libc.so", 0xab);
	perf_data_mmap(writer, 7, 2, PROGRAM, 0x10000, 0x4000, "/nowhere/a program\n");
	*state = recording;
	return 0;
}

static int teardown(void **state)
{
	struct recording *recording = *state;

	perf_data_writer_destroy(recording->writer);
	free(recording);
	return 0;
}

static void add(struct recording *recording, int event, const uint64_t *fields,
		const uint64_t *chain, size_t nr)
{
	const struct perf_data_sample sample = {
		.event = event,
		.pid = 7,
		.tid = 8,
		.time_ns = recording->time_ns += SECOND / 100,
		.fields = fields,
		.callchain = chain,
		.nr_callchain = nr,
	};

	perf_data_sample(recording->writer, &sample);
}

static void add_malloc(struct recording *recording, uint64_t block)
{
	static const uint64_t chain[] = {CALLER, MAIN, NOBODY};

	add(recording, recording->malloc_call, (uint64_t[]){MALLOC, CALLER, 30, block}, chain, 3);
}

static void add_free(struct recording *recording, uint64_t block, uint64_t caller)
{
	add(recording, recording->free_entry, (uint64_t[]){FREE, block, caller}, NULL, 0);
}

static void add_failed_realloc(struct recording *recording, uint64_t block, uint64_t caller)
{
	add(recording, recording->realloc_entry, (uint64_t[]){REALLOC, block, 60, caller}, NULL, 0);
	add(recording, recording->realloc_return, (uint64_t[]){REALLOC, caller, 0}, &caller, 1);
}

/* The calls of row @row, the caller frees the text; NULL: there is no such row. */
static char *call_sites_of(struct recording *recording, size_t row)
{
	struct release_counts *releases = release_counts_create();
	const struct heap_observer observer = {
		.context = releases,
		.on_change = call_sites_change,
	};
	const struct leaks_options options = {0};
	const struct stack_store_options stacks = {0};
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	char path[64], *text = NULL;
	const char *paths[] = {path};
	struct analysis analysis;
	struct leak_report report;
	size_t size;

	assert_true(releases && fd >= 0);
	assert_int_equal(perf_data_write(recording->writer, PERF_DATA_FILE, fd), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(analysis_init(&analysis, &stacks, &observer), 0);
	assert_int_equal(analysis_read(&analysis, paths, 1), 0);
	assert_int_equal(leak_report_init(&report, &analysis, &options), 0);
	if (call_sites_has_row(&report, row)) {
		FILE *out = open_memstream(&text, &size);

		assert_non_null(out);
		assert_int_equal(call_sites_write(out, &report, row, releases), 0);
		fclose(out);
	}
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
	release_counts_destroy(releases);
	return text;
}

/* The text without its first line, which must begin with @head, and the next, about the time. */
static const char *after_head(const char *text, const char *head)
{
	assert_non_null(text);
	if (strncmp(text, head, strlen(head)) != 0)
		fail_msg("no \"%s\" at the beginning of\n%s", head, text);
	text = strchr(text, '\n') + 1;
	assert_int_equal(strncmp(text, "observed ", strlen("observed ")), 0);
	return strchr(text, '\n') + 1;
}

static size_t count(const char *text, const char *part)
{
	size_t nr = 0;

	for (; (text = strstr(text, part)); text++)
		nr++;
	return nr;
}

#define LIBRARY_ID "abababababababababababababababababababab"
#define IN_LIBRARY "\t/nowhere/libc.so\n"
#define IN_PROGRAM "\t/nowhere/a program\\x0a\n"

static void calls_have_places_in_files(void **state)
{
	struct recording *recording = *state;
	_cleanup_free_ char *text = NULL;

	for (uint64_t block = 0; block < 6; block++)
		add_malloc(recording, 0xa000 + 0x100 * block);
	add_free(recording, 0xa000, CALLER + 0x20);
	add_free(recording, 0xa100, CALLER + 0x30);
	add_free(recording, 0xa200, CALLER + 0x30);
	add_free(recording, 0xa200, CALLER + 0x40); /* it is free already */
	add_failed_realloc(recording, 0xa300, CALLER + 0x50);
	text = call_sites_of(recording, 1);
	assert_string_equal(after_head(text, "# cause 1: 3 blocks, 90 bytes: "),
			    "alloc 6\n"
			    "\t" LIBRARY_ID "\t0x800" IN_LIBRARY "\t-\t0x4010" IN_PROGRAM
			    "\t-\t0x4050" IN_PROGRAM "\t-\t-\t-\n"
			    "release 2\n"
			    "\t" LIBRARY_ID "\t0x900" IN_LIBRARY "\t-\t0x4040" IN_PROGRAM
			    "release 1\n"
			    "\t" LIBRARY_ID "\t0x900" IN_LIBRARY "\t-\t0x4030" IN_PROGRAM);
}

static void of_many_the_most_frequent_are_listed(void **state)
{
	struct recording *recording = *state;
	_cleanup_free_ char *text = NULL;

	for (uint64_t i = 0; i < 70; i++) {
		add_malloc(recording, 0xa000);
		add_free(recording, 0xa000, CALLER + 0x10 * i);
	}
	add_malloc(recording, 0xa000);
	add_free(recording, 0xa000, CALLER + 0x10 * 69);
	add_malloc(recording, 0xa000);
	text = call_sites_of(recording, 1);
	after_head(text, "# cause 1: 1 block, 30 bytes: ");
	assert_int_equal(count(text, "\nalloc 72\n"), 1);
	assert_int_equal(count(text, "\nalloc "), 1);
	assert_int_equal(count(text, "\nrelease 2\n"), 1);
	assert_int_equal(count(text, "\nrelease "), 64);
	assert_true(strstr(text, "\nrelease 2\n") < strstr(text, "\nrelease 1\n"));
	assert_int_equal(count(text, "\n# not listed: 6 more release\n"), 1);
}

static void a_block_that_nobody_releases_has_no_releases(void **state)
{
	_cleanup_free_ char *text = NULL;

	add_malloc(*state, 0xa000);
	text = call_sites_of(*state, 1);
	assert_int_equal(count(text, "\nalloc 1\n"), 1);
	assert_int_equal(count(text, "release"), 0);
}

static void rows_are_those_of_the_summary(void **state)
{
	assert_null(call_sites_of(*state, 1));
	add_malloc(*state, 0xa000);
	assert_null(call_sites_of(*state, 0));
	assert_null(call_sites_of(*state, 2));
	assert_null(call_sites_of(*state, SIZE_MAX));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(calls_have_places_in_files),
		TEST(of_many_the_most_frequent_are_listed),
		TEST(a_block_that_nobody_releases_has_no_releases),
		TEST(rows_are_those_of_the_summary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
