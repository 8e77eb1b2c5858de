/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perfdata/recording_origin.h"

#include "common/perf_disk.h"
#include "parser/perfdata/perf_command.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Characters that a shell takes as they are. */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%"

static void write_quoted(FILE *out, const char *word)
{
	bool is_plain = *word && !word[strspn(word, PLAIN)];

	if (!is_plain)
		fputc('\'', out);
	for (; *word; word++)
		fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, out);
	if (!is_plain)
		fputc('\'', out);
}

static void read_command(struct recording_origin *origin, const uint8_t *section, size_t size_bytes)
{
	struct perf_words words = perf_words_of_command(section, size_bytes);
	FILE *out = fmemopen(origin->command, sizeof(origin->command), "w");
	const char *word, *separator = "";

	if (!out)
		return;
	while (!ferror(out) && (word = perf_words_next(&words))) {
		fputs(separator, out);
		write_quoted(out, word);
		separator = " ";
	}
	fclose(out);
	origin->command[sizeof(origin->command) - 1] = '\0';
}

void recording_origin_read(struct recording_origin *origin, uint64_t feature,
			   const uint8_t *section, size_t size_bytes)
{
	struct perf_words words = {section, size_bytes};
	struct perf_clock_data clock;

	if (feature == PERF_FEATURE_CMDLINE) {
		read_command(origin, section, size_bytes);
	} else if (feature == PERF_FEATURE_HOSTNAME) {
		const char *host = perf_words_next(&words);

		snprintf(origin->host, sizeof(origin->host), "%s", host ? host : "");
	} else if (feature == PERF_FEATURE_CLOCK_DATA && size_bytes >= sizeof(clock)) {
		memcpy(&clock, section, sizeof(clock));
		if (clock.version != PERF_CLOCK_DATA_VERSION)
			return;
		origin->day_ns = clock.day_ns;
		origin->clock_ns = clock.clock_ns;
	}
}

uint64_t recording_origin_time_of_day(const struct recording_origin *origin, uint64_t time_ns)
{
	return origin->day_ns ? origin->day_ns + time_ns - origin->clock_ns : 0;
}
