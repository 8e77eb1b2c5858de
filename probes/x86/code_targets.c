/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/x86/code_targets.h"

#include "probes/elf/analysis_limit.h"
#include "probes/x86/code_flow.h"
#include "probes/x86/placement.h"

#include "common/elf/elf_file.h"
#include "common/schema/probe_symbols.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FUNCTION_BYTES 4096 /* of a function that is searched; wrappers are small */
#define MAX_RELOC_BYTES	   (64ull << 20)
#define MAX_RELOC_TABLES   16

/* The code of a function that is searched. */
struct code {
	const struct elf_image *image;
	uint64_t offset, address;
	uint8_t *bytes;
	size_t size_bytes;
	uint64_t pointer;	       /* of the last PLT stub: its address, as linked */
	char symbol[PROBE_SYMBOL_MAX]; /* the same: where it leads to */
};

/* Reads at most @max_bytes of the function. Returns false if it has no readable x86-64 code. */
static bool code_init(struct code *ret, const struct elf_image *image,
		      const struct elf_function *function, size_t max_bytes)
{
	size_t size_bytes = function->size_bytes < max_bytes ? function->size_bytes : max_bytes;

	*ret = (struct code){.image = image, .offset = function->offset};
	if (!image->is_x86_64 || size_bytes == 0 ||
	    !elf_image_address(image, function->offset, &ret->address))
		return false;
	ret->bytes = malloc(size_bytes);
	ret->size_bytes = size_bytes;
	if (ret->bytes && elf_image_read(image, function->offset, ret->bytes, size_bytes) == 0)
		return true;
	free(ret->bytes);
	return false;
}

/*
 * Finds the address that an operand of @type names. It is relative to the end of the instruction.
 */
static bool operand_address(const struct code *code, size_t at,
			    const struct instruction *instruction, ZydisOperandType type,
			    uint64_t *ret)
{
	for (int i = 0; i < instruction->info.operand_count_visible; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];
		uint64_t next = code->address + at + instruction->info.length;

		if (operand->type != type)
			continue;
		if (type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand->imm.is_relative) {
			*ret = next + (uint64_t)operand->imm.value.s;
			return true;
		}
		if (type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base == ZYDIS_REGISTER_RIP &&
		    operand->mem.index == ZYDIS_REGISTER_NONE) {
			*ret = next + (uint64_t)operand->mem.disp.value;
			return true;
		}
	}
	return false;
}

/* Finds the symbol whose address a relocation of this table stores at @address. */
static bool symbol_in_table(const struct elf_image *image, Elf_Scn *section,
			    const GElf_Shdr *header, uint64_t address,
			    char ret[static PROBE_SYMBOL_MAX])
{
	bool is_sane = header->sh_size <= MAX_RELOC_BYTES &&
		       elf_file_has_data(image->fd, header->sh_offset, header->sh_size);
	Elf_Data *data = is_sane ? elf_getdata(section, NULL) : NULL;
	size_t entry_size = gelf_fsize(image->elf, ELF_T_RELA, 1, EV_CURRENT);
	GElf_Rela rela;

	if (!data || entry_size == 0 || data->d_size / entry_size > INT_MAX)
		return false;
	for (int i = 0; i < (int)(data->d_size / entry_size); i++)
		if (gelf_getrela(data, i, &rela) && rela.r_offset == address)
			return elf_image_symbol_name(image, header->sh_link,
						     GELF_R_SYM(rela.r_info), ret,
						     PROBE_SYMBOL_MAX);
	return false;
}

