/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/x86/code_switch.h"

#include <string.h>

/* State of the search backwards from the jump. */
struct search {
	struct code_segment *segment;
	const uint64_t *path;
	size_t nr, at; /* @path[@at] is the present instruction */
	struct instruction instruction;

	ZydisRegister index, base; /* 64-bit registers; base: NONE once the table is known */
	uint64_t table;		   /* its address */
	unsigned int entry_bytes;  /* 4: distances from the table; 8: addresses */
	bool is_bounded;
	uint64_t nr_entries;
	ZydisMnemonic branch; /* passed on the way, its flags not yet found; or INVALID */
	bool is_taken;
};

static ZydisRegister whole(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

/* Moves to the preceding instruction. */
static bool step_back(struct search *search)
{
	if (++search->at >= search->nr)
		return false;
	return code_segment_decode(search->segment, search->path[search->at], &search->instruction);
}

static const ZydisDecodedOperand *operand(const struct search *search, int i)
{
	return &search->instruction.operands[i];
}

static bool is_register(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER;
}

/* Calls preserve these: System V psABI for x86-64, 3.2.1. */
static bool is_kept_by_calls(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_RBX || reg == ZYDIS_REGISTER_RBP ||
	       (reg >= ZYDIS_REGISTER_R12 && reg <= ZYDIS_REGISTER_R15);
}

static bool writes(const struct search *search, ZydisRegister reg)
{
	if (search->instruction.info.meta.category == ZYDIS_CATEGORY_CALL)
		return !is_kept_by_calls(reg);
	for (int i = 0; i < search->instruction.info.operand_count; i++)
		if ((operand(search, i)->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    is_register(operand(search, i)) && whole(operand(search, i)->reg.value) == reg)
			return true;
	return false;
}

/* Gets the table and the index from an operand `table(,%index,8)`. */
static bool parse_absolute(struct search *search, const ZydisDecodedOperand *from)
{
	if (from->type != ZYDIS_OPERAND_TYPE_MEMORY || from->mem.scale != 8 ||
	    from->mem.base != ZYDIS_REGISTER_NONE || from->mem.segment == ZYDIS_REGISTER_FS ||
	    from->mem.segment == ZYDIS_REGISTER_GS || from->mem.disp.value <= 0)
		return false;
	search->index = whole(from->mem.index);
	search->table = (uint64_t)from->mem.disp.value;
	search->entry_bytes = 8;
	return true;
}

/*
 * Gets B, which holds the table's address, and the index from `movslq (%B,%I,4),%T`. The `add` has
 * @a and @b: B and T, or T and B.
 */
static bool parse_distances(struct search *search, ZydisRegister a, ZydisRegister b)
{
	const ZydisDecodedOperand *to = operand(search, 0), *from = operand(search, 1);
	ZydisRegister base = whole(to->reg.value) == a ? b : a;

	if (search->instruction.info.mnemonic != ZYDIS_MNEMONIC_MOVSXD ||
	    from->type != ZYDIS_OPERAND_TYPE_MEMORY || from->mem.scale != 4 ||
	    from->mem.base != base || from->mem.disp.value != 0)
		return false;
	search->index = whole(from->mem.index);
	search->base = base;
	search->entry_bytes = 4;
	return true;
}

/*
 * Goes back from the jump to the instruction that reads the table: the jump itself, the load of an
 * address into the jump's register, or the load of a distance, to which an add adds the base.
 */
static bool find_load(struct search *search)
{
	const ZydisDecodedOperand *to;
	ZydisRegister target, addend = ZYDIS_REGISTER_NONE;

	search->at = 0;
	if (!code_segment_decode(search->segment, search->path[0], &search->instruction))
		return false;
	to = operand(search, 0);
	if (!is_register(to))
		return parse_absolute(search, to);
	target = to->reg.value;
	while (step_back(search)) {
		bool sets_target = writes(search, target);
		bool sets_addend = addend != ZYDIS_REGISTER_NONE && writes(search, addend);

		if (!sets_target && !sets_addend)
			continue;
		if (addend != ZYDIS_REGISTER_NONE)
			return parse_distances(search, target, addend);
		if (search->instruction.info.mnemonic == ZYDIS_MNEMONIC_MOV)
			return parse_absolute(search, operand(search, 1));
		if (search->instruction.info.mnemonic != ZYDIS_MNEMONIC_ADD ||
		    !is_register(operand(search, 1)))
			return false;
		addend = operand(search, 1)->reg.value;
	}
	return false;
}

/*
 * The present instruction writes the base: takes its source as the base, or the table's address if
 * it is a `lea` of one. Returns false if it is not understood.
 */
static bool follow_base(struct search *search)
{
	const ZydisDecodedOperand *from = operand(search, 1);
	const struct instruction *instruction = &search->instruction;

	if (instruction->info.mnemonic == ZYDIS_MNEMONIC_MOV && is_register(from)) {
		search->base = from->reg.value;
		return true;
	}
	if (instruction->info.mnemonic != ZYDIS_MNEMONIC_LEA ||
	    from->mem.base != ZYDIS_REGISTER_RIP || from->mem.index != ZYDIS_REGISTER_NONE)
		return false;
	search->table = code_segment_address(search->segment, search->path[search->at]) +
			instruction->info.length + (uint64_t)from->mem.disp.value;
	search->base = ZYDIS_REGISTER_NONE;
	return true;
}

/*
 * The same for the index. It may copy a register or a part of one, or be an `and` with a constant,
 * which bounds the index as a comparison does.
 */
static bool follow_index(struct search *search)
{
	const ZydisDecodedOperand *from = operand(search, 1);

	switch (search->instruction.info.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		search->index = is_register(from) ? whole(from->reg.value) : ZYDIS_REGISTER_NONE;
		return is_register(from);
	case ZYDIS_MNEMONIC_AND:
		if (from->type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
		    from->imm.value.u >= CODE_SWITCH_MAX_TARGETS)
			return false;
		search->is_bounded = true;
		search->nr_entries = from->imm.value.u + 1;
		return true;
	default:
		return false;
	}
}

static bool writes_flags(const struct search *search)
{
	return search->instruction.info.cpu_flags &&
	       (search->instruction.info.cpu_flags->modified |
		search->instruction.info.cpu_flags->set_0 |
		search->instruction.info.cpu_flags->set_1 |
		search->instruction.info.cpu_flags->undefined);
}

/* Gets the number of entries from `cmp $N,%I` before the branch that was passed. */
static bool parse_comparison(struct search *search)
{
	const ZydisDecodedOperand *with = operand(search, 1);
	bool includes;

	if (search->instruction.info.mnemonic != ZYDIS_MNEMONIC_CMP ||
	    !is_register(operand(search, 0)) || with->type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    whole(operand(search, 0)->reg.value) != search->index ||
	    with->imm.value.u >= CODE_SWITCH_MAX_TARGETS)
		return false;
	/* The path continues where the index is not above N, or is below N. */
	if (search->branch == ZYDIS_MNEMONIC_JNBE || search->branch == ZYDIS_MNEMONIC_JBE) {
		includes = true;
		if (search->is_taken != (search->branch == ZYDIS_MNEMONIC_JBE))
			return false;
	} else {
		includes = false;
		if (search->is_taken != (search->branch == ZYDIS_MNEMONIC_JB))
			return false;
	}
	search->nr_entries = with->imm.value.u + includes;
	search->is_bounded = true;
	return true;
}

static void note_branch(struct search *search)
{
	ZydisMnemonic mnemonic = search->instruction.info.mnemonic;
	uint64_t offset = search->path[search->at];

	search->branch = ZYDIS_MNEMONIC_INVALID;
	if (mnemonic != ZYDIS_MNEMONIC_JNBE && mnemonic != ZYDIS_MNEMONIC_JBE &&
	    mnemonic != ZYDIS_MNEMONIC_JNB && mnemonic != ZYDIS_MNEMONIC_JB)
		return;
	search->branch = mnemonic;
	search->is_taken = search->path[search->at - 1] != offset + search->instruction.info.length;
}

/* Goes back until the table and its size are known. */
static bool find_bounds(struct search *search)
{
	while (!search->is_bounded || search->base != ZYDIS_REGISTER_NONE) {
		bool sets_base, sets_index;

		if (!step_back(search))
			return false;
		sets_base = search->base != ZYDIS_REGISTER_NONE && writes(search, search->base);
		sets_index = !search->is_bounded && writes(search, search->index);
		if (search->instruction.info.meta.category == ZYDIS_CATEGORY_COND_BR) {
			note_branch(search);
		} else if (writes_flags(search)) {
			if (search->branch != ZYDIS_MNEMONIC_INVALID && !search->is_bounded)
				parse_comparison(search);
			search->branch = ZYDIS_MNEMONIC_INVALID;
		}
		if ((sets_base && !follow_base(search)) || (sets_index && !follow_index(search)))
			return false;
	}
	return true;
}

/*
 * True if the file is linked to a fixed address, so that its tables hold addresses; in other files
 * relocations fill them.
 */
static bool is_fixed(const struct elf_image *image)
{
	GElf_Ehdr header;

	return gelf_getehdr(image->elf, &header) && header.e_type == ET_EXEC;
}

int code_switch_find(struct code_segment *segment, const uint64_t *path, size_t nr,
		     uint64_t ret[CODE_SWITCH_MAX_TARGETS])
{
	struct search search = {.segment = segment, .path = path, .nr = nr};
	uint8_t entries[CODE_SWITCH_MAX_TARGETS * 8];
	size_t size_bytes;

	if (nr == 0 || !find_load(&search) || search.index == ZYDIS_REGISTER_NONE ||
	    !find_bounds(&search) || search.nr_entries == 0 ||
	    search.nr_entries > CODE_SWITCH_MAX_TARGETS ||
	    (search.entry_bytes == 8 && !is_fixed(segment->image)))
		return 0;
	size_bytes = search.nr_entries * search.entry_bytes;
	if (elf_image_read_address(segment->image, search.table, entries, size_bytes) != size_bytes)
		return 0;
	for (size_t i = 0; i < search.nr_entries; i++) {
		uint64_t address;
		int32_t distance;

		if (search.entry_bytes == 8) {
			memcpy(&address, entries + i * 8, sizeof(address));
		} else {
			memcpy(&distance, entries + i * 4, sizeof(distance));
			address = search.table + (uint64_t)(int64_t)distance;
		}
		ret[i] = code_segment_offset(segment, address);
		if (!code_segment_holds(segment, ret[i]))
			return 0;
	}
	return (int)search.nr_entries;
}
