/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/sites/probe_arch.h"

#include "probes/arm64/instruction.h"
#include "probes/arm64/store_finder.h"

#include <errno.h>

/*
 * Register names are those of regs_query_register_offset(), from regoffset_table[] in the kernel's
 * arch/x86/kernel/ptrace.c and arch/arm64/kernel/ptrace.c (6.1). Which arguments they hold is
 * defined by the System V psABI (3.2.3) and the AAPCS64 (6.8.2); the latter has the return address
 * in x30.
 */
const struct probe_arch probe_arch_x86_64 = {
	{"%di", "%si", "%dx", "%cx", "%r8", "%r9"}, "+0(%sp)", "%ax", PROBE_ARCH_X86_64};
const struct probe_arch probe_arch_aarch64 = {
	{"%x0", "%x1", "%x2", "%x3", "%x4", "%x5"}, "%x30", "%x0", PROBE_ARCH_AARCH64};

const struct probe_arch *probe_arch_native(void)
{
#if defined(__x86_64__)
	return &probe_arch_x86_64;
#elif defined(__aarch64__)
	return &probe_arch_aarch64;
#endif
}

int probe_arch_place_entry(const struct probe_arch *arch, const uint8_t *code, size_t size_bytes,
			   int nr_args, uint64_t *ret_offset)
{
	struct placement_kernel kernel = placement_kernel_running();

	*ret_offset = 0;
	return arch->machine == PROBE_ARCH_X86_64
		       ? placement_find_entry(code, size_bytes, nr_args, &kernel, ret_offset)
		       : 0;
}

static int find_x86_stores(const uint8_t *code, size_t size_bytes, struct store_site *ret,
			   size_t max)
{
	struct placement_kernel kernel = placement_kernel_running();
	int nr = store_finder_find(code, size_bytes, ret, max);

	for (int i = 0; i < nr; i++) {
		uint64_t offset;
		int err = placement_find_store(code, size_bytes, ret[i].offset, &kernel, &offset);

		if (err)
			return err;
		ret[i].offset = offset;
	}
	return nr;
}

int probe_arch_find_stores(const struct probe_arch *arch, const uint8_t *code, size_t size_bytes,
			   struct store_site *ret, size_t max)
{
	return arch->machine == PROBE_ARCH_X86_64 ? find_x86_stores(code, size_bytes, ret, max)
						  : arm64_find_stores(code, size_bytes, ret, max);
}

int probe_arch_find_points(const struct probe_arch *arch, const struct elf_image *image,
			   const struct elf_function *function, int size_arg,
			   struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS])
{
	struct placement_kernel kernel = placement_kernel_running();

	return arch->machine == PROBE_ARCH_X86_64
		       ? single_trap_points_find(image, function, size_arg, &kernel, ret)
		       : 0;
}

int probe_arch_find_exits(const struct probe_arch *arch, const struct elf_image *image,
			  const struct frame_table *frames, const struct elf_function *function,
			  struct function_exits *ret)
{
	if (arch->machine == PROBE_ARCH_X86_64)
		return function_exits_find(image, frames, function, ret);
	*ret = (struct function_exits){
		.why = "its exits cannot be found in this processor's code",
		.where = function->offset,
	};
	return -ENOTSUP;
}

void probe_arch_describe(const struct probe_arch *arch, const uint8_t *code, size_t size_bytes,
			 struct placement_instruction *ret)
{
	if (arch->machine == PROBE_ARCH_X86_64) {
		struct placement_kernel kernel = placement_kernel_running();

		placement_describe(code, size_bytes, &kernel, ret);
	} else {
		struct arm64_kernel kernel = arm64_kernel_running();

		arm64_describe(code, size_bytes, &kernel, ret);
	}
}

void probe_arch_describe_at(const struct elf_image *image, uint64_t offset,
			    struct placement_instruction *ret)
{
	uint8_t code[PLACEMENT_MAX_INSTRUCTION_BYTES];
	size_t size_bytes = sizeof(code);

	*ret = (struct placement_instruction){.class = PLACEMENT_UNKNOWN, .text = "?"};
	if (!image->is_native)
		return;
	/* At the end of the file there may be fewer bytes. */
	while (size_bytes > 0 && elf_image_read(image, offset, code, size_bytes))
		size_bytes--;
	probe_arch_describe(probe_arch_native(), code, size_bytes, ret);
}
