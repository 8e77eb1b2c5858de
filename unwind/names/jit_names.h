/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of code that a process generated. Its runtime writes them to /tmp/perf-PID.map and appends
 * as it makes code: one line "START SIZE NAME" in hexadecimal for each piece. Where pieces overlap,
 * the last one counts, because memory is reused. Runtimes compile a function several times and mark
 * its versions in the name; these marks are left out, because it is one function.
 *
 * Anyone can write to /tmp. So the file must be a regular file, not reached by a link, and belong
 * to the process's user or to root. If the process has ended, its user is not known, and the file
 * must belong to our own user or to root (as with perf). The file of a living process is looked for
 * in its own root, by its pid there.
 */
#ifndef LEAKTOOLS_UNWIND_JIT_NAMES_H
#define LEAKTOOLS_UNWIND_JIT_NAMES_H

#include "common/broker/broker.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JIT_MAX_FILE (128u << 20) /* bytes; the rest is not read */
#define JIT_MAX_NAME 1024	  /* bytes; longer ones are cut */

struct jit_piece {
	uint64_t start, end;  /* [start, end) */
	uint64_t highest_end; /* of all pieces up to this one */
	const char *name;
	size_t line; /* the later one counts */
};

struct jit_names {
	char *path; /* for messages; NULL: no file */
	char *text;
	struct jit_piece *pieces; /* by start */
	size_t nr, capacity;
};

/*
 * Reads the file of process @pid: SYMFS/tmp/perf-PID.map if @symfs is not NULL and that exists.
 * Without a trusted file there are no names. Returns 0 or -ENOMEM.
 */
int jit_names_init(struct jit_names *names, pid_t pid, const char *symfs);
void jit_names_deinit(struct jit_names *names);

/* The broker's part of that (BROKER_OPEN_JIT_NAMES). @context: symfs. */
int jit_names_serve(void *context, const struct broker_request *request, int *ret_fd);

/* The piece that holds @address, or NULL. */
const struct jit_piece *jit_names_find(const struct jit_names *names, uint64_t address);

#endif
