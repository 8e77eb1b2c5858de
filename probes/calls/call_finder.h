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

#endif
