/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the cheapest instruction of an x86-64 function for a probe that loses nothing.
 *
 * The kernel must run the instruction that a breakpoint replaced. It emulates a few; others it
 * single-steps in a copy, which takes a second trap and up to 25 times as long. So the probe goes
 * to the first emulated instruction that every call passes exactly once, while the registers and
 * the stack that the event records are still as they were at the entry. docs/placement.md has the
 * details.
 */
#ifndef LEAKTOOLS_PROBES_PLACEMENT_H
#define LEAKTOOLS_PROBES_PLACEMENT_H

#include "probes/code/placement_class.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What differs between kernels. */
struct placement_kernel {
	bool emulates_long_nops;
	bool emulates_pause;
};

/* The running kernel. */
struct placement_kernel placement_kernel_running(void);

struct instruction;

/* How the kernel runs @instruction, whose bytes are at @code, under a probe. */
enum placement_class placement_classify(const struct instruction *instruction, const uint8_t *code,
					const struct placement_kernel *kernel);

/*
 * Finds the offset, in the function of @size_bytes at @code, for probes that record the first
 * @nr_args integer arguments, the return address at (%rsp) and the return. 0, the entry, is valid
 * unless it is refused; that is found if nothing else is. Returns 0, -E2BIG (more than
 * CODE_FLOW_MAX_BYTES) or -ENOMEM.
 */
int placement_find_entry(const uint8_t *code, size_t size_bytes, int nr_args,
			 const struct placement_kernel *kernel, uint64_t *ret_offset);

/*
 * The same for a probe that records the two registers of the store `mov %reg,(%base)` at
 * @store_offset: at the store, or at an emulated instruction after it that only the store leads to.
 */
int placement_find_store(const uint8_t *code, size_t size_bytes, uint64_t store_offset,
			 const struct placement_kernel *kernel, uint64_t *ret_offset);

/* Describes the instruction at @code, of which @size_bytes are available. */
void placement_describe(const uint8_t *code, size_t size_bytes,
			const struct placement_kernel *kernel, struct placement_instruction *ret);

#define PLACEMENT_MAX_INSTRUCTION_BYTES 15

#endif
