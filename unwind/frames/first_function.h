/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where programs and threads of a C library without call frame information begin, such as musl's
 * (1.2.3: src/env/__libc_start_main.c, src/thread/pthread_create.c). x86-64 only.
 */
#ifndef LEAKTOOLS_UNWIND_FIRST_FUNCTION_H
#define LEAKTOOLS_UNWIND_FIRST_FUNCTION_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIT_FUNCTIONS_MAX 6 /* three names, in two symbol tables */

/* The ELF addresses of a file's exit() and pthread_exit(). Zeroed, they are not known yet. */
struct exit_functions {
	bool is_known;
	size_t nr;
	uint64_t at[EXIT_FUNCTIONS_MAX];
};

/*
 * True if the code at @file_offset, ELF address @vaddr, where a function returns to, hands the
 * function's result to exit() or pthread_exit(): it called main() or a thread's first function, and
 * nothing further out matters. These two must be in the same file, and have symbols. @exits belongs
 * to the file; it is filled when it is first needed.
 */
bool first_function_returns_to(Elf *elf, struct exit_functions *exits, uint64_t file_offset,
			       uint64_t vaddr);

#endif
