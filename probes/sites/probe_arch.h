/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What probes need to know of an architecture: how calls pass what is recorded, and which places in
 * a function are cheapest. The tables of all architectures are always there; probes use the native
 * one.
 *
 * On AArch64 a probe of a call is always at the function's first instruction. Behind a paciasp the
 * return address is signed, and a return probe there would replace it by one that is not.
 */
#ifndef LEAKTOOLS_PROBES_PROBE_ARCH_H
#define LEAKTOOLS_PROBES_PROBE_ARCH_H

#include "probes/sites/function_exits.h"
#include "probes/sites/single_trap_points.h"
#include "probes/x86/placement.h"
#include "probes/x86/store_finder.h"

#include "common/schema/probe_schema.h"

#define PROBE_ARCH_ARGUMENTS 6 /* that all these architectures pass in registers */

enum probe_arch_machine { PROBE_ARCH_X86_64, PROBE_ARCH_AARCH64 };

struct probe_arch {
	const char *arguments[PROBE_ARCH_ARGUMENTS]; /* at the entry, in the syntax of tracefs */
	const char *caller;			     /* the return address, at the entry */
	const char *result;			     /* the return value, at a return */
	enum probe_arch_machine machine;
};

extern const struct probe_arch probe_arch_x86_64, probe_arch_aarch64;

/* The architecture that this program was built for. */
const struct probe_arch *probe_arch_native(void);

/* placement_find_entry(); on AArch64 the entry. */
int probe_arch_place_entry(const struct probe_arch *arch, const uint8_t *code, size_t size_bytes,
			   int nr_args, uint64_t *ret_offset);

/* store_finder_find(), with each site's offset moved by placement_find_store();
 * arm64_find_stores(). */
int probe_arch_find_stores(const struct probe_arch *arch, const uint8_t *code, size_t size_bytes,
			   struct store_site *ret, size_t max);

/* single_trap_points_find(); 0 on AArch64. */
int probe_arch_find_points(const struct probe_arch *arch, const struct elf_image *image,
			   const struct elf_function *function, int size_arg,
			   struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS]);

/* function_exits_find(); -ENOTSUP on AArch64. */
int probe_arch_find_exits(const struct probe_arch *arch, const struct elf_image *image,
			  const struct frame_table *frames, const struct elf_function *function,
			  struct function_exits *ret);

/* placement_describe(), arm64_describe() */
void probe_arch_describe(const struct probe_arch *arch, const uint8_t *code, size_t size_bytes,
			 struct placement_instruction *ret);

/* Describes the instruction at @offset of the file. */
void probe_arch_describe_at(const struct elf_image *image, uint64_t offset,
			    struct placement_instruction *ret);

#endif
