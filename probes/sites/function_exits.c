/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/sites/function_exits.h"

#include "probes/x86/code_segment.h"
#include "probes/x86/code_switch.h"
#include "probes/x86/code_targets.h"

#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_STEPS  32768
#define NR_SLOTS   (2 * MAX_STEPS) /* a power of two */
#define NO_STEP	   UINT32_MAX
#define MAX_PIECES 256

/* An instruction that control flow reaches. */
struct step {
	uint64_t offset;
	uint32_t before; /* the step that led here first, or NO_STEP */
	uint8_t length;
};

/* Code that was compiled as one piece. Offsets in the file. */
struct piece {
	uint64_t first, end;
};

struct search {
	struct code_segment segment;
	const struct frame_table *frames;
	struct piece function; /* by its symbol */
	struct step *steps;    /* in the order in which they were reached */
	size_t nr_steps;
	uint32_t *slots; /* index of a step plus 1, by hash of its offset */
	struct piece pieces[MAX_PIECES];
	size_t nr_pieces;
	bool has_switch;
	struct function_exits *ret;
};

static int refuse(struct search *search, uint64_t where, const char *why)
{
	search->ret->why = why;
	search->ret->where = where;
	return -ENOTSUP;
}

static uint32_t *find_slot(const struct search *search, uint64_t offset)
{
	size_t i = (offset * 0x9e3779b97f4a7c15ull >> 32) & (NR_SLOTS - 1);

	while (search->slots[i] && search->steps[search->slots[i] - 1].offset != offset)
		i = (i + 1) & (NR_SLOTS - 1);
	return &search->slots[i];
}

/* Adds the step at @offset, to which control comes from step @before. */
static int reach(struct search *search, uint64_t offset, uint32_t before)
{
	uint32_t *slot = find_slot(search, offset);

	if (*slot)
		return 0;
	if (!code_segment_holds(&search->segment, offset))
		return refuse(search, offset, "it jumps out of the file's code");
	if (search->nr_steps == MAX_STEPS)
		return refuse(search, offset, "it is too large");
	search->steps[search->nr_steps++] = (struct step){.offset = offset, .before = before};
	*slot = (uint32_t)search->nr_steps;
	return 0;
}

/* Adds the landing pads of a piece. */
static int reach_pads(struct search *search, const struct frame_entry *entry)
{
	uint64_t pads[FRAME_MAX_PADS];
	int nr = frame_entry_read_pads(search->segment.image, entry, pads), err = 0;

	if (nr == -ENOTSUP)
		return refuse(search, code_segment_offset(&search->segment, entry->first),
			      "its landing pads are not understood");
	for (int i = 0; i < nr && !err; i++)
		err = reach(search, code_segment_offset(&search->segment, pads[i]), NO_STEP);
	return nr < 0 ? nr : err;
}

/* Finds the piece of code that holds @offset. Its instructions follow each other without gaps. */
static int find_piece(struct search *search, uint64_t offset, const struct piece **ret)
{
	const struct frame_entry *entry;
	struct piece *piece;

	for (size_t i = search->nr_pieces; i-- > 0;) {
		*ret = &search->pieces[i];
		if (offset >= (*ret)->first && offset < (*ret)->end)
			return 0;
	}
	if (search->nr_pieces == MAX_PIECES)
		return refuse(search, offset, "it is spread over too much code");
	piece = &search->pieces[search->nr_pieces];
	entry = frame_table_find(search->frames, code_segment_address(&search->segment, offset));
	if (entry)
		*piece = (struct piece){code_segment_offset(&search->segment, entry->first),
					code_segment_offset(&search->segment, entry->end)};
	else if (offset >= search->function.first && offset < search->function.end)
		*piece = search->function;
	else
		return refuse(search, offset, "the end of code that it jumps to is not known");
	search->nr_pieces++;
	*ret = piece;
	return entry ? reach_pads(search, entry) : 0;
}

