/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds where an x86-64 function stores a 64-bit register through a pointer: `mov %reg,(%base)`.
 * posix_memalign returns its block that way. At its return the pointer is no longer in a register,
 * so a probe at the store sees both.
 *
 * A probe inside an instruction would corrupt the target. Only instructions that control flow
 * reaches from the entry count, so data and padding are never taken for code.
 */
#ifndef LEAKTOOLS_PROBES_STORE_FINDER_H
#define LEAKTOOLS_PROBES_STORE_FINDER_H

#include "probes/code/placement_class.h"
#include "probes/x86/code_flow.h"

#include <stddef.h>
#include <stdint.h>

#define STORE_FINDER_MAX_CODE_BYTES CODE_FLOW_MAX_BYTES

/*
 * Finds at most @max stores in the function of @size bytes at @code, in ascending order. Returns
 * how many, or -E2BIG (more than STORE_FINDER_MAX_CODE_BYTES) or -ENOMEM.
 */
int store_finder_find(const uint8_t *code, size_t size, struct store_site *ret, size_t max);

#endif
