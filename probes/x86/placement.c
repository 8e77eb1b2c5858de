/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/x86/placement.h"

#include "probes/x86/code_flow.h"

#include <sys/utsname.h>

#define MAX_KEPT_REGISTERS 7

/* What the instructions before a probe must preserve. */
struct kept_state {
	ZydisRegister registers[MAX_KEPT_REGISTERS]; /* 64-bit registers; writing a part counts */
	int nr_registers;
};

struct placement_kernel placement_kernel_running(void)
{
	struct placement_kernel kernel = {0};
	struct utsname name;
	int major, minor;

	/*
	 * The version decides. Trying the trampoline's system call would not do: seccomp may kill
	 * for it.
	 */
	if (uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2) {
		kernel.emulates_long_nops = major > 6 || (major == 6 && minor >= 18);
		kernel.emulates_pause = major < 6 || (major == 6 && minor < 19);
	}
	return kernel;
}

/* The forms of x86_nops[] in the kernel's arch/x86/kernel/alternative.c (6.18), by length. */
static bool is_kernel_nop(const uint8_t *code, size_t length)
{
	static const uint8_t nops[][8] = {
		[3] = {0x0f, 0x1f, 0x00},	[4] = {0x0f, 0x1f, 0x40}, [5] = {0x0f, 0x1f, 0x44},
		[6] = {0x66, 0x0f, 0x1f, 0x44}, [7] = {0x0f, 0x1f, 0x80}, [8] = {0x0f, 0x1f, 0x84},
	};

	return length >= 3 && length <= 8 && memcmp(code, nops[length], length) == 0;
}

/*
 * True if a kernel may make a call of the instruction: 6.18 and later do with nops of 5 bytes, or
 * newer ones with nops of 10. That call can kill the process and its children (docs/placement.md).
 * What is a nop differs between kernels; this is what any takes for one: can_optimize() in
 * arch/x86/kernel/uprobes.c (6.18), insn_is_nop() in arch/x86/lib/insn-eval.c (6.19). The running
 * kernel does not decide: the sandbox does not know it, and distributions port such changes.
 */
static bool may_become_call(const struct instruction *instruction)
{
	const ZydisDecodedInstruction *info = &instruction->info;
	const ZydisDecodedOperand *to = &instruction->operands[0], *from = to + 1;

	if (info->length != 5 && info->length != 10)
		return false;
	switch (info->mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_PAUSE:
		return true;
	case ZYDIS_MNEMONIC_JMP:
		return to->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && to->imm.value.s == 0;
	case ZYDIS_MNEMONIC_MOV:
		return from->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       to->type == ZYDIS_OPERAND_TYPE_REGISTER && from->reg.value == to->reg.value;
	case ZYDIS_MNEMONIC_LEA:
		return from->mem.base == to->reg.value && from->mem.index == ZYDIS_REGISTER_NONE &&
		       from->mem.disp.value == 0;
	default:
		return false;
	}
}

/* branch_setup_xol_ops() in the kernel's arch/x86/kernel/uprobes.c (6.1) */
static bool is_emulated_branch(const ZydisDecodedInstruction *info,
			       const struct placement_kernel *kernel)
{
	bool is_one_byte = info->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
	bool is_two_byte = info->opcode_map == ZYDIS_OPCODE_MAP_0F;
	uint8_t opcode = info->opcode;

	if (is_one_byte && opcode == 0x90) /* with any prefix; REX.B makes it an xchg */
		return info->mnemonic == ZYDIS_MNEMONIC_NOP ||
		       (info->mnemonic == ZYDIS_MNEMONIC_PAUSE && kernel->emulates_pause);
	if (info->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE)
		return false;
	return (is_one_byte && (opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb ||
				(opcode >= 0x70 && opcode <= 0x7f))) ||
	       (is_two_byte && opcode >= 0x80 && opcode <= 0x8f);
}

/* push_setup_xol_ops() there: of a register, without a prefix or with REX.B alone */
static bool is_emulated_push(const ZydisDecodedInstruction *info, const uint8_t *code)
{
	return info->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && info->opcode >= 0x50 &&
	       info->opcode <= 0x57 &&
	       (info->length == 1 || (info->length == 2 && code[0] == 0x41));
}

/*
 * is_prefix_bad() there: segment overrides, branch hints and lock. The kernel also refuses what no
 * allocator's function begins with, such as `out`; then attaching fails. It does not refuse
 * `xchg %r8,%rax`, but before 6.19 it takes that for a nop, and the program goes on with wrong
 * registers.
 */
static bool is_refused(const struct instruction *instruction)
{
	if (instruction->info.mnemonic == ZYDIS_MNEMONIC_XCHG && instruction->info.opcode == 0x90)
		return true;
	for (int i = 0; i < instruction->info.raw.prefix_count; i++)
		if (strchr("\x26\x2e\x36\x3e\xf0", instruction->info.raw.prefixes[i].value))
			return true;
	return false;
}