/* The steps that lead to step @index, the nearest first, beginning with itself. */
static size_t path_to(const struct search *search, uint32_t index,
		      uint64_t path[CODE_SWITCH_MAX_PATH])
{
	size_t nr = 0;

	for (; index != NO_STEP && nr < CODE_SWITCH_MAX_PATH; index = search->steps[index].before)
		path[nr++] = search->steps[index].offset;
	return nr;
}

/*
 * Follows a jump through a pointer that a relocation fills, as PLT stubs do: a tail call of a
 * function by name, which may be in another file. A function of this file is assumed to be the
 * target.
 */
static int follow_pointer(struct search *search, uint32_t index, uint64_t pointer)
{
	char symbol[PROBE_SYMBOL_MAX];
	const char *name = symbol;
	struct elf_function there = {0};

	if (code_target_of_slot(search->segment.image, pointer, symbol))
		elf_image_find_functions(search->segment.image, &name, 1, &there);
	return there.is_found ? reach(search, there.offset, index)
			      : refuse(search, search->steps[index].offset,
				       "it ends in a function of another file");
}

/* True for `jmp *pointer(%rip)`. */
static bool is_through_pointer(const struct search *search, uint64_t offset,
			       const struct instruction *instruction, uint64_t *ret_pointer)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];

	if (to->type != ZYDIS_OPERAND_TYPE_MEMORY || to->mem.base != ZYDIS_REGISTER_RIP ||
	    to->mem.index != ZYDIS_REGISTER_NONE)
		return false;
	*ret_pointer = code_segment_address(&search->segment, offset) + instruction->info.length +
		       (uint64_t)to->mem.disp.value;
	return true;
}

static int follow_switch(struct search *search, uint32_t index)
{
	uint64_t path[CODE_SWITCH_MAX_PATH], targets[CODE_SWITCH_MAX_TARGETS];
	int err = 0,
	    nr = code_switch_find(&search->segment, path, path_to(search, index, path), targets);

	if (nr == 0)
		return refuse(search, search->steps[index].offset,
			      "the target of one of its jumps is not known");
	search->has_switch = true;
	for (int i = 0; i < nr && !err; i++)
		err = reach(search, targets[i], index);
	return err;
}

static bool is_call(const struct instruction *instruction)
{
	return instruction->info.meta.category == ZYDIS_CATEGORY_CALL;
}

/*
 * Follows control after step @index. At the end of a piece of code, a call does not return; other
 * instructions fall into the next piece, as in some hand-written code.
 */
static int fall_through(struct search *search, uint32_t index, const struct piece *piece,
			const struct instruction *instruction)
{
	uint64_t next = search->steps[index].offset + instruction->info.length;
	const struct frame_entry *entry;

	if (next < piece->end)
		return reach(search, next, index);
	if (is_call(instruction))
		return 0;
	entry = frame_table_find(search->frames, code_segment_address(&search->segment, next));
	if (!entry || code_segment_offset(&search->segment, entry->first) != next)
		return refuse(search, next, "the end of its code is not known");
	return reach(search, next, index);
}

static int add_exit(struct search *search, const struct instruction *instruction, uint64_t offset)
{
	if (instruction->info.mnemonic != ZYDIS_MNEMONIC_RET ||
	    instruction->info.meta.branch_type != ZYDIS_BRANCH_TYPE_NEAR ||
	    instruction->info.operand_count_visible > 0)
		return refuse(search, offset, "it returns in an unusual way");
	if (search->ret->nr == FUNCTION_MAX_EXITS)
		return refuse(search, offset, "it returns from too many places");
	search->ret->offsets[search->ret->nr++] = offset;
	return 0;
}

