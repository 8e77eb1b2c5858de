/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds processes in which something has changed a function that gets a probe, as agents do that
 * hook malloc and free by a jump over their first instructions. A probe there would end the
 * process: the kernel runs the file's instruction in place of the breakpoint, and goes on behind
 * it, within the jump. And finds those in which such a function is in writable or shared memory,
 * where the kernel places no breakpoint and does not say so.
 */
#ifndef LEAKTOOLS_RECORDER_CHANGED_CODE_H
#define LEAKTOOLS_RECORDER_CHANGED_CODE_H

#include "probes/plan/probe_set.h"

/*
 * Looks at the code of process @pid where @set has probes; probes of other tracers are no change.
 * Returns 0, -EPERM if it was changed or can get no breakpoint, or -ENOMEM, reported if @tells. A
 * process that cannot be looked at within a second counts as unchanged, and so do files on FUSE.
 */
int changed_code_check(pid_t pid, const struct probe_set *set, bool tells);

#endif
