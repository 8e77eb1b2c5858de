/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the functions, file and line of a position in a module. Reads a module's symbols when the
 * first of its frames is named, and looks up each position once. Strings live as long as the
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
	/* @opener owns these modules and @debuginfo while @is_opening. */
	struct module_symbols **expected;
	size_t nr_expected;
	uint64_t expected_bytes;
	pthread_t opener;
	bool is_opening;
	atomic_bool opened_enough; /* tells the opener to stop */
};

void symbolizer_init(struct symbolizer *symbolizer, struct module_table *modules,
		     struct debuginfo *debuginfo);
void symbolizer_deinit(struct symbolizer *symbolizer);

/*
 * Names of @module will be needed: opens its debug file ahead, if its own file is at its recorded
 * path. Returns 0 or -ENOMEM.
 */
int symbolizer_expect(struct symbolizer *symbolizer, struct module *module);

/*
 * Starts a thread that opens the expected files. The next naming waits for the file being opened
 * and then stops the thread; the other files are opened when needed.
 */
void symbolizer_open_expected(struct symbolizer *symbolizer);

/*
 * Names the byte at @file_offset of @module. @is_call: the byte follows a call, and the call's
 * functions and lines are wanted. Fills up to STACK_MAX_INLINED + 1 @frames, except for the
 * address: the functions inlined there, innermost first, then the function around them. Returns 0
 * or -ENOMEM.
 */
int symbolizer_name(struct symbolizer *symbolizer, struct module *module, uint64_t file_offset,
		    bool is_call, struct stack_frame *frames, size_t *ret_nr);

#endif
