/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where inside an x86-64 allocation function one probe sees all that its entry and its return would
 * tell: the size asked for, the block, and the caller's registers.
 *
 * A return probe is a second trap. But between the place where an allocator has its result and the
 * function's return there mostly is an instruction that the kernel emulates, where the result is in
 * one register and the argument still in another. The code is followed along every path from the
 * entry, and what cannot be proved is not used: the entry and the return then are (placement.h).
 * docs/placement.md tells how.
 */
#ifndef LEAKTOOLS_PROBES_SINGLE_TRAP_POINTS_H
#define LEAKTOOLS_PROBES_SINGLE_TRAP_POINTS_H

#include "probes/elf/elf_image.h"
#include "probes/x86/placement.h"

#define OUTCOME_MAX_POINTS	16
#define OUTCOME_MAX_FRAME_BYTES 120 /* from the stack pointer to the return address */

/* The caller's, which a function gives back: System V psABI for x86-64, 3.2.1, but for %rsp. */
enum outcome_saved {
	OUTCOME_RBX,
	OUTCOME_RBP,
	OUTCOME_R12,
	OUTCOME_R13,
	OUTCOME_R14,
	OUTCOME_R15,
	OUTCOME_NR_SAVED,
};

#define OUTCOME_NOWHERE	  (-1)
#define OUTCOME_IS_NULL	  (-2) /* the block: this path fails */
#define OUTCOME_UNCHANGED (-1)

/*
 * Registers are numbered as instructions encode them: ax, cx, dx, bx, sp, bp, si, di, r8 to r15.
 *
 * Every call that returns passes exactly one point that has a block; where that has no size, it has
 * passed at least one that has only a size before. A call that never returns may pass one.
 */
struct outcome_point {
	uint64_t offset;			  /* in the function, in bytes */
	struct placement_instruction instruction; /* there */
	int size_register;			  /* or OUTCOME_NOWHERE */
	int block_register;   /* OUTCOME_NOWHERE: only the size is to be noted here; or
				 OUTCOME_IS_NULL */
	uint32_t frame_bytes; /* the return address is so far above the stack pointer */
	/* Where the caller's registers are: so far above the stack pointer, or OUTCOME_UNCHANGED.
	 */
	int32_t saved[OUTCOME_NR_SAVED];
};

/*
 * Finds such points of @function, whose integer argument @size_arg (0 for the first) is the size.
 * Returns how many, 0 where it cannot be proved that they tell all, or -ENOMEM, or what
 * elf_image_read() returns.
 */
int outcome_points_find(const struct elf_image *image, const struct elf_function *function,
			int size_arg, const struct placement_kernel *kernel,
			struct outcome_point ret[OUTCOME_MAX_POINTS]);

#endif
