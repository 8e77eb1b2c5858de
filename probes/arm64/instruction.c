/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/arm64/instruction.h"

#include "common/scope.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

struct encoding {
	uint32_t mask, value;
	const char *name;
};

/* What the kernel simulates: simulate-insn.c, beside decode-insn.c. */
static const struct encoding simulated[] = {
	{0xff000010, 0x54000000, "b.cond"}, {0x7f000000, 0x34000000, "cbz"},
	{0x7f000000, 0x35000000, "cbnz"},   {0x7f000000, 0x36000000, "tbz"},
	{0x7f000000, 0x37000000, "tbnz"},   {0x9f000000, 0x10000000, "adr"},
	{0x9f000000, 0x90000000, "adrp"},   {0xfc000000, 0x14000000, "b"},
	{0xfc000000, 0x94000000, "bl"},	    {0xfffffc1f, 0xd61f0000, "br"},
	{0xfffffc1f, 0xd63f0000, "blr"},    {0xfffffc1f, 0xd65f0000, "ret"},
};

/*
 * What it refuses: aarch64_insn_is_steppable(). Kernels before 6.12 did simulate loads of literals,
 * but wrongly (arm64: probes: Remove broken LDR (literal) uprobe support).
 */
static const struct encoding refused[] = {
	{0xbf000000, 0x18000000, "ldr (literal)"},
	{0xff000000, 0x98000000, "ldrsw (literal)"},
	{0xff000000, 0xd8000000, "prfm (literal)"},
	{0x3f400000, 0x08000000, "store exclusive"},
	{0x3f400000, 0x08400000, "load exclusive"},
	{0xff000000, 0xd4000000, "exception"},
	{0xfff8f01f, 0xd500401f, "msr (immediate)"},
	{0xfff00000, 0xd5100000, "msr"},
	{0xffffffe0, 0xd53b4220, "mrs daif"},
	{0xfefff800, 0xd61f0800, "br, authenticated"},
	{0xfefff800, 0xd63f0800, "blr, authenticated"},
	{0xfffffbff, 0xd65f0bff, "ret, authenticated"},
	{0xffffffff, 0xd69f03e0, "eret"},
	{0xfffffbff, 0xd69f0bff, "eret, authenticated"},
};

#define HINT_MASK	  0xfffff01f
#define HINT		  0xd503201f
#define HINT_NUMBER(hint) ((hint) >> 5 & 0x7f)
#define NOP		  0xd503201f

/*
 * Hints that may be stepped: aarch64_insn_is_steppable_hint(), Linux 5.8 and later. autiasp and its
 * kin are none: a signature that is wrong would be found in another place.
 */
static const struct {
	uint8_t number;
	const char *name;
} steppable_hints[] = {
	{0, "nop"},	{7, "xpaclri"},	 {8, "pacia1716"}, {10, "pacib1716"},
	{24, "paciaz"}, {25, "paciasp"}, {26, "pacibz"},   {27, "pacibsp"},
	{32, "bti"},	{34, "bti c"},	 {36, "bti j"},	   {38, "bti jc"},
};

struct arm64_kernel arm64_kernel_running(void)
{
	struct arm64_kernel kernel = {0};
	struct utsname name;
	int major, minor;

	if (uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2)
		kernel.simulates_nop = major > 6 || (major == 6 && minor >= 13);
	return kernel;
}

uint32_t arm64_read(const uint8_t *code)
{
	return (uint32_t)code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 |
	       (uint32_t)code[3] << 24;
}

static const char *find(const struct encoding *encodings, size_t nr, uint32_t instruction)
{
	for (size_t i = 0; i < nr; i++)
		if ((instruction & encodings[i].mask) == encodings[i].value)
			return encodings[i].name;
	return NULL;
}

/* The name of a hint that may be stepped. NULL: it is another hint. */
static const char *find_hint(uint32_t instruction)
{
	for (size_t i = 0; i < ARRAY_SIZE(steppable_hints); i++)
		if (steppable_hints[i].number == HINT_NUMBER(instruction))
			return steppable_hints[i].name;
	return NULL;
}

static enum placement_class classify(uint32_t instruction, const struct arm64_kernel *kernel,
				     const char **ret_name)
{
	*ret_name = find(simulated, ARRAY_SIZE(simulated), instruction);
	if (*ret_name)
		return PLACEMENT_EMULATED;
	*ret_name = find(refused, ARRAY_SIZE(refused), instruction);
	if (*ret_name)
		return PLACEMENT_REFUSED;
	if ((instruction & HINT_MASK) != HINT)
		return PLACEMENT_STEPPED;
	*ret_name = find_hint(instruction);
	if (!*ret_name) {
		*ret_name = "hint";
		return PLACEMENT_REFUSED;
	}
	return instruction == NOP && kernel->simulates_nop ? PLACEMENT_EMULATED : PLACEMENT_STEPPED;
}

enum placement_class arm64_classify(uint32_t instruction, const struct arm64_kernel *kernel)
{
	const char *name;

	return classify(instruction, kernel, &name);
}

void arm64_describe(const uint8_t *code, size_t size_bytes, const struct arm64_kernel *kernel,
		    struct placement_instruction *ret)
{
	uint32_t instruction;
	const char *name;

	*ret = (struct placement_instruction){.class = PLACEMENT_UNKNOWN, .text = "?"};
	if (size_bytes < ARM64_INSTRUCTION_BYTES)
		return;
	instruction = arm64_read(code);
	ret->class = classify(instruction, kernel, &name);
	if (name)
		snprintf(ret->text, sizeof(ret->text), "%s", name);
	else
		snprintf(ret->text, sizeof(ret->text), ".inst 0x%08x", instruction);
}

/* The signed number in the bits of @instruction from @first on, in instructions; as bytes. */
static int64_t distance(uint32_t instruction, unsigned first, unsigned nr)
{
	int64_t field = instruction >> first & ((1u << nr) - 1);

	if (field >> (nr - 1))
		field -= (int64_t)1 << nr;
	return field * ARM64_INSTRUCTION_BYTES;
}

bool arm64_is_jump(uint32_t instruction, int64_t *ret_distance)
{
	if ((instruction & 0xfc000000) == 0x14000000) /* b */
		*ret_distance = distance(instruction, 0, 26);
	else if ((instruction & 0xff000000) == 0x54000000 || /* b.cond, bc.cond */
		 (instruction & 0x7e000000) == 0x34000000)   /* cbz, cbnz */
		*ret_distance = distance(instruction, 5, 19);
	else if ((instruction & 0x7e000000) == 0x36000000) /* tbz, tbnz */
		*ret_distance = distance(instruction, 5, 14);
	else
		return false;
	return true;
}

bool arm64_falls_through(uint32_t instruction)
{
	/* Jumps through a register, and returns. Of these, blr is a call. */
	if ((instruction & 0xfe000000) == 0xd6000000)
		return (instruction >> 21 & 7) == 1;
	/* b, udf, brk */
	return (instruction & 0xfc000000) != 0x14000000 && (instruction & 0xffff0000) != 0 &&
	       (instruction & 0xffe0001f) != 0xd4200000;
}
