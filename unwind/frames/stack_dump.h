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

/* User registers and the stack's top as PERF_SAMPLE_REGS_USER and _STACK_USER give them. */
struct stack_dump {
	uint64_t regs_abi;    /* PERF_SAMPLE_REGS_ABI_*; 0: no registers */
	uint64_t regs_mask;   /* attr.sample_regs_user */
	const uint64_t *regs; /* one for each bit of @regs_mask, lowest first */
	const uint8_t *bytes; /* from the stack pointer up */
	uint64_t nr_bytes;    /* the sample's dyn_size */

	/*
	 * A return probe's sample: the address of the function that returned, which goes on top of
	 * the stack; the instruction pointer is then a return address, as those below it are. 0: no
	 * such sample.
	 */
	uint64_t returned_from;
	bool is_returning; /* it is at its last instruction: that is on top, and goes */

	/*
	 * Where the thread's probed calls that have yet to return will return to, innermost first:
	 * their return addresses on the stack are replaced by the kernel's trampoline. NULL: not
	 * known; the stack ends at the first.
	 */
	const uint64_t *pending_returns;
	size_t nr_pending_returns;
};

/*
 * Reads the 8 bytes at @address of the process out of a dump. Returns 0, or -EFAULT if the dump
 * does not hold them.
 */
int stack_dump_read_u64(const struct stack_dump *dump, uint64_t address, uint64_t *ret);

/* What became of the dumps. Those not truncated and not lost are whole. */
struct stack_unwind_stats {
	uint64_t dumps;	    /* unwound, or tried */
	uint64_t frames;    /* found in them */
	uint64_t by_dwfl;   /* left to libdwfl's unwinder, which is slow */
	uint64_t truncated; /* the dump ended before the stack did */
	uint64_t lost;	    /* ended for any other reason: no file, no CFI, no frame pointer */
};

#endif
