/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds where an AArch64 function stores a 64-bit register through a pointer: `str xV, [xB]`.
 * posix_memalign returns its block that way.
 *
 * A probe on data would corrupt the target. Only instructions that control flow reaches from the
 * entry count, so literals are never taken for code. What a jump through a register reaches is not
 * found. The bytes are hostile: every offset is checked.
 */
#ifndef LEAKTOOLS_PROBES_ARM64_STORE_FINDER_H
#define LEAKTOOLS_PROBES_ARM64_STORE_FINDER_H

#include "probes/code/placement_class.h"

#define ARM64_MAX_CODE_BYTES 65536

/*
 * Finds at most @max stores in the function of @size_bytes at @code, in ascending order. Returns
 * how many, or -E2BIG (more than ARM64_MAX_CODE_BYTES) or -ENOMEM.
 */
int arm64_find_stores(const uint8_t *code, size_t size_bytes, struct store_site *ret, size_t max);

#endif
