/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds instructions of an x86-64 allocation function at which one probe sees all that the entry
 * and the return would show: the size asked for, the block, and the caller's registers.
 *
 * A return probe is a second trap. But between the place where an allocator has its result and its
 * return there usually is an instruction that the kernel emulates, with the result in one register
 * and the argument still in another. The code is followed along every path from the entry, and only
 * what is proved is used; otherwise the entry and the return are probed (placement.h).
 * docs/placement.md explains it.
 */
#ifndef LEAKTOOLS_PROBES_SINGLE_TRAP_POINTS_H
#define LEAKTOOLS_PROBES_SINGLE_TRAP_POINTS_H

#include "probes/elf/elf_image.h"
#include "probes/x86/placement.h"

#define SINGLE_TRAP_MAX_POINTS	    16
#define SINGLE_TRAP_MAX_FRAME_BYTES 120 /* from the stack pointer to the return address */

/*
 * Registers of the caller that a function preserves, except %rsp: System V psABI for x86-64, 3.2.1.
 */
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
#define SINGLE_TRAP_IS_NULL   (-2) /* the block is NULL: this path fails */
#define SINGLE_TRAP_UNCHANGED (-1)

/*
 * Registers are numbered as instructions encode them: ax, cx, dx, bx, sp, bp, si, di, r8 to r15.
 *
 * The promise: every call that returns passes exactly one point with a block. If that point has no
 * size, the call has passed at least one point with only a size before. A call that never returns
 * may pass a point.
 */
struct single_trap_point {
	uint64_t offset;			  /* in the function, in bytes */
	struct placement_instruction instruction; /* at @offset */
	int size_register;			  /* or SINGLE_TRAP_NOWHERE */
	int block_register;   /* SINGLE_TRAP_NOWHERE: only the size is known here; or
				 SINGLE_TRAP_IS_NULL */
	uint32_t frame_bytes; /* from the stack pointer up to the return address */
	/*
	 * Where the caller's registers are: distance above the stack pointer, or
	 * SINGLE_TRAP_UNCHANGED.
	 */
	int32_t saved[SINGLE_TRAP_NR_SAVED];
};

/*
 * Finds the points of @function, whose integer argument @size_arg (0: the first) is the size.
 * Returns how many; 0 if the promise cannot be proved; -ENOMEM or an error of elf_image_read().
 */
int single_trap_points_find(const struct elf_image *image, const struct elf_function *function,
			    int size_arg, const struct placement_kernel *kernel,
			    struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS]);

#endif