static int follow_step(struct search *search, uint32_t index)
{
	uint64_t offset = search->steps[index].offset, target;
	struct instruction instruction;
	const struct piece *piece;
	int err = find_piece(search, offset, &piece);

	if (err)
		return err;
	if (!code_segment_decode(&search->segment, offset, &instruction) ||
	    instruction.info.length > piece->end - offset || instruction_is_ambiguous(&instruction))
		return search->segment.error ? search->segment.error
					     : refuse(search, offset, "its code is not understood");
	search->steps[index].length = instruction.info.length;
	switch (instruction.info.meta.category) {
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSRET:
		return add_exit(search, &instruction, offset);
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (instruction.info.mnemonic != ZYDIS_MNEMONIC_JMP)
			break; /* xabort */
		if (instruction_target(&instruction, offset, &target))
			return reach(search, target, index);
		return is_through_pointer(search, offset, &instruction, &target)
			       ? follow_pointer(search, index, target)
			       : follow_switch(search, index);
	default: /* An `int` may return. */
		break;
	}
	if (instruction_traps(&instruction))
		return 0;
	if (!is_call(&instruction) && instruction_target(&instruction, offset, &target))
		err = reach(search, target, index);
	return err ? err : fall_through(search, index, piece, &instruction);
}

static int compare_steps(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Checks that no instruction begins inside another one: some of it would not be code. */
static int check_overlaps(struct search *search)
{
	qsort(search->steps, search->nr_steps, sizeof(*search->steps), compare_steps);
	for (size_t i = 1; i < search->nr_steps; i++)
		if (search->steps[i].offset - search->steps[i - 1].offset <
		    search->steps[i - 1].length)
			return refuse(search, search->steps[i].offset, "its instructions overlap");
	return 0;
}

static bool is_exit(const struct search *search, uint64_t offset)
{
	for (size_t i = 0; i < search->ret->nr; i++)
		if (search->ret->offsets[i] == offset)
			return true;
	return false;
}

/*
 * With a switch, finding all exits depends on its table. So all instructions of the pieces are
 * decoded in order as well: there must not be another exit.
 */
static int check_completeness(struct search *search)
{
	struct instruction instruction;

	for (size_t i = 0; i < search->nr_pieces; i++) {
		const struct piece *piece = &search->pieces[i];

		for (uint64_t offset = piece->first; offset < piece->end;
		     offset += instruction.info.length) {
			if (!code_segment_decode(&search->segment, offset, &instruction))
				return refuse(search, offset, "its code is not understood");
			if (instruction.info.meta.category == ZYDIS_CATEGORY_RET &&
			    !is_exit(search, offset))
				return refuse(search, offset, "some of its code is not reached");
		}
	}
	return 0;
}

static int compare_offsets(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int follow_all(struct search *search, uint64_t entry)
{
	int err = reach(search, entry, NO_STEP);

	for (size_t i = 0; i < search->nr_steps && !err; i++)
		err = follow_step(search, (uint32_t)i);
	if (!err)
		err = check_overlaps(search);
	if (!err && search->has_switch)
		err = check_completeness(search);
	if (!err && search->ret->nr == 0)
		err = refuse(search, entry, "it never returns");
	if (!err)
		qsort(search->ret->offsets, search->ret->nr, sizeof(search->ret->offsets[0]),
		      compare_offsets);
	return err;
}

int function_exits_find(const struct elf_image *image, const struct frame_table *frames,
			const struct elf_function *function, struct function_exits *ret)
{
	_cleanup_free_ struct search *search = calloc(1, sizeof(*search));
	_cleanup_free_ struct step *steps = calloc(MAX_STEPS, sizeof(*steps));
	_cleanup_free_ uint32_t *slots = calloc(NR_SLOTS, sizeof(*slots));
	int err;

	*ret = (struct function_exits){0};
	if (!search || !steps || !slots)
		return -ENOMEM;
	search->frames = frames;
	search->function =
		(struct piece){function->offset, function->offset + function->size_bytes};
	search->steps = steps;
	search->slots = slots;
	search->ret = ret;
	if (!code_segment_init(&search->segment, image, function->offset))
		return refuse(search, function->offset, "there is no code");
	err = follow_all(search, function->offset);
	if (err)
		ret->nr = 0;
	return err;
}
