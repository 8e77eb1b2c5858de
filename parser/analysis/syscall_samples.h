/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of system calls on their way through an analysis: their stacks, and whose they are. */
#ifndef LEAKTOOLS_PARSER_SYSCALL_SAMPLES_H
#define LEAKTOOLS_PARSER_SYSCALL_SAMPLES_H

#include "parser/analysis/analysis.h"

/* Takes an end of a system call. Returns 0 or -ENOMEM. */
int syscall_samples_take(struct analysis *analysis, const struct perf_sample *sample);

#endif
