/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The AArch64 instructions that matter to probes: those that the kernel runs in another way than by
 * stepping, and jumps. All instructions have 32 bits, and each of these is known by a mask, so no
 * decoder library is needed. The encodings are those of the Arm Architecture Reference Manual,
 * C4.1.
 */
#ifndef LEAKTOOLS_PROBES_ARM64_INSTRUCTION_H
#define LEAKTOOLS_PROBES_ARM64_INSTRUCTION_H

#include "probes/code/placement_class.h"

#include <stdbool.h>

#define ARM64_INSTRUCTION_BYTES 4

/* What differs between kernels. */
struct arm64_kernel {
	bool simulates_nop; /* Linux 6.13 */
};

/* The running kernel. */
struct arm64_kernel arm64_kernel_running(void);

/* Reads the instruction at @code. */
uint32_t arm64_read(const uint8_t *code);

/*
 * How the kernel runs @instruction under a uprobe: arm_probe_decode_insn(),
 * arch/arm64/kernel/probes/decode-insn.c (Linux 5.15 to 6.18). What it simulates is called emulated
 * here, as on x86-64.
 */
enum placement_class arm64_classify(uint32_t instruction, const struct arm64_kernel *kernel);

/* Describes the instruction at @code, of which @size_bytes are available. */
void arm64_describe(const uint8_t *code, size_t size_bytes, const struct arm64_kernel *kernel,
		    struct placement_instruction *ret);

/*
 * True if @instruction is a jump, with or without a condition, to a fixed place: *@ret_distance
 * bytes from itself. A call is none.
 */
bool arm64_is_jump(uint32_t instruction, int64_t *ret_distance);

/* True if the next instruction follows: not after a return or an unconditional jump. */
bool arm64_falls_through(uint32_t instruction);

#endif
