/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a stack dump as a core file of one thread, with its registers and its stack, and gdb
 * commands that load the modules, so that gdb can unwind the dump.
 */
#ifndef LEAKTOOLS_TEST_BENCH_DUMP_CORE_H
#define LEAKTOOLS_TEST_BENCH_DUMP_CORE_H

#include "unwind/frames/unwinder.h"

/*
 * Writes PATH.core, PATH.gdb with the commands, and PATH.ours with the addresses of @stack, which
 * was unwound in @space from @dump: one per line, after an @. x86-64 only. Returns 0 or a negative
 * errno.
 */
int dump_core_write(const char *path, const struct module_table *modules,
		    const struct address_space *space, const struct stack_dump *dump,
		    const struct unwound_stack *stack);

#endif
