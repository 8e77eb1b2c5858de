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

#define SINGLE_TRAP_MAX_POINTS	    16
#define SINGLE_TRAP_MAX_FRAME_BYTES 120 /* from the stack pointer to the return address */

/* The caller's, which a function gives back: System V psABI for x86-64, 3.2.1, but for %rsp. */
enum single_trap_saved {
	SINGLE_TRAP_RBX,
	SINGLE_TRAP_RBP,
	SINGLE_TRAP_R12,
	SINGLE_TRAP_R13,
	SINGLE_TRAP_R14,
	SINGLE_TRAP_R15,
	SINGLE_TRAP_NR_SAVED,
};

#define SINGLE_TRAP_NOWHERE   (-1)
#define SINGLE_TRAP_IS_NULL   (-2) /* the block: this path fails */
#define SINGLE_TRAP_UNCHANGED (-1)

/*
 * Registers are numbered as instructions encode them: ax, cx, dx, bx, sp, bp, si, di, r8 to r15.
 *
 * Every call that returns passes exactly one point that has a block; where that has no size, it has
 * passed at least one that has only a size before. A call that never returns may pass one.
 */
struct single_trap_point {
	uint64_t offset;			  /* in the function, in bytes */
	struct placement_instruction instruction; /* there */
	int size_register;			  /* or SINGLE_TRAP_NOWHERE */
	int block_register;   /* SINGLE_TRAP_NOWHERE: only the size is to be noted here; or
				 SINGLE_TRAP_IS_NULL */
	uint32_t frame_bytes; /* the return address is so far above the stack pointer */
	/* Where the caller's registers are: so far above the stack pointer, or
	 * SINGLE_TRAP_UNCHANGED.
	 */
	int32_t saved[SINGLE_TRAP_NR_SAVED];
};

/*
 * Finds such points of @function, whose integer argument @size_arg (0 for the first) is the size.
 * Returns how many, 0 where it cannot be proved that they tell all, or -ENOMEM, or what
 * elf_image_read() returns.
 */
int single_trap_points_find(const struct elf_image *image, const struct elf_function *function,
			    int size_arg, const struct placement_kernel *kernel,
			    struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS]);

#endif
