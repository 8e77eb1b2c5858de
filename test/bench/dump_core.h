/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stack dump for gdb to unwind: as a core file that holds one thread's registers and its stack,
 * with the commands that tell gdb where the modules are.
 */
#ifndef LEAKTOOLS_TEST_BENCH_DUMP_CORE_H
#define LEAKTOOLS_TEST_BENCH_DUMP_CORE_H

#include "unwind/frames/unwinder.h"

/*
 * Writes PATH.core, PATH.gdb, gdb's commands, and PATH.ours, the addresses of @stack, which was
 * unwound in @space from @dump: one a line, after an @. x86-64 only. Returns 0 or a negative errno.
 */
int dump_core_write(const char *path, const struct module_table *modules,
		    const struct address_space *space, const struct stack_dump *dump,
		    const struct unwound_stack *stack);

#endif
