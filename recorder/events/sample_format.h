/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every sample and record of a recording holds. */
#ifndef LEAKTOOLS_RECORDER_SAMPLE_FORMAT_H
#define LEAKTOOLS_RECORDER_SAMPLE_FORMAT_H

#include <asm/perf_regs.h>
#include <assert.h>
#include <linux/perf_event.h>
#include <stdint.h>

/*
 * The sample type of every event. perf script shows the instruction only if every event has it.
 */
#define RECORD_SAMPLE_TYPE                                                                         \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU)
#define RECORD_SAMPLE_TIME_OFFSET 32 /* header, identifier, instruction, thread */

/* The registers that an unwinder needs: general ones, instruction pointer, stack pointer. */
#if defined(__x86_64__)
#define RECORD_REG_SP PERF_REG_X86_SP
/* Those that a call preserves: what BPF programs dump. */
#define RECORD_CALL_REGS_MASK                                                                      \
	((1ULL << PERF_REG_X86_BX) | (1ULL << PERF_REG_X86_BP) | (1ULL << PERF_REG_X86_SP) |       \
	 (1ULL << PERF_REG_X86_IP) | (1ULL << PERF_REG_X86_R12) | (1ULL << PERF_REG_X86_R13) |     \
	 (1ULL << PERF_REG_X86_R14) | (1ULL << PERF_REG_X86_R15))
#define RECORD_REGS_MASK                                                                           \
	(((1ULL << PERF_REG_X86_64_MAX) - 1) &                                                     \
	 ~((1ULL << PERF_REG_X86_DS) | (1ULL << PERF_REG_X86_ES) | (1ULL << PERF_REG_X86_FS) |     \
	   (1ULL << PERF_REG_X86_GS)))
#elif defined(__aarch64__)
#define RECORD_REG_SP PERF_REG_ARM64_SP
/* Those that a call preserves: x19 to x30, sp and pc. All are too many for a BPF program. */
#define RECORD_CALL_REGS_MASK                                                                      \
	(((1ULL << PERF_REG_ARM64_MAX) - 1) & ~((1ULL << PERF_REG_ARM64_X19) - 1))
#define RECORD_REGS_MASK RECORD_CALL_REGS_MASK
#else
#error "which registers does this architecture's unwinder need?"
#endif

/* The end of records other than samples, as RECORD_SAMPLE_TYPE makes it (sample_id_all). */
struct record_trailer {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t id;
};

static_assert(sizeof(struct record_trailer) == 32, "sample_id of RECORD_SAMPLE_TYPE");

#endif
