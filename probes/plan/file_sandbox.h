/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads files that others own in processes without privileges (common/sandbox/sandbox.h), those of
 * one owner by one process: what a file makes it do costs what is asked of the same owner's files.
 */
#ifndef LEAKTOOLS_PROBES_FILE_SANDBOX_H
#define LEAKTOOLS_PROBES_FILE_SANDBOX_H

#include "common/proc/mapped_files.h"
#include "common/sandbox/message.h"
#include "probes/elf/debug_symbols.h"

struct file_sandbox {
	const struct mapped_file *files;
	size_t nr;
	const struct debug_symbols_files *debug; /* to read with the only file; or NULL */
	uint64_t cpu_limit_ns;			 /* for each file */
	/* In the process without privileges: reads file @nr, and writes the reply. */
	void (*analyse)(void *context, size_t nr, FILE *reply);
	/* Takes the reply on file @nr. Returns 0 or a negative errno, reported, that ends all. */
	int (*take)(void *context, size_t nr, struct message_reader *reader);
	/* There is none: that process died, or took too long. */
	void (*leave_out)(void *context, size_t nr);
	void *context;
};

/*
 * Returns 0 or a negative errno, reported; -EINTR, not reported: a signal is pending that ends this
 * process.
 */
int file_sandbox_run(const struct file_sandbox *sandbox);

/* Says that a file is left out; @consequence: "it is not probed". */
void file_sandbox_tell_left_out(const struct mapped_file *file, const char *consequence);

#endif
