/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The calls by which one cause allocates and releases its blocks, as `leakparse --call-sites`
 * prints them (docs/leaks-format.md). A stack is a list of frames, innermost first; a frame is a
 * place in a file, behind a call. What is at these places comes from the files (call_finder.h).
 *
 * Other stacks may share the cause's calls. Probes on these meet their blocks, too.
 */
#ifndef LEAKTOOLS_PROBES_CALL_LIST_H
#define LEAKTOOLS_PROBES_CALL_LIST_H

#include "probes/code/placement_class.h"
#include "probes/x86/code_targets.h"

#include "common/schema/probe_schema.h"

#include <stdio.h>

#define CALL_LIST_MAX_FRAMES 32768
#define CALL_BUILD_ID_SIZE   41 /* 20 bytes in hexadecimal digits, and a NUL */

/* A call of a function of the schema, which can be probed. */
struct call_site {
	const struct probe_schema *schema; /* NULL: there is no such call */
	int first_arg;			   /* see probe_symbols.h */
	struct call_target target;
	struct placement_instruction call, landing; /* the instructions there */
	size_t file;				    /* of the process's, which has it */
};

struct call_frame {
	char build_id[CALL_BUILD_ID_SIZE]; /* of the file; "": it is in none that has one */
	uint64_t landing;		   /* behind the call, in the file */
	bool is_wanted;			   /* call_finder_run() is to find its site */
	struct call_site site;
};

#define CALL_OF_CAUSE SIZE_MAX

enum call_kind { CALL_ALLOCATES, CALL_RELEASES, CALL_IS_OTHER };

struct call_stack {
	enum call_kind kind;
	size_t of; /* CALL_RELEASES: the blocks of this other stack, or CALL_OF_CAUSE */
	uint64_t nr_calls;
	size_t first, nr; /* its frames */
};

struct call_list {
	struct call_stack *stacks;
	size_t nr;
	struct call_frame *frames;
	size_t nr_frames;
	bool is_cut;	   /* there are more stacks */
	double observed_s; /* the time in which the calls were made; 0: not known */
};

/*
 * Reads what leakparse prints. Returns 0; -ENODATA if there is no stack; -EINVAL if it is not
 * that; or -ENOMEM. Reports nothing. Release with call_list_deinit() in any case.
 */
int call_list_read(struct call_list *ret, FILE *from);
void call_list_deinit(struct call_list *list);

#endif
