/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of code that a process made itself, as its runtime writes them to /tmp/perf-PID.map: one
 * line "START SIZE NAME" for each piece, in hexadecimal, appended as code is made. Of pieces that
 * overlap, the last one's memory has been used anew: it holds.
 *
 * Anyone can write to /tmp. So the file must be a regular one, no link, and belong to the process's
 * user or to root; of a process that has ended, whose user is not known, to our own user or to root
 * (as perf has it). A living process's file is looked for in its own root, by its pid there.
 */
#ifndef LEAKTOOLS_UNWIND_JIT_NAMES_H
#define LEAKTOOLS_UNWIND_JIT_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JIT_MAX_FILE (128u << 20) /* bytes; what is beyond is not read */
#define JIT_MAX_NAME 1024	  /* bytes; longer ones are cut */

struct jit_piece {
	uint64_t start, end;  /* [start, end) */
	uint64_t highest_end; /* of the pieces up to this */
	const char *name;
	size_t line; /* the later one holds */
};

struct jit_names {
	char *path; /* for people; NULL: no file */
	char *text;
	struct jit_piece *pieces; /* by start */
	size_t nr, capacity;
};

/*
 * Reads the file of process @pid, SYMFS/tmp/perf-PID.map where @symfs is not NULL and that exists.
 * Without a file that may be trusted there are no names. Returns 0 or -ENOMEM.
 */
int jit_names_init(struct jit_names *names, pid_t pid, const char *symfs);
void jit_names_deinit(struct jit_names *names);

/* Parses @text of @size bytes, which it takes over and changes. Returns 0 or -ENOMEM. */
int jit_names_parse(struct jit_names *names, char *text, size_t size);

/* The piece that holds @address, or NULL. */
const struct jit_piece *jit_names_find(const struct jit_names *names, uint64_t address);

#endif
