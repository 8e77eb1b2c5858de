/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inputs of fuzz_unwind: a stack dump, then the ELF file that is mapped as code. */
#ifndef LEAKTOOLS_TEST_FUZZ_UNWIND_INPUT_H
#define LEAKTOOLS_TEST_FUZZ_UNWIND_INPUT_H

#include <stdint.h>

#define UNWIND_LOAD_ADDRESS  0x7f0000000000ull
#define UNWIND_STACK_ADDRESS 0x7ffc00000000ull
#define UNWIND_STACK_WORDS   64

/* PERF_REG_X86_*: ax, bx, cx, dx, si, di, bp, sp, ip, flags, cs, ss, r8 to r15. */
#define UNWIND_X86_MASK 0xff0fffull
#define UNWIND_X86_SP	7
#define UNWIND_X86_IP	8
/* PERF_REG_ARM64_*: x0 to x29, lr, sp, pc. */
#define UNWIND_ARM64_REGISTERS 33
#define UNWIND_ARM64_MASK      0x1ffffffffull
#define UNWIND_ARM64_LR	       30
#define UNWIND_ARM64_SP	       31
#define UNWIND_ARM64_PC	       32

struct unwind_input {
	uint64_t registers[UNWIND_ARM64_REGISTERS];
	uint64_t stack[UNWIND_STACK_WORDS];
	uint64_t returned_from;
	uint64_t pending_returns[2];
	uint16_t stack_bytes;
	uint8_t is_arm64, is_returning, has_pending_returns, unused[3];
};

#endif
