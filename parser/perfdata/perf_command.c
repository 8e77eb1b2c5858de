/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perfdata/perf_command.h"

#include <string.h>

const char *perf_words_next(struct perf_words *words)
{
	const char *word = (const char *)words->at + sizeof(uint32_t);
	uint32_t size;

	if (words->left < sizeof(size))
		return NULL;
	memcpy(&size, words->at, sizeof(size));
	if (size > words->left - sizeof(size) || !memchr(word, '\0', size))
		return NULL;
	words->at += sizeof(size) + size;
	words->left -= sizeof(size) + size;
	return word;
}

struct perf_words perf_words_of_command(const uint8_t *section, size_t size_bytes)
{
	const size_t number = sizeof(uint32_t);

	return size_bytes < number ? (struct perf_words){section, 0}
				   : (struct perf_words){section + number, size_bytes - number};
}

static enum perf_recorder recorder_of(const char *program)
{
	const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;

	if (strcmp(name, "leakrec") == 0)
		return PERF_RECORDER_LEAKREC;
	return strncmp(name, "perf", strlen("perf")) == 0 ? PERF_RECORDER_PERF
							  : PERF_RECORDER_UNKNOWN;
}

/* The value of @option, which @word begins; NULL: it does not. */
static const char *value_of(const char *option, const char *word, struct perf_words *words)
{
	size_t len = strlen(option);

	if (strncmp(word, option, len) != 0)
		return NULL;
	if (word[len] == '=')
		return word + len + 1;
	return word[len] == '\0' ? perf_words_next(words) : NULL;
}

/* The same of a short option, whose value may follow at once. */
static const char *value_of_letter(const char *option, const char *word, struct perf_words *words)
{
	if (strncmp(word, option, strlen(option)) != 0)
		return NULL;
	word += strlen(option);
	return *word ? word : perf_words_next(words);
}

struct perf_command perf_command_parse(const uint8_t *section, size_t size_bytes)
{
	struct perf_words words = perf_words_of_command(section, size_bytes);
	struct perf_command command = {0};
	const char *word, *value;
	uint64_t bytes;

	word = perf_words_next(&words);
	command.recorder = word ? recorder_of(word) : PERF_RECORDER_UNKNOWN;
	if (command.recorder != PERF_RECORDER_LEAKREC)
		return command;
	command.unwinds = true;
	while ((word = perf_words_next(&words))) {
		if (strcmp(word, "--") == 0) {
			command.starts_command = perf_words_next(&words) != NULL;
			break;
		}
		value = value_of("--on-overload", word, &words);
		if (value)
			command.drops = strcmp(value, "drop") == 0;
		value = value_of("--size", word, &words);
		if (!value)
			value = value_of_letter("-s", word, &words);
		if (value)
			command.has_sizes = size_range_parse(value, &command.sizes) == 0;
		if (value_of("--filter", word, &words))
			command.partial = "--filter";
		if (value_of("--narrow", word, &words))
			command.partial = "--narrow";
		value = value_of("--call-graph", word, &words);
		if (!value)
			continue;
		command.unwinds = strncmp(value, "dwarf", strlen("dwarf")) == 0;
		command.dump_bytes = strncmp(value, "dwarf,", 6) == 0 &&
						     size_parse(value + 6, &bytes) == 0 &&
						     bytes <= UINT32_MAX
					     ? (uint32_t)bytes
					     : 0;
	}
	return command;
}
