/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Host, command and time of day, from sections that are whole, cut off, or hostile. */
#include "parser/perfdata/recording_origin.h"

#include "common/perf_disk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct section {
	uint8_t bytes[8192];
	size_t nr;
};

static void add_word(struct section *section, const char *word)
{
	const uint32_t size = (uint32_t)(strlen(word) + 64) / 64 * 64;

	memcpy(section->bytes + section->nr, &size, sizeof(size));
	memcpy(section->bytes + section->nr + sizeof(size), word, strlen(word));
	section->nr += sizeof(size) + size;
}

/* Reads the first @nr bytes, beyond which there is no memory. */
static struct recording_origin read_part(uint64_t feature, const struct section *section, size_t nr)
{
	struct recording_origin origin = {0};
	uint8_t *part = malloc(nr ? nr : 1);

	assert_non_null(part);
	memcpy(part, section->bytes, nr);
	recording_origin_read(&origin, feature, part, nr);
	free(part);
	return origin;
}

static void words_are_quoted(void **state)
{
	struct section command = {.nr = 4}, host = {0};

	add_word(&command, "/usr/bin/leakrec");
	add_word(&command, "--");
	add_word(&command, "sh");
	add_word(&command, "it's a \033[2J");
	add_word(&command, "");
	add_word(&host, "db-1");
	assert_string_equal(read_part(PERF_FEATURE_CMDLINE, &command, command.nr).command,
			    "/usr/bin/leakrec -- sh 'it'\\''s a \033[2J' ''");
	assert_string_equal(read_part(PERF_FEATURE_HOSTNAME, &host, host.nr).host, "db-1");
	for (size_t nr = 0; nr < command.nr; nr++)
		read_part(PERF_FEATURE_CMDLINE, &command, nr);
	for (size_t nr = 0; nr < host.nr; nr++)
		assert_string_equal(read_part(PERF_FEATURE_HOSTNAME, &host, nr).host, "");
}

static void long_words_are_cut(void **state)
{
	struct section section = {.nr = 4};
	struct recording_origin origin;
	char word[4000];

	memset(word, 'x', sizeof(word));
	word[sizeof(word) - 1] = '\0';
	add_word(&section, word);
	origin = read_part(PERF_FEATURE_CMDLINE, &section, section.nr);
	assert_int_equal(strlen(origin.command), sizeof(origin.command) - 1);
	origin = read_part(PERF_FEATURE_HOSTNAME, &section, section.nr);
	assert_string_equal(origin.host, "");
	section.nr = 0;
	add_word(&section, word);
	origin = read_part(PERF_FEATURE_HOSTNAME, &section, section.nr);
	assert_int_equal(strlen(origin.host), sizeof(origin.host) - 1);
}

static void the_clock_gives_the_time_of_day(void **state)
{
	const struct perf_clock_data clock = {PERF_CLOCK_DATA_VERSION, 1, 5000, 200};
	const struct perf_clock_data newer = {PERF_CLOCK_DATA_VERSION + 1, 1, 5000, 200};
	struct section section = {.nr = sizeof(clock)};
	struct recording_origin origin;

	memcpy(section.bytes, &clock, sizeof(clock));
	origin = read_part(PERF_FEATURE_CLOCK_DATA, &section, section.nr);
	assert_int_equal(recording_origin_time_of_day(&origin, 300), 5100);
	assert_int_equal(recording_origin_time_of_day(&origin, 100), 4900);
	origin = read_part(PERF_FEATURE_CLOCK_DATA, &section, section.nr - 1);
	assert_int_equal(recording_origin_time_of_day(&origin, 300), 0);
	memcpy(section.bytes, &newer, sizeof(newer));
	origin = read_part(PERF_FEATURE_CLOCK_DATA, &section, section.nr);
	assert_int_equal(recording_origin_time_of_day(&origin, 300), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_quoted),
		cmocka_unit_test(long_words_are_cut),
		cmocka_unit_test(the_clock_gives_the_time_of_day),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
