/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A window maps a part of a file into memory.
 *
 * A mapping shows what others write to the file, even after the reader has checked it. So only
 * files that no other user can write are mapped. If a file is truncated, or its medium fails, an
 * access raises SIGBUS. From there on the window then holds zeros, and the caller's flag is set.
 * This file installs the program's SIGBUS handler for that. A SIGBUS elsewhere does what it did
 * before.
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
	uint8_t *bytes; /* changes do not reach the file; NULL: not mapped */
	size_t size_bytes;
	uint64_t offset; /* of bytes[0] in the file */
	volatile sig_atomic_t *is_cut;
	struct file_window *next;
};

/*
 * True for a regular file that only root and we can write. A process that opened it for writing
 * earlier goes unnoticed.
 */
bool file_window_may_map(int fd);

/*
 * Maps the file from the page of byte @offset on: up to byte @end, or until @size_bytes from
 * @offset are mapped, whichever is less. @window and *@is_cut must stay where they are until
 * file_window_unmap(). Returns 0 or a negative errno; reports nothing.
 */
int file_window_map(struct file_window *window, int fd, uint64_t offset, uint64_t end,
		    size_t size_bytes, volatile sig_atomic_t *is_cut);

/* Accepts a window that maps nothing. */
void file_window_unmap(struct file_window *window);

#endif
