/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/arm64/store_finder.h"

#include "probes/arm64/instruction.h"

#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>

#define STACK_POINTER 31 /* of a base; as a value it is the zero register */

/* As regs_query_register_offset() has them: arch/arm64/kernel/ptrace.c (6.1). */
static const char *const register_names[] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",	"x8",  "x9",  "x10",
	"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
	"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30",
};

_Static_assert(ARRAY_SIZE(register_names) == STACK_POINTER, "x0 to x30");

/* str of 64 bits with an offset of 0 */
static bool is_store(uint32_t instruction, struct store_site *ret)
{
	unsigned base = instruction >> 5 & 31, value = instruction & 31;

	if ((instruction & 0xfffffc00) != 0xf9000000 || base == STACK_POINTER ||
	    value == STACK_POINTER)
		return false;
	ret->base_register = register_names[base];
	ret->value_register = register_names[value];
	return true;
}

/* Instructions that are to be followed, each once. */
struct reach {
	const uint8_t *code;
	size_t nr;	 /* instructions of the function */
	bool *is_known;	 /* [index] */
	size_t *waiting; /* indices */
	size_t nr_waiting;
};

static void add(struct reach *reach, int64_t index)
{
	if (index < 0 || (uint64_t)index >= reach->nr || reach->is_known[index])
		return;
	reach->is_known[index] = true;
	reach->waiting[reach->nr_waiting++] = (size_t)index;
}

static void follow(struct reach *reach)
{
	add(reach, 0);
	while (reach->nr_waiting > 0) {
		size_t index = reach->waiting[--reach->nr_waiting];
		uint32_t instruction = arm64_read(reach->code + index * ARM64_INSTRUCTION_BYTES);
		int64_t distance;

		if (arm64_is_jump(instruction, &distance))
			add(reach, (int64_t)index + distance / ARM64_INSTRUCTION_BYTES);
		if (arm64_falls_through(instruction))
			add(reach, (int64_t)index + 1);
	}
}

int arm64_find_stores(const uint8_t *code, size_t size_bytes, struct store_site *ret, size_t max)
{
	struct reach reach = {.code = code, .nr = size_bytes / ARM64_INSTRUCTION_BYTES};
	size_t nr = 0;

	if (size_bytes > ARM64_MAX_CODE_BYTES)
		return -E2BIG;
	_cleanup_free_ bool *is_known = calloc(reach.nr + 1, sizeof(*is_known));
	_cleanup_free_ size_t *waiting = calloc(reach.nr + 1, sizeof(*waiting));

	if (!is_known || !waiting)
		return -ENOMEM;
	reach.is_known = is_known;
	reach.waiting = waiting;
	follow(&reach);
	for (size_t i = 0; i < reach.nr && nr < max; i++) {
		size_t offset = i * ARM64_INSTRUCTION_BYTES;

		if (is_known[i] && is_store(arm64_read(code + offset), &ret[nr]))
			ret[nr++].offset = offset;
	}
	return (int)nr;
}
