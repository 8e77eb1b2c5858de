/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options from a file, as words of a command line. A line is the long name of an option and its
 * argument, as in "budget 2%" or "budget = 2%"; "unset budget" drops what earlier lines said of it.
 * Lines that are empty or begin with # are comments. "%i" stands for the instance: what the file's
 * reader is started for. No shell reads anything.
 *
 * Options may name commands that root runs. So a file, and its directory, must belong to this
 * process's user or root, and nobody else may be able to write to them.
 */
#ifndef LEAKTOOLS_COMMON_OPTIONS_FILE_H
#define LEAKTOOLS_COMMON_OPTIONS_FILE_H

#include <stddef.h>

#define OPTIONS_FILE_MAX_BYTES ((size_t)64 << 10)

struct option_words {
	char **words; /* the one after the last is NULL */
	size_t nr;
};

/* Copies @word. Returns 0 or -ENOMEM. */
int option_words_add(struct option_words *words, const char *word);
void option_words_deinit(struct option_words *words);

/* Opens a directory of such files. Returns a descriptor, or a negative errno, reported. */
int options_file_open_dir(const char *dir);

/*
 * Adds the options in the file @name of the directory @dir_fd, which messages call @dir. Returns 0;
 * -ENOENT, not reported, if there is no such file; or another negative errno, reported: -EINVAL for
 * what the file says.
 */
int options_file_read(int dir_fd, const char *dir, const char *name, const char *instance,
		      struct option_words *words);

#endif
