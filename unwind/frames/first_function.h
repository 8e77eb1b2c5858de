/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where programs and threads of a C library without call frame information begin, such as musl's
 * (1.2.3: src/env/__libc_start_main.c, src/thread/pthread_create.c). x86-64 only.
 */
#ifndef LEAKTOOLS_UNWIND_FIRST_FUNCTION_H
#define LEAKTOOLS_UNWIND_FIRST_FUNCTION_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * True if the code at @file_offset, ELF address @vaddr, where a function returns to, hands the
 * function's result to exit() or pthread_exit(): it called main() or a thread's first function, and
 * nothing further out matters. These two must be in the same file, and have symbols.
 */
bool first_function_returns_to(Elf *elf, uint64_t file_offset, uint64_t vaddr);

#endif
