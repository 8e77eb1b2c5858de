/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A part of a file in memory, without copying it.
 *
 * A mapping shows what others do to the file meanwhile. What they write would change under the
 * reader's checks, so only files are mapped that nobody else can write. A file that is cut off, or
 * whose medium fails, raises SIGBUS where it is touched: from there on the window holds zeros
 * instead, and the flag that the caller gave is set. For that, this file has the program's handler
 * for SIGBUS; a SIGBUS elsewhere does what it did before.
 *
 * Windows belong to one thread.
 */
#ifndef LEAKTOOLS_PARSER_FILE_WINDOW_H
#define LEAKTOOLS_PARSER_FILE_WINDOW_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_window {
	uint8_t *bytes; /* may be changed, which the file does not see; NULL: not mapped */
	size_t size_bytes;
	uint64_t offset; /* in the file, of bytes[0] */
	volatile sig_atomic_t *is_cut;
	struct file_window *next;
};

/*
 * True for a regular file that only root and we can write. Who has opened it for writing before
 * that was so is not seen.
 */
bool file_window_may_map(int fd);

/*
 * Maps what holds byte @offset of the file, up to byte @end or so much that @size_bytes are there,
 * whichever is less. @window and *@is_cut must stay where they are until file_window_unmap().
 * Returns 0 or a negative errno; reports nothing.
 */
int file_window_map(struct file_window *window, int fd, uint64_t offset, uint64_t end,
		    size_t size_bytes, volatile sig_atomic_t *is_cut);

/* Does nothing where nothing is mapped. */
void file_window_unmap(struct file_window *window);

#endif
