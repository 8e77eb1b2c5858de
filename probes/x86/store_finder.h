/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds where an x86-64 function stores a 64-bit register through a pointer: `mov %reg,(%base)`.
 * posix_memalign hands its block out that way, and at its return the pointer is no longer in a
 * register, so the store is where a probe sees both.
 *
 * A probe in the middle of an instruction would corrupt the target. Only instructions that control
 * flow reaches from the function's entry are looked at, so data and padding between them are never
 * taken for code.
 */
#ifndef LEAKTOOLS_PROBES_STORE_FINDER_H
#define LEAKTOOLS_PROBES_STORE_FINDER_H

#include "probes/x86/code_flow.h"

#include <stddef.h>
#include <stdint.h>

struct store_site {
	size_t offset;		   /* in the function, in bytes */
	const char *base_register; /* holds the address; named as tracefs does, without '%' */
	const char *value_register;
};

#define STORE_FINDER_MAX_CODE_BYTES CODE_FLOW_MAX_BYTES

/*
 * Finds up to @max stores in the function whose @size bytes are at @code, in ascending order.
 * Returns their number, or -E2BIG (more than STORE_FINDER_MAX_CODE_BYTES) or -ENOMEM.
 */
int store_finder_find(const uint8_t *code, size_t size, struct store_site *ret, size_t max);

#endif