bool code_target_of_slot(const struct elf_image *image, uint64_t address,
			 char ret[static PROBE_SYMBOL_MAX])
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int nr = 0;

	while (nr < MAX_RELOC_TABLES && (section = elf_nextscn(image->elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
			continue;
		nr++;
		if (analysis_limit_is_reached(header.sh_size) ||
		    symbol_in_table(image, section, &header, address, ret))
			return !analysis_limit_is_reached(0);
	}
	return false;
}

/* Reads what the file has of the @max bytes at @code->offset. Returns false if that is no code. */
static bool read_code(struct code *code, uint8_t *bytes, size_t max)
{
	code->bytes = bytes;
	for (code->size_bytes = max; code->size_bytes > 0; code->size_bytes--)
		if (elf_image_read(code->image, code->offset, bytes, code->size_bytes) == 0)
			break;
	return elf_image_address(code->image, code->offset, &code->address);
}

/*
 * The symbol of a PLT stub, which is an optional endbr64 and a jump through a pointer that a
 * relocation fills. NULL: there is no stub.
 */
static const char *symbol_of_stub(struct code *code, uint64_t offset)
{
	const struct elf_image *image = code->image;
	uint8_t bytes[2 * PLACEMENT_MAX_INSTRUCTION_BYTES];
	struct code stub = {.image = image, .offset = offset};
	struct instruction instruction;
	size_t at = 0;

	if (!read_code(&stub, bytes, sizeof(bytes)) ||
	    !instruction_decode(&instruction, bytes, stub.size_bytes))
		return NULL;
	if (instruction.info.mnemonic == ZYDIS_MNEMONIC_ENDBR64) {
		at = instruction.info.length;
		if (!instruction_decode(&instruction, bytes + at, stub.size_bytes - at))
			return NULL;
	}
	if (instruction.info.mnemonic != ZYDIS_MNEMONIC_JMP ||
	    !operand_address(&stub, at, &instruction, ZYDIS_OPERAND_TYPE_MEMORY, &code->pointer))
		return NULL;
	return code_target_of_slot(image, code->pointer, code->symbol) ? code->symbol : NULL;
}

/* Finds the target of a direct jump or call, through the PLT if it goes there. */
static bool find_target(struct code *code, size_t at, const struct instruction *instruction,
			struct code_target *ret)
{
	uint64_t address;
	struct elf_function there = {0};
	struct elf_symbol symbol = {0};

	if (!operand_address(code, at, instruction, ZYDIS_OPERAND_TYPE_IMMEDIATE, &address) ||
	    address - code->address < code->size_bytes)
		return false;
	symbol.address = address;
	if (!elf_image_locate(code->image, &symbol, &there))
		return false;
	*ret = (struct code_target){
		.offset = there.offset,
		.symbol = symbol_of_stub(code, there.offset),
	};
	return true;
}

bool code_target_of_call(const struct elf_image *image, uint64_t offset, struct call_target *ret)
{
	uint8_t bytes[PLACEMENT_MAX_INSTRUCTION_BYTES];
	struct code code = {.image = image, .offset = offset};
	struct instruction call;
	struct code_target target = {0};
	uint64_t address = 0;

	*ret = (struct call_target){0};
	if (!image->is_x86_64 || !read_code(&code, bytes, sizeof(bytes)) ||
	    !instruction_decode(&call, bytes, code.size_bytes) ||
	    call.info.mnemonic != ZYDIS_MNEMONIC_CALL || instruction_is_ambiguous(&call))
		return false;
	ret->size_bytes = call.info.length;
	/* Not to itself: the code is no longer than the call. */
	code.size_bytes = ret->size_bytes;
	if (find_target(&code, 0, &call, &target)) {
		operand_address(&code, 0, &call, ZYDIS_OPERAND_TYPE_IMMEDIATE, &address);
		ret->distance = (int64_t)(address - code.address);
		if (!target.symbol)
			ret->offset = target.offset;
	} else if (operand_address(&code, 0, &call, ZYDIS_OPERAND_TYPE_MEMORY, &code.pointer) &&
		   code_target_of_slot(image, code.pointer, code.symbol)) {
		target.symbol = code.symbol;
	} else {
		return false;
	}
	if (target.symbol) {
		ret->pointer_distance = (int64_t)(code.pointer - code.address);
		memcpy(ret->symbol, code.symbol, sizeof(ret->symbol));
	}
	return true;
}

int code_targets_visit(const struct elf_image *image, const struct elf_function *function,
		       bool only_first, code_target_visit *visit, void *context)
{
	struct instruction instruction;
	struct code_target target;
	struct code code;
	int found = 0;

	if (!code_init(&code, image, function, MAX_FUNCTION_BYTES))
		return 0;
	for (size_t at = 0; at < code.size_bytes && !found; at += instruction.info.length) {
		if (!instruction_decode(&instruction, code.bytes + at, code.size_bytes - at))
			break;
		if (only_first && instruction.info.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
			continue;
		if ((instruction.info.mnemonic == ZYDIS_MNEMONIC_JMP ||
		     (!only_first && instruction.info.mnemonic == ZYDIS_MNEMONIC_CALL)) &&
		    find_target(&code, at, &instruction, &target))
			found = visit(context, &target);
		if (only_first)
			break;
	}
	free(code.bytes);
	return found;
}

static bool is_listed(const uint64_t *list, int nr, uint64_t value)
{
	for (int i = 0; i < nr; i++)
		if (list[i] == value)
			return true;
	return false;
}

int code_targets_loaded(const struct elf_image *image, const struct elf_function *function,
			uint64_t *ret_offsets, int max)
{
	struct instruction instruction;
	struct elf_function there;
	struct elf_symbol symbol = {0};
	struct code code;
	int nr = 0;

	if (!code_init(&code, image, function, MAX_FUNCTION_BYTES))
		return 0;
	for (size_t at = 0; at < code.size_bytes && nr < max; at += instruction.info.length) {
		if (!instruction_decode(&instruction, code.bytes + at, code.size_bytes - at))
			break;
		if (instruction.info.mnemonic == ZYDIS_MNEMONIC_LEA &&
		    operand_address(&code, at, &instruction, ZYDIS_OPERAND_TYPE_MEMORY,
				    &symbol.address) &&
		    elf_image_locate(image, &symbol, &there) &&
		    !is_listed(ret_offsets, nr, there.offset))
			ret_offsets[nr++] = there.offset;
	}
	free(code.bytes);
	return nr;
}
