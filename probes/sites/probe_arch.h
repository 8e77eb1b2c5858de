/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the probes need to know of a processor: how a call passes what they record, and, where code
 * is decoded (x86-64), where in a function they are cheapest. Every architecture's table is there
 * on every machine; probes are made for the native one.
 */
#ifndef LEAKTOOLS_PROBES_PROBE_ARCH_H
#define LEAKTOOLS_PROBES_PROBE_ARCH_H

#include "probes/sites/function_exits.h"
#include "probes/sites/single_trap_points.h"
#include "probes/x86/placement.h"
#include "probes/x86/store_finder.h"

#include "common/schema/probe_schema.h"

#define PROBE_ARCH_ARGUMENTS 6 /* that both architectures pass in registers */

struct probe_arch {
	const char *arguments[PROBE_ARCH_ARGUMENTS]; /* at the entry, as tracefs fetches them */
	const char *caller;			     /* the return address at the entry */
	const char *result;			     /* at a return */
	bool is_decoded;
};

extern const struct probe_arch probe_arch_x86_64, probe_arch_aarch64;

/* The one that this program was built for. */
const struct probe_arch *probe_arch_native(void);

/* As placement_find_entry(); the entry where code is not decoded. */
int probe_arch_place_entry(const struct probe_arch *arch, const uint8_t *code, size_t size_bytes,
			   int nr_args, uint64_t *ret_offset);

/*
 * As store_finder_find(), each site's offset being the one for its probe: placement_find_store()'s.
 * 0 where code is not decoded.
 */
int probe_arch_find_stores(const struct probe_arch *arch, const uint8_t *code, size_t size_bytes,
			   struct store_site *ret, size_t max);

/* As single_trap_points_find(); 0 where code is not decoded. */
int probe_arch_find_points(const struct probe_arch *arch, const struct elf_image *image,
			   const struct elf_function *function, int size_arg,
			   struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS]);

/* As function_exits_find(); none where code is not decoded. */
int probe_arch_find_exits(const struct probe_arch *arch, const struct elf_image *image,
			  const struct frame_table *frames, const struct elf_function *function,
			  struct function_exits *ret);

/* As placement_describe(); unknown where code is not decoded. */
void probe_arch_describe(const struct probe_arch *arch, const uint8_t *code, size_t size_bytes,
			 struct placement_instruction *ret);

#endif
