/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What make_corpus writes. It ends the program if it cannot. */
#ifndef LEAKTOOLS_TEST_FUZZ_CORPUS_H
#define LEAKTOOLS_TEST_FUZZ_CORPUS_H

#include <stddef.h>

/* Prints why, with errno, and ends the program. */
void corpus_fail(const char *what) __attribute__((noreturn));

/* Writes the file DIR/NAME. */
void corpus_write(const char *dir, const char *name, const void *bytes, size_t nr);

/* What the analysis of the allocator at @path says, as fuzz_answer takes it. */
void corpus_write_answers(const char *dir, const char *path);

/* Recordings: of each form, with each kind of event, compressed ones. */
void corpus_write_recordings(const char *dir);

/* Stack dumps and small files with call frame information, as fuzz_unwind takes them. */
void corpus_write_unwind(const char *dir);

#endif