enum placement_class placement_classify(const struct instruction *instruction, const uint8_t *code,
					const struct placement_kernel *kernel)
{
	const ZydisDecodedInstruction *info = &instruction->info;

	if (is_refused(instruction) || may_become_call(instruction))
		return PLACEMENT_REFUSED;
	if (info->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return PLACEMENT_STEPPED;
	if ((kernel->emulates_long_nops && is_kernel_nop(code, info->length)) ||
	    is_emulated_branch(info, kernel) || is_emulated_push(info, code))
		return PLACEMENT_EMULATED;
	return PLACEMENT_STEPPED;
}

static ZydisRegister whole_register(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

/* Every instruction that may not go straight on, system calls included, writes RIP. */
static bool may_write(ZydisRegister reg, const struct kept_state *kept)
{
	for (int i = 0; i < kept->nr_registers; i++)
		if (whole_register(reg) == kept->registers[i])
			return false;
	return reg != ZYDIS_REGISTER_RIP;
}

/* True if the operand is relative to %rsp, where the return address is. */
static bool is_on_stack(const ZydisDecodedOperand *operand)
{
	return whole_register(operand->mem.base) == ZYDIS_REGISTER_RSP;
}

/* True if a probe may follow @instruction, which goes straight on and preserves @kept. */
static bool may_precede(const struct instruction *instruction, const struct kept_state *kept)
{
	for (int i = 0; i < instruction->info.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (!(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    !may_write(operand->reg.value, kept))
			return false;
		if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY && is_on_stack(operand))
			return false;
	}
	return true;
}

/*
 * The first emulated instruction to which only a straight path from @start leads. Otherwise @start,
 * or if that is refused, the first on that path that is not.
 */
static uint64_t find_cheap(const struct code_flow *flow, uint64_t start,
			   const struct kept_state *kept, const struct placement_kernel *kernel)
{
	struct instruction instruction;
	uint64_t first = start;
	bool has_first = false;

	for (uint64_t offset = start; code_flow_decode(flow, offset, &instruction);
	     offset += instruction.info.length) {
		enum placement_class class =
			placement_classify(&instruction, flow->code + offset, kernel);

		if (offset > start &&
		    (!flow->is_complete || code_flow_has_target(flow, start + 1, offset)))
			break;
		if (class == PLACEMENT_EMULATED)
			return offset;
		if (!has_first && class != PLACEMENT_REFUSED) {
			first = offset;
			has_first = true;
		}
		if (!may_precede(&instruction, kept))
			break;
	}
	return first;
}

int placement_find_entry(const uint8_t *code, size_t size_bytes, int nr_args,
			 const struct placement_kernel *kernel, uint64_t *ret_offset)
{
	/* The arguments' registers: System V psABI for x86-64, 3.2.3 */
	static const ZydisRegister arguments[] = {
		ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
		ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8,	ZYDIS_REGISTER_R9,
	};
	struct kept_state kept = {.registers = {ZYDIS_REGISTER_RSP}, .nr_registers = 1};
	struct code_flow flow;
	int err = code_flow_init(&flow, code, size_bytes);

	*ret_offset = 0;
	if (err)
		return err;
	for (int i = 0; i < nr_args && i < 6; i++)
		kept.registers[kept.nr_registers++] = arguments[i];
	*ret_offset = find_cheap(&flow, 0, &kept, kernel);
	code_flow_deinit(&flow);
	return 0;
}

int placement_find_store(const uint8_t *code, size_t size_bytes, uint64_t store_offset,
			 const struct placement_kernel *kernel, uint64_t *ret_offset)
{
	struct kept_state kept = {.nr_registers = 2};
	struct instruction store;
	struct code_flow flow;
	int err = code_flow_init(&flow, code, size_bytes);

	*ret_offset = store_offset;
	if (err)
		return err;
	if (code_flow_decode(&flow, store_offset, &store) &&
	    store.operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    store.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		kept.registers[0] = whole_register(store.operands[0].mem.base);
		kept.registers[1] = whole_register(store.operands[1].reg.value);
		*ret_offset = find_cheap(&flow, store_offset, &kept, kernel);
	}
	code_flow_deinit(&flow);
	return 0;
}

void placement_describe(const uint8_t *code, size_t size_bytes,
			const struct placement_kernel *kernel, struct placement_instruction *ret)
{
	struct instruction instruction;
	ZydisFormatter formatter;

	*ret = (struct placement_instruction){.class = PLACEMENT_UNKNOWN, .text = "?"};
	if (!instruction_decode(&instruction, code, size_bytes))
		return;
	ret->class = placement_classify(&instruction, code, kernel);
	if (ZYAN_FAILED(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT)) ||
	    ZYAN_FAILED(ZydisFormatterFormatInstruction(
		    &formatter, &instruction.info, instruction.operands,
		    instruction.info.operand_count_visible, ret->text, sizeof(ret->text),
		    ZYDIS_RUNTIME_ADDRESS_NONE, NULL)))
		snprintf(ret->text, sizeof(ret->text), "?");
}
