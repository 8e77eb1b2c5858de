/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds, in the files that a process has mapped, the calls of a call_list that can be probed.
 *
 * A breakpoint in the middle of an instruction would change the program, and the recording that
 * names the places may be anyone's. So only the file's own code decides: the instructions of the
 * piece that .eh_frame describes, from its beginning on, must lead to a call that ends there. A
 * process without privileges reads the files (../plan/file_sandbox.h).
 */
#ifndef LEAKTOOLS_PROBES_CALL_FINDER_H
#define LEAKTOOLS_PROBES_CALL_FINDER_H

#include "probes/calls/call_list.h"

#include "common/proc/mapped_files.h"

/*
 * Sets the site of each frame of @list that is wanted and in one of @files. Returns as
 * file_sandbox_run().
 */
int call_finder_run(const struct mapped_files *files, struct call_list *list);

/* A place behind a call, and the piece of code that has it. */
struct call_function {
	size_t file;	  /* of the process's, which has it */
	uint64_t landing; /* the place, in that file */
	/* What is found. */
	uint64_t begin; /* of the piece, in the file; 0: it is not sure to be one */
	struct placement_instruction first; /* the instruction there */
};

/* Finds the beginnings, in the same way. A call may go anywhere. Returns as file_sandbox_run(). */
int call_finder_find_functions(const struct mapped_files *files, struct call_function *functions,
			       size_t nr);

#endif
