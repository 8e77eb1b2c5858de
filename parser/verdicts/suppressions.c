/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/verdicts/suppressions.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX	 "leak:"
#define MAX_LINE 4096
#define BLANKS	 " \t\r\n"

/*
 * Like TemplateMatch() of LLVM's sanitizer_common: each piece between asterisks matches at its
 * first occurrence, so `foo$` does not match "foofoo".
 */
bool suppression_matches(const char *pattern, const char *text)
{
	bool at_start = *pattern == '^', after_star = false;

	if (!text || !*text)
		return false;
	pattern += at_start;
	while (*pattern) {
		size_t len = strcspn(pattern, "*$");
		const char *found;

		if (*pattern == '*') {
			pattern++;
			at_start = false;
			after_star = true;
			continue;
		}
		if (*pattern == '$')
			return !*text || after_star;
		found = memmem(text, strlen(text), pattern, len);
		if (!found || (at_start && found != text))
			return false;
		text = found + len;
		pattern += len;
		at_start = after_star = false;
	}
	return true;
}

struct suppression *suppressions_find(const struct suppressions *suppressions, const char *name)
{
	for (size_t i = 0; name && i < suppressions->nr; i++)
		if (suppression_matches(suppressions->list[i].pattern, name))
			return &suppressions->list[i];
	return NULL;
}

/* Adds the suppression in @line, if any. */
static int add_line(struct suppressions *suppressions, const char *path, size_t number, char *line)
{
	struct suppression *grown;
	size_t len;

	line += strspn(line, BLANKS);
	len = strlen(line);
	while (len > 0 && strchr(BLANKS, line[len - 1]))
		line[--len] = '\0';
	if (!*line || *line == '#')
		return 0;
	if (strncmp(line, PREFIX, strlen(PREFIX)) != 0 || !line[strlen(PREFIX)]) {
		diag_error("%s:%zu: not a suppression: \"%s\"; write " PREFIX "PATTERN", path,
			   number, line);
		return -EINVAL;
	}
	grown = reallocarray(suppressions->list, suppressions->nr + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	suppressions->list = grown;
	grown[suppressions->nr] = (struct suppression){
		.pattern = strdup(line + strlen(PREFIX)),
		.line = number,
	};
	return grown[suppressions->nr++].pattern ? 0 : -ENOMEM;
}

int suppressions_read(struct suppressions *suppressions, const char *path)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char line[MAX_LINE];
	size_t number = 0;
	int err = 0;

	if (!file) {
		err = errno;
		diag_error("cannot read the suppressions in %s: %s", path, strerror(err));
		return -err;
	}
	while (!err && fgets(line, sizeof(line), file)) {
		number++;
		if (!strchr(line, '\n') && !feof(file)) {
			diag_error("%s:%zu: the line is too long", path, number);
			return -EINVAL;
		}
		err = add_line(suppressions, path, number, line);
	}
	if (!err && ferror(file)) {
		diag_error("cannot read the suppressions in %s: %s", path, strerror(errno));
		return -EIO;
	}
	if (err == -ENOMEM)
		diag_error("cannot read the suppressions in %s: out of memory", path);
	return err;
}

void suppressions_deinit(struct suppressions *suppressions)
{
	for (size_t i = 0; i < suppressions->nr; i++)
		free(suppressions->list[i].pattern);
	free(suppressions->list);
	*suppressions = (struct suppressions){0};
}

void suppressions_reset(struct suppressions *suppressions)
{
	for (size_t i = 0; i < suppressions->nr; i++)
		suppressions->list[i].blocks = suppressions->list[i].bytes = 0;
}
