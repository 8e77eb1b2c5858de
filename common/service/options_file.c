/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/service/options_file.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BLANKS	"\t\r "
#define LETTERS "abcdefghijklmnopqrstuvwxyz-"

int option_words_add(struct option_words *words, const char *word)
{
	char **grown = reallocarray(words->words, words->nr + 2, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	words->words = grown;
	grown[words->nr + 1] = NULL;
	grown[words->nr] = strdup(word);
	if (!grown[words->nr])
		return -ENOMEM;
	words->nr++;
	return 0;
}

void option_words_deinit(struct option_words *words)
{
	for (size_t i = 0; i < words->nr; i++)
		free(words->words[i]);
	free(words->words);
	*words = (struct option_words){0};
}

/* Returns why an open file or directory cannot be trusted, or NULL. */
static const char *objection(const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return "another user owns it; make it root's";
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return "other users can write to it; take that right away (chmod go-w)";
	return NULL;
}

int options_file_open_dir(const char *dir)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *why;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		int err = errno;

		diag_error("cannot open the options' directory %s: %s", dir, strerror(err));
		return -err;
	}
	why = objection(&st);
	if (why) {
		diag_error("cannot take options from %s: %s", dir, why);
		return -EPERM;
	}
	return steal_fd(fd);
}

/* Reads the file, which is opened once. Returns 0 or a negative errno, reported except -ENOENT. */
static int read_text(int dir_fd, const char *dir, const char *name, char **ret)
{
	_cleanup_free_ char *text = malloc(OPTIONS_FILE_MAX_BYTES + 1);
	_cleanup_close_ int fd =
		openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	const char *why = NULL;
	struct stat st = {0};
	size_t size = 0;
	ssize_t len = 0;
	int err = fd < 0 || fstat(fd, &st) < 0 ? -errno : text ? 0 : -ENOMEM;

	if (err == -ENOENT)
		return err;
	if (!err)
		why = S_ISREG(st.st_mode) ? objection(&st) : "it is not a regular file";
	while (!err && !why && size < OPTIONS_FILE_MAX_BYTES + 1 &&
	       (len = read(fd, text + size, OPTIONS_FILE_MAX_BYTES + 1 - size)) > 0)
		size += (size_t)len;
	if (len < 0)
		err = -errno;
	else if (size > OPTIONS_FILE_MAX_BYTES)
		why = "it has more than 64 KiB";
	else if (!err && !why && memchr(text, '\0', size))
		why = "it is not a text";
	if (err || why) {
		diag_error("cannot take options from %s/%s: %s", dir, name,
			   why ? why : strerror(-err));
		return err ? err : -EPERM;
	}
	text[size] = '\0';
	*ret = steal_ptr(text);
	return 0;
}

/* Drops the words "--NAME" and "--NAME=...". */
static void unset(struct option_words *words, const char *name)
{
	size_t len = strlen(name), nr = 0;

	for (size_t i = 0; i < words->nr; i++) {
		const char *word = words->words[i];

		if (strncmp(word, "--", 2) == 0 && strncmp(word + 2, name, len) == 0 &&
		    (!word[2 + len] || word[2 + len] == '='))
			free(words->words[i]);
		else
			words->words[nr++] = words->words[i];
	}
	words->nr = nr;
	if (words->words)
		words->words[nr] = NULL;
}

/* Adds "--NAME=ARGUMENT" with %i replaced. Returns 0 or -ENOMEM. */
static int add_option(struct option_words *words, const char *name, const char *argument,
		      const char *instance)
{
	_cleanup_free_ char *word = NULL;
	size_t size;
	FILE *out = open_memstream(&word, &size);

	if (!out)
		return -ENOMEM;
	fprintf(out, *argument ? "--%s=" : "--%s", name);
	for (; *argument; argument++) {
		if (strncmp(argument, "%i", 2) == 0) {
			fputs(instance, out);
			argument++;
		} else {
			fputc(*argument, out);
		}
	}
	return fclose(out) ? -ENOMEM : option_words_add(words, word);
}

/* Splits a line in place. Returns 0, -EINVAL if it is no option, or -ENOMEM. */
static int parse_line(char *line, const char *instance, struct option_words *words)
{
	char *name = line + strspn(line, BLANKS), *argument;
	size_t len = strlen(name), name_len = strspn(name, LETTERS);

	if (!*name || *name == '#')
		return 0;
	while (strchr(BLANKS, name[len - 1]))
		name[--len] = '\0';
	argument = name + name_len;
	if (!name_len || *name == '-' || (*argument && !strchr(BLANKS "=", *argument)))
		return -EINVAL;
	argument += strspn(argument, BLANKS);
	argument += *argument == '=';
	argument += strspn(argument, BLANKS);
	name[name_len] = '\0';
	if (strcmp(name, "unset") != 0)
		return add_option(words, name, argument, instance);
	if (!*argument)
		return -EINVAL;
	unset(words, argument);
	return 0;
}

int options_file_read(int dir_fd, const char *dir, const char *name, const char *instance,
		      struct option_words *words)
{
	_cleanup_free_ char *text = NULL;
	int err = read_text(dir_fd, dir, name, &text);
	char *rest = text, *line;

	for (unsigned int nr = 1; !err && rest && (line = strsep(&rest, "\n")); nr++) {
		err = parse_line(line, instance, words);
		if (err == -EINVAL)
			diag_error("%s/%s, line %u: that is no option; write NAME ARGUMENT, as in "
				   "\"budget 2%%\"",
				   dir, name, nr);
	}
	return err;
}
