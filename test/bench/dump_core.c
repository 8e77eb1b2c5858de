/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test/bench/dump_core.h"

#include "common/scope.h"
#include "unwind/frames/dump_registers.h"
#include "unwind/modules/module_file.h"
#include "unwind/modules/module_segments.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/procfs.h>

#if defined(__x86_64__)
#include <asm/perf_regs.h>

struct core_head {
	Elf64_Ehdr elf;
	Elf64_Phdr note, stack;
	Elf64_Nhdr note_head;
	char note_name[8];
	struct elf_prstatus status;
} __attribute__((packed)); /* as in the file */

static uint64_t value_of(const struct stack_dump *dump, unsigned number)
{
	uint64_t value = 0;

	return dump_register(dump, number, &value) ? value : 0;
}

static void fill_registers(struct user_regs_struct *to, const struct stack_dump *dump)
{
	to->rax = value_of(dump, PERF_REG_X86_AX);
	to->rbx = value_of(dump, PERF_REG_X86_BX);
	to->rcx = value_of(dump, PERF_REG_X86_CX);
	to->rdx = value_of(dump, PERF_REG_X86_DX);
	to->rsi = value_of(dump, PERF_REG_X86_SI);
	to->rdi = value_of(dump, PERF_REG_X86_DI);
	to->rbp = value_of(dump, PERF_REG_X86_BP);
	to->rsp = value_of(dump, PERF_REG_X86_SP);
	to->rip = value_of(dump, PERF_REG_X86_IP);
	to->r8 = value_of(dump, PERF_REG_X86_R8);
	to->r9 = value_of(dump, PERF_REG_X86_R9);
	to->r10 = value_of(dump, PERF_REG_X86_R10);
	to->r11 = value_of(dump, PERF_REG_X86_R11);
	to->r12 = value_of(dump, PERF_REG_X86_R12);
	to->r13 = value_of(dump, PERF_REG_X86_R13);
	to->r14 = value_of(dump, PERF_REG_X86_R14);
	to->r15 = value_of(dump, PERF_REG_X86_R15);
	to->cs = 0x33;
	to->ss = 0x2b;
	to->eflags = 0x202;
}

static int write_core(FILE *out, const struct stack_dump *dump)
{
	struct user_regs_struct registers = {0};
	struct core_head head = {
		.elf = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				    EV_CURRENT},
			.e_type = ET_CORE,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_phoff = offsetof(struct core_head, note),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 2},
		.note = {.p_type = PT_NOTE,
			 .p_offset = offsetof(struct core_head, note_head),
			 .p_filesz = sizeof(head) - offsetof(struct core_head, note_head),
			 .p_align = 4},
		.stack = {.p_type = PT_LOAD,
			  .p_flags = PF_R | PF_W,
			  .p_offset = sizeof(head),
			  .p_vaddr = value_of(dump, PERF_REG_X86_SP),
			  .p_filesz = dump->nr_bytes,
			  .p_memsz = dump->nr_bytes,
			  .p_align = 1},
		.note_head = {.n_namesz = 5,
			      .n_descsz = sizeof(head.status),
			      .n_type = NT_PRSTATUS},
		.note_name = "CORE",
		.status.pr_pid = 1,
	};

	fill_registers(&registers, dump);
	memcpy(&head.status.pr_reg, &registers, sizeof(registers));
	fwrite(&head, sizeof(head), 1, out);
	fwrite(dump->bytes, dump->nr_bytes, 1, out);
	return ferror(out) ? -EIO : 0;
}

/* Lists each module that @stack goes through, once. */
static void write_modules(FILE *out, const struct module_table *modules,
			  const struct address_space *space, const struct unwound_stack *stack)
{
	for (size_t i = 0; i < stack->nr; i++) {
		const struct mapping *mapping = address_space_find(space, stack->addresses[i] - 1);
		bool is_known = !mapping;
		uint64_t vaddr;

		for (size_t k = 0; k < i && !is_known; k++) {
			const struct mapping *other =
				address_space_find(space, stack->addresses[k] - 1);

			is_known = other && other->module == mapping->module;
		}
		if (is_known)
			continue;
		uint64_t address = stack->addresses[i] - 1;
		if (module_find_file(modules, mapping->module) ||
		    !module_vaddr(mapping->module, address - mapping->start + mapping->file_offset,
				  &vaddr))
			continue;
		fprintf(out, "add-symbol-file %s -o 0x%" PRIx64 "\n", mapping->module->file_path,
			address - vaddr);
	}
}

int dump_core_write(const char *path, const struct module_table *modules,
		    const struct address_space *space, const struct stack_dump *dump,
		    const struct unwound_stack *stack)
{
	char core_path[4096], script_path[4096], ours_path[4096];

	snprintf(core_path, sizeof(core_path), "%s.core", path);
	snprintf(script_path, sizeof(script_path), "%s.gdb", path);
	snprintf(ours_path, sizeof(ours_path), "%s.ours", path);

	_cleanup_fclose_ FILE *core = fopen(core_path, "we");
	_cleanup_fclose_ FILE *script = fopen(script_path, "we");
	_cleanup_fclose_ FILE *ours = fopen(ours_path, "we");

	if (!core || !script || !ours)
		return -errno;
	write_modules(script, modules, space, stack);
	for (size_t i = 0; i < stack->nr; i++)
		fprintf(ours, "@%" PRIx64 "\n", stack->addresses[i]);
	return write_core(core, dump);
}
#else
int dump_core_write(const char *path, const struct module_table *modules,
		    const struct address_space *space, const struct stack_dump *dump,
		    const struct unwound_stack *stack)
{
	return -ENOTSUP;
}
#endif
