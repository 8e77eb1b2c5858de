/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stack dump: the registers and the stack bytes of a sample, which unwinders turn into addresses.
 */
#ifndef LEAKTOOLS_UNWIND_STACK_DUMP_H
#define LEAKTOOLS_UNWIND_STACK_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STACK_MAX_FRAMES 1024

/* User registers and the top of the stack, as PERF_SAMPLE_REGS_USER and _STACK_USER record them. */
struct stack_dump {
	uint64_t regs_abi;    /* PERF_SAMPLE_REGS_ABI_*; 0: no registers */
	uint64_t regs_mask;   /* attr.sample_regs_user */
	const uint64_t *regs; /* one for each bit of @regs_mask, lowest first */
	const uint8_t *bytes; /* from the stack pointer up */
	uint64_t nr_bytes;    /* the sample's dyn_size */

	/*
	 * In a return probe's sample: the address of the function that returned, which becomes the
	 * innermost frame. The instruction pointer is then a return address. 0: another sample.
	 */
	uint64_t returned_from;
	bool is_returning; /* the function is at its last instruction, which is the innermost frame
			      of the dump: @returned_from replaces it */

	/*
	 * The return addresses of the thread's open probed calls, innermost first. On the stack the
	 * kernel's trampoline has replaced them. NULL: not known; the stack ends at the first one.
	 */
	const uint64_t *pending_returns;
	size_t nr_pending_returns;
};

/*
 * Reads the 8 bytes at the process's @address from a dump. Returns 0, or -EFAULT if the dump does
 * not hold them.
 */
int stack_dump_read_u64(const struct stack_dump *dump, uint64_t address, uint64_t *ret);

/* Results of unwinding. A dump that is neither truncated nor lost is whole. */
struct stack_unwind_stats {
	uint64_t dumps;	    /* unwound, or tried */
	uint64_t frames;    /* frames found */
	uint64_t by_dwfl;   /* dumps unwound by libdwfl, which is slow */
	uint64_t truncated; /* the dump ended before the stack did */
	uint64_t lost;	    /* ended for any other reason: no file, no CFI, no frame pointer */
};

#endif
