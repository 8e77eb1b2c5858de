/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The BPF programs fit into the stack of every kernel that leakrec may load them on. The kernels
 * that the tests run on would not show it: newer ones round less. check_max_stack_depth()
 * (kernel/bpf/verifier.c, Linux 6.1) rounds what each function takes up to 32 bytes, and permits
 * 512 for all functions that call each other.
 */
#include "common/scope.h"

#include <fcntl.h>
#include <gelf.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STACK_BYTES   512
#define ROUNDED_TO    32
#define MAX_DEPTH     16
#define PSEUDO_CALL   1 /* BPF_PSEUDO_CALL: of a function of the object */
#define WIDE_LOAD     (BPF_LD | BPF_IMM | BPF_DW)
#define CALL	      (BPF_JMP | BPF_CALL)
#define ADD_CONSTANT  (BPF_ALU64 | BPF_ADD | BPF_K)
#define MOVE_REGISTER (BPF_ALU64 | BPF_MOV | BPF_X)

struct object {
	Elf *elf;
	Elf_Data *symbols;
	size_t nr_symbols;
};

static struct object open_object(const char *path, int *ret_fd)
{
	struct object object = {0};
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	elf_version(EV_CURRENT);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	object.elf = elf_begin(*ret_fd, ELF_C_READ, NULL);
	assert_non_null(object.elf);
	while ((section = elf_nextscn(object.elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB) {
			object.symbols = elf_getdata(section, NULL);
			object.nr_symbols = header.sh_size / header.sh_entsize;
		}
	assert_non_null(object.symbols);
	return object;
}

/* The function at @offset of a section. */
static GElf_Sym function_at(const struct object *object, size_t section, uint64_t offset)
{
	GElf_Sym symbol;

	for (size_t i = 0; i < object->nr_symbols; i++) {
		gelf_getsym(object->symbols, (int)i, &symbol);
		if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx == section &&
		    symbol.st_value == offset)
			return symbol;
	}
	fail_msg("no function at %zu:%#lx", section, (unsigned long)offset);
	return symbol;
}

/* The symbol that the instruction at @offset of a section refers to. False: there is none. */
static bool find_relocation(const struct object *object, size_t section, uint64_t offset,
			    GElf_Sym *ret)
{
	Elf_Scn *at = NULL;
	GElf_Shdr header;
	GElf_Rel relocation;

	while ((at = elf_nextscn(object->elf, at))) {
		Elf_Data *data = elf_getdata(at, NULL);

		if (!gelf_getshdr(at, &header) || header.sh_type != SHT_REL ||
		    header.sh_info != section)
			continue;
		for (int i = 0; gelf_getrel(data, i, &relocation); i++)
			if (relocation.r_offset == offset)
				return gelf_getsym(object->symbols,
						   (int)GELF_R_SYM(relocation.r_info), ret) != NULL;
	}
	return false;
}

/* Finds what a call calls. False: a function of the kernel. */
static bool find_callee(const struct object *object, size_t section, uint64_t offset,
			const struct bpf_insn *call, GElf_Sym *ret)
{
	if (call->code != CALL || call->src_reg != PSEUDO_CALL)
		return false;
	if (!find_relocation(object, section, offset, ret))
		*ret = function_at(object, section, offset + (uint64_t)(call->imm + 1) * 8);
	else if (GELF_ST_TYPE(ret->st_info) == STT_SECTION)
		*ret = function_at(object, ret->st_shndx, (uint64_t)(call->imm + 1) * 8);
	return ret->st_shndx != SHN_UNDEF;
}

/* How far below the frame pointer the instruction reaches. @previous: the one before. */
static unsigned int bytes_used(const struct bpf_insn *insn, const struct bpf_insn *previous)
{
	unsigned int class = BPF_CLASS(insn->code);
	int used = 0;

	if ((class == BPF_LDX && insn->src_reg == BPF_REG_10) ||
	    ((class == BPF_ST || class == BPF_STX) && insn->dst_reg == BPF_REG_10))
		used = -insn->off;
	else if (insn->code == ADD_CONSTANT && previous && previous->code == MOVE_REGISTER &&
		 previous->src_reg == BPF_REG_10 && previous->dst_reg == insn->dst_reg)
		used = -insn->imm;
	return used > 0 ? (unsigned int)used : 0;
}

/* The most that a function takes, with all that it calls. */
static unsigned int depth_of(const struct object *object, const GElf_Sym *function, int level)
{
	Elf_Data *code = elf_getdata(elf_getscn(object->elf, function->st_shndx), NULL);
	const struct bpf_insn *insns = (const void *)((char *)code->d_buf + function->st_value);
	unsigned int own = 1, most = 0;

	assert_in_range(level, 0, MAX_DEPTH);
	for (size_t i = 0; i < function->st_size / sizeof(*insns); i++) {
		unsigned int used = bytes_used(&insns[i], i ? &insns[i - 1] : NULL), below = 0;
		GElf_Sym callee;

		if (find_callee(object, function->st_shndx, function->st_value + i * sizeof(*insns),
				&insns[i], &callee))
			below = depth_of(object, &callee, level + 1);
		own = used > own ? used : own;
		most = below > most ? below : most;
		i += insns[i].code == WIDE_LOAD;
	}
	return (own + ROUNDED_TO - 1) / ROUNDED_TO * ROUNDED_TO + most;
}

/* True for the functions that the kernel calls, not those that they share. */
static bool is_program(const struct object *object, const GElf_Sym *symbol)
{
	GElf_Shdr header;
	size_t names;

	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size == 0)
		return false;
	gelf_getshdr(elf_getscn(object->elf, symbol->st_shndx), &header);
	elf_getshdrstrndx(object->elf, &names);
	return strcmp(elf_strptr(object->elf, names, header.sh_name), ".text") != 0;
}

static void check_object(const char *path)
{
	_cleanup_close_ int fd = -1;
	struct object object = open_object(path, &fd);
	unsigned int most = 0;

	for (size_t i = 0; i < object.nr_symbols; i++) {
		GElf_Sym symbol;
		unsigned int depth;

		gelf_getsym(object.symbols, (int)i, &symbol);
		if (!is_program(&object, &symbol))
			continue;
		depth = depth_of(&object, &symbol, 0);
		if (depth > STACK_BYTES)
			fail_msg("%s: a program at section %u takes %u bytes", path,
				 symbol.st_shndx, depth);
		most = depth > most ? depth : most;
	}
	/* Something was found. */
	assert_in_range(most, ROUNDED_TO, STACK_BYTES);
	elf_end(object.elf);
}

static void test_recorder(void **state)
{
	check_object(TEST_BUILD_DIR "/recorder/bpf_recorder.bpf.o");
}

static void test_backpressure(void **state)
{
	check_object(TEST_BUILD_DIR "/recorder/backpressure.bpf.o");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorder),
		cmocka_unit_test(test_backpressure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
