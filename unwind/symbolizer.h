/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a place in a module to functions, file and line. Each module's symbols are read when the
 * first of its frames is named, and each place is looked up once. Strings live as long as the
 * symbolizer.
 */
#ifndef LEAKTOOLS_UNWIND_SYMBOLIZER_H
#define LEAKTOOLS_UNWIND_SYMBOLIZER_H

#include "unwind/debuginfo.h"
#include "unwind/module.h"

#include <pthread.h>

struct module_symbols;

struct symbolizer {
	struct module_table *modules;
	struct debuginfo *debuginfo;
	struct module_symbols **by_id; /* [module id - 1] */
	size_t nr;
	/* What is expected, while @opener has it and @debuginfo; NULL: nothing. */
	struct module_symbols *opening;
	pthread_t opener;
};

void symbolizer_init(struct symbolizer *symbolizer, struct module_table *modules,
		     struct debuginfo *debuginfo);
void symbolizer_deinit(struct symbolizer *symbolizer);

/*
 * Names of @module will be needed: begins to open its debug file, in a thread, if its own file is
 * where it was recorded. What is named next waits for that. Returns 0 or -ENOMEM.
 */
int symbolizer_expect(struct symbolizer *symbolizer, struct module *module);

/*
 * Names the byte at @file_offset of @module. @is_call: it follows a call, and the functions and
 * lines meant are the call's. Fills all but the address of up to STACK_MAX_INLINED + 1 @frames: the
 * functions that are inlined there, innermost first, and the one they are inlined into. Returns 0
 * or -ENOMEM.
 */
int symbolizer_name(struct symbolizer *symbolizer, struct module *module, uint64_t file_offset,
		    bool is_call, struct stack_frame *frames, size_t *ret_nr);

#endif
