/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a place in a module to functions, file and line. Each module's symbols are read when the
 * first of its frames is named, and each place is looked up once. Strings live as long as the
 * symbolizer.
 */
#ifndef LEAKTOOLS_UNWIND_SYMBOLIZER_H
#define LEAKTOOLS_UNWIND_SYMBOLIZER_H

#include "unwind/modules/debuginfo.h"
#include "unwind/modules/module.h"
#include "unwind/names/stack_frame.h"

#include <pthread.h>
#include <stdatomic.h>

struct module_symbols;

struct symbolizer {
	struct module_table *modules;
	struct debuginfo *debuginfo;
	struct module_symbols **by_id; /* [module id - 1] */
	size_t nr;
	/* Theirs and @debuginfo are the @opener's while @is_opening. */
	struct module_symbols **expected;
	size_t nr_expected;
	uint64_t expected_bytes;
	pthread_t opener;
	bool is_opening;
	atomic_bool opened_enough; /* for the opener: what is left is not waited for */
};

void symbolizer_init(struct symbolizer *symbolizer, struct module_table *modules,
		     struct debuginfo *debuginfo);
void symbolizer_deinit(struct symbolizer *symbolizer);

/*
 * Names of @module will be needed: its debug file will be opened ahead, if its own file is where it
 * was recorded. Returns 0 or -ENOMEM.
 */
int symbolizer_expect(struct symbolizer *symbolizer, struct module *module);

/*
 * Begins to open what is expected, in a thread. What is named next waits for the file that is being
 * opened then, and ends that: the others are opened when they are needed.
 */
void symbolizer_open_expected(struct symbolizer *symbolizer);

/*
 * Names the byte at @file_offset of @module. @is_call: it follows a call, and the functions and
 * lines meant are the call's. Fills all but the address of up to STACK_MAX_INLINED + 1 @frames: the
 * functions that are inlined there, innermost first, and the one they are inlined into. Returns 0
 * or -ENOMEM.
 */
int symbolizer_name(struct symbolizer *symbolizer, struct module *module, uint64_t file_offset,
		    bool is_call, struct stack_frame *frames, size_t *ret_nr);

#endif
