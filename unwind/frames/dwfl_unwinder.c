/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/dwfl_unwinder.h"

#include "common/elf/elf_section.h"
#include "common/scope.h"
#include "unwind/frames/cfi_guard.h"
#include "unwind/frames/dump_registers.h"
#include "unwind/frames/reported_modules.h"
#include "unwind/frames/safe_row.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GUARDS 16

/* The guard of one of the tables that are in use. */
struct used_guard {
	Dwarf_CFI *cfi; /* NULL: free */
	struct cfi_guard guard;
};

/* The Dwfl of an address space, and the sample that is being unwound with it. */
struct space_dwfl {
	uint64_t space_id, generation;
	uint64_t last_use;
	uint16_t machine;
	Dwfl *dwfl;
	bool attached; /* false: no module to unwind with */
	struct reported_modules modules;
	uint64_t window;     /* in which these were reported: owner_time.h */
	uint64_t kept_bytes; /* by libdw, of files that are not root's */
	struct used_guard guards[MAX_GUARDS];
	size_t next_guard; /* is replaced next */

	const struct address_space *space;
	struct dwfl_unwinder *unwinder;
	const struct stack_dump *dump;
	const struct dump_registers *registers;
	struct unwound_stack *stack;
	const struct module *timed; /* of the frame, whose time is spent; NULL: none */
	bool read_failed;	    /* since the last frame */
	bool read_past_end;	    /* past the end of the dump, since the last frame */
};

void dwfl_unwinder_init(struct dwfl_unwinder *unwinder, struct module_table *modules,
			struct debuginfo *debuginfo, struct owner_time *time)
{
	*unwinder =
		(struct dwfl_unwinder){.modules = modules, .debuginfo = debuginfo, .time = time};
}

static void keep(struct space_dwfl *space_dwfl, uint64_t bytes)
{
	space_dwfl->kept_bytes += bytes;
	space_dwfl->unwinder->kept_bytes += bytes;
}

static void space_dwfl_destroy(struct space_dwfl *space_dwfl)
{
	if (!space_dwfl)
		return;
	space_dwfl->unwinder->kept_bytes -= space_dwfl->kept_bytes;
	dwfl_end(space_dwfl->dwfl);
	reported_modules_deinit(&space_dwfl->modules);
	free(space_dwfl);
}

/* The thread is the sample's. Its number means nothing here. */
static pid_t next_thread(Dwfl *dwfl, void *context, void **thread_context)
{
	if (*thread_context)
		return 0;
	*thread_context = context;
	return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread_context)
{
	*thread_context = context;
	return true;
}

/*
 * Reads memory that the process cannot have changed: a segment of the file that is mapped
 * read-only.
 */
static bool read_from_module(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, address);
	GElf_Addr bias;
	Elf *elf = module ? dwfl_module_getelf(module, &bias) : NULL;
	size_t file_size, nr_headers;
	const char *file = elf ? elf_rawfile(elf, &file_size) : NULL;

	if (!file || elf_getphdrnum(elf, &nr_headers))
		return false;
	for (size_t i = 0; i < nr_headers; i++) {
		uint64_t vaddr = address - bias, offset;
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD ||
		    (phdr.p_flags & PF_W) || vaddr < phdr.p_vaddr || phdr.p_filesz < sizeof(*ret) ||
		    vaddr - phdr.p_vaddr > phdr.p_filesz - sizeof(*ret))
			continue;
		offset = vaddr - phdr.p_vaddr + phdr.p_offset;
		if (offset < phdr.p_offset || file_size < sizeof(*ret) ||
		    offset > file_size - sizeof(*ret) ||
		    !elf_section_has_bytes(elf, offset, sizeof(*ret)))
			return false;
		memcpy(ret, file + offset, sizeof(*ret));
		return true;
	}
	return false;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *context)
{
	struct space_dwfl *space_dwfl = context;

	if (!dump_read_u64(space_dwfl->dump, space_dwfl->registers->sp, address, ret) ||
	    read_from_module(dwfl, address, ret))
		return true;
	space_dwfl->read_failed = true;
	if (dump_ends_before(space_dwfl->dump, space_dwfl->registers->sp, address))
		space_dwfl->read_past_end = true;
	return false;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	const struct space_dwfl *space_dwfl = context;
	const struct dump_registers *registers = space_dwfl->registers;

	/* Redundant where the pc has a DWARF number (x86-64). */
	dwfl_thread_state_register_pc(thread, registers->pc);
	return dwfl_thread_state_registers(thread, 0, registers->nr_dwarf, registers->dwarf);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		    void *context)
{
	GElf_Addr bias;
	Elf **elf = context;

	*elf = dwfl_module_getelf(module, &bias);
	return *elf ? DWARF_CB_ABORT : DWARF_CB_OK;
}

static int space_dwfl_create(struct dwfl_unwinder *unwinder, const struct address_space *space,
			     uint16_t machine, struct space_dwfl **ret)
{
	struct space_dwfl *space_dwfl = calloc(1, sizeof(*space_dwfl));
	struct module_reporter reporter = {
		.modules = unwinder->modules,
		.debuginfo = unwinder->debuginfo,
		.time = unwinder->time,
		.machine = machine,
		.kept_bytes = unwinder->kept_bytes,
	};
	Elf *elf = NULL;

	if (!space_dwfl)
		return -ENOMEM;
	space_dwfl->space_id = space->id;
	space_dwfl->generation = space->generation;
	space_dwfl->machine = machine;
	space_dwfl->unwinder = unwinder;
	space_dwfl->window = owner_time_window(unwinder->time);
	space_dwfl->dwfl = dwfl_begin(&unwinder->debuginfo->callbacks);
	reporter.dwfl = space_dwfl->dwfl;
	if (!space_dwfl->dwfl || reported_modules_init(&space_dwfl->modules, &reporter, space)) {
		space_dwfl_destroy(space_dwfl);
		return -ENOMEM;
	}
	keep(space_dwfl, reporter.kept_bytes - unwinder->kept_bytes);

	dwfl_getmodules(space_dwfl->dwfl, find_elf, &elf, 0);
	space_dwfl->attached =
		elf && dwfl_attach_state(space_dwfl->dwfl, elf, 1, &thread_callbacks, space_dwfl);
	*ret = space_dwfl;
	return 0;
}

/* Of users: those whose files are not all root's. */
static void forget_spaces(struct dwfl_unwinder *unwinder, bool of_users)
{
	for (size_t i = 0; i < DWFL_UNWINDER_MAX_SPACES; i++) {
		struct space_dwfl **slot = &unwinder->spaces[i];

		if (!*slot || (of_users && !(*slot)->kept_bytes))
			continue;
		space_dwfl_destroy(*slot);
		*slot = NULL;
	}
}

static bool is_of(const struct space_dwfl *space_dwfl, const struct address_space *space,
		  uint16_t machine)
{
	return space_dwfl && space_dwfl->space_id == space->id && space_dwfl->machine == machine;
}

/* *@ret is NULL if there is no time. */
static int get_space_dwfl(struct dwfl_unwinder *unwinder, const struct address_space *space,
			  uint16_t machine, struct space_dwfl **ret)
{
	struct space_dwfl **slot = &unwinder->spaces[0];
	int err;

	*ret = NULL;
	if (debuginfo_must_close(unwinder->debuginfo, unwinder->kept_bytes,
				 &unwinder->copies_epoch))
		forget_spaces(unwinder, true);
	for (size_t i = 0; i < DWFL_UNWINDER_MAX_SPACES; i++) {
		struct space_dwfl **other = &unwinder->spaces[i];

		if (is_of(*other, space, machine)) {
			slot = other;
			break;
		}
		if (*slot && (!*other || (*other)->last_use < (*slot)->last_use))
			slot = other;
	}

	if (!is_of(*slot, space, machine) || (*slot)->generation != space->generation ||
	    ((*slot)->modules.are_late && (*slot)->window != owner_time_window(unwinder->time))) {
		if (!owner_time_begin_opening(unwinder->time))
			return 0;
		space_dwfl_destroy(*slot);
		*slot = NULL;
		err = space_dwfl_create(unwinder, space, machine, slot);
		owner_time_end(unwinder->time);
		if (err)
			return err;
	}
	(*slot)->last_use = ++unwinder->clock;
	*ret = *slot;
	return 0;
}

static struct cfi_guard *get_guard(struct space_dwfl *space_dwfl, Dwfl_Module *module,
				   Dwarf_CFI *cfi, bool is_eh)
{
	struct used_guard *used;
	Dwarf_Addr bias;

	for (size_t i = 0; i < MAX_GUARDS; i++)
		if (space_dwfl->guards[i].cfi == cfi)
			return &space_dwfl->guards[i].guard;
	used = &space_dwfl->guards[space_dwfl->next_guard++ % MAX_GUARDS];
	used->cfi = cfi;
	if (is_eh)
		cfi_guard_init_eh(&used->guard, dwfl_module_getelf(module, &bias));
	else
		cfi_guard_init_debug(&used->guard, dwfl_module_getdwarf(module, &bias));
	return &used->guard;
}

/* Counts what libdw keeps of files that are not root's, after it was asked for @dwfl_module's. */
static void keep_others(struct space_dwfl *space_dwfl, const Dwfl_Module *dwfl_module,
			uint64_t bytes)
{
	uint64_t others = debuginfo_take_others_bytes(space_dwfl->unwinder->debuginfo);
	struct module *module = reported_modules_find(&space_dwfl->modules, dwfl_module);

	if (others && module)
		module_lend(module);
	keep(space_dwfl, module && module->owner != 0 ? others + bytes : others);
}

enum row { ROW_NONE, ROW_SAFE, ROW_UNSAFE };

/* Looks at the row for @pc in one of the module's tables. */
static enum row look_at_row(struct space_dwfl *space_dwfl, Dwfl_Module *module, Dwarf_Addr pc,
			    bool is_eh)
{
	Dwarf_Addr bias = 0;
	Dwarf_CFI *cfi =
		is_eh ? dwfl_module_eh_cfi(module, &bias) : dwfl_module_dwarf_cfi(module, &bias);
	Dwarf_Frame *row = NULL;
	struct cfi_guard *guard;
	bool is_safe;

	keep_others(space_dwfl, module, 0);
	if (!cfi)
		return ROW_NONE;
	guard = get_guard(space_dwfl, module, cfi, is_eh);
	is_safe = cfi_guard_allows(guard, pc - bias);
	keep_others(space_dwfl, module, guard->kept_bytes);
	guard->kept_bytes = 0;
	if (!is_safe)
		return ROW_UNSAFE;
	if (dwarf_cfi_addrframe(cfi, pc - bias, &row))
		return ROW_NONE;
	is_safe = safe_row(row);
	free(row);
	return is_safe ? ROW_SAFE : ROW_UNSAFE;
}

/* Lets libdwfl look for the module's debug file. Returns false if there is no time or no room. */
static bool search(struct space_dwfl *space_dwfl, Dwfl_Module *module)
{
	struct dwfl_unwinder *unwinder = space_dwfl->unwinder;
	Dwarf_Addr bias;

	if (debuginfo_is_searched(module))
		return true;
	if (!debuginfo_has_room(unwinder->debuginfo, unwinder->kept_bytes) ||
	    !owner_time_begin_search(unwinder->time))
		return false;
	dwfl_module_dwarf_cfi(module, &bias);
	debuginfo_end_search(module);
	keep_others(space_dwfl, module, 0);
	return !space_dwfl->timed || owner_time_begin(unwinder->time, space_dwfl->timed);
}

/* True if libdw or libdwfl cannot be trusted with what the module has for @pc. */
static bool is_unsafe_in(struct space_dwfl *space_dwfl, Dwfl_Module *module, Dwarf_Addr pc)
{
	enum row row = look_at_row(space_dwfl, module, pc, true);
	GElf_Addr bias;

	/* With a row of .eh_frame, libdwfl does not look for another one. */
	if (row != ROW_NONE)
		return row == ROW_UNSAFE;
	return !cfi_guard_allows_debug(dwfl_module_getelf(module, &bias)) ||
	       !search(space_dwfl, module) ||
	       look_at_row(space_dwfl, module, pc, false) == ROW_UNSAFE;
}

/*
 * libdwfl looks up a return address one byte before it. Whether @pc is one is not known yet, so
 * both are checked.
 */
static bool is_unsafe(struct space_dwfl *space_dwfl, Dwarf_Addr pc)
{
	for (int before = 0; before < 2; before++) {
		Dwarf_Addr at = pc - (Dwarf_Addr)before;
		Dwfl_Module *module = dwfl_addrmodule(space_dwfl->dwfl, at);

		if (module && is_unsafe_in(space_dwfl, module, at))
			return true;
	}
	return false;
}

/* The module that libdwfl reads, or else the one that is mapped. NULL: none. */
static const struct module *module_at(const struct space_dwfl *space_dwfl, Dwarf_Addr at)
{
	const Dwfl_Module *read = dwfl_addrmodule(space_dwfl->dwfl, at);
	const struct mapping *mapping = read ? NULL : address_space_find(space_dwfl->space, at);

	if (read)
		return reported_modules_find(&space_dwfl->modules, read);
	return mapping ? mapping->module : NULL;
}

/* The one of the modules for @pc and before it that takes the time. NULL: none. */
static const struct module *find_module(const struct space_dwfl *space_dwfl, Dwarf_Addr pc)
{
	const struct module *at = module_at(space_dwfl, pc);
	const struct module *before = module_at(space_dwfl, pc - 1);

	return before && (!at || at->owner == 0) ? before : at;
}

/* A stack may need more of users' files than there is room for. The next one begins without any. */
static bool has_room(const struct dwfl_unwinder *unwinder, const struct module *module)
{
	return !module || module->owner == 0 ||
	       debuginfo_has_room(unwinder->debuginfo, unwinder->kept_bytes);
}

static int add_frame(Dwfl_Frame *frame, void *context)
{
	struct space_dwfl *space_dwfl = context;
	struct unwound_stack *stack = space_dwfl->stack;
	struct dwfl_unwinder *unwinder = space_dwfl->unwinder;
	bool is_activation, has_time, is_last, is_good;
	Dwarf_Addr pc;

	/* dwfl_frame_pc() unwinds one frame ahead, to see whether that is a signal's. */
	space_dwfl->read_failed = space_dwfl->read_past_end = false;
	if (stack->nr == STACK_MAX_FRAMES || !dwfl_frame_pc(frame, &pc, NULL))
		return DWARF_CB_ABORT;
	space_dwfl->timed = find_module(space_dwfl, pc);
	has_time = !space_dwfl->timed || owner_time_begin(unwinder->time, space_dwfl->timed);
	is_last = !has_time || !has_room(unwinder, space_dwfl->timed) || is_unsafe(space_dwfl, pc);
	is_good = is_last || dwfl_frame_pc(frame, &pc, &is_activation);
	owner_time_end(unwinder->time);
	if (!is_good)
		return DWARF_CB_ABORT;
	stack->addresses[stack->nr] = pc;
	if (is_last) {
		stack->is_call[stack->nr] = stack->nr > 0;
		stack->nr++;
		return DWARF_CB_ABORT;
	}
	stack->is_call[stack->nr] = !is_activation;
	stack->nr++;
	return DWARF_CB_OK;
}

/*
 * libdwfl takes an unreadable return address for an undefined one, as in _start (elfutils 0.188,
 * libdwfl/frame_unwind.c, handle_cfi()). In that case the dump has ended, not the stack.
 */
static void unwind_in(struct space_dwfl *space_dwfl, const struct stack_dump *dump,
		      const struct dump_registers *registers, struct unwound_stack *ret)
{
	space_dwfl->dump = dump;
	space_dwfl->registers = registers;
	space_dwfl->stack = ret;
	ret->complete = dwfl_getthread_frames(space_dwfl->dwfl, 1, add_frame, space_dwfl) == 0 &&
			!space_dwfl->read_failed;
	ret->truncated = !ret->complete && space_dwfl->read_past_end;
}

static int dwfl_unwinder_unwind(void *self, const struct address_space *space,
				const struct stack_dump *dump, struct unwound_stack *ret)
{
	struct dwfl_unwinder *unwinder = self;
	struct dump_registers registers = {0};
	struct space_dwfl *space_dwfl;

	ret->nr = 0;
	ret->complete = ret->truncated = false;
	ret->top = 0;
	if (dump_registers_decode(dump, &registers))
		return 0;

	if (space) {
		int err = get_space_dwfl(unwinder, space, registers.machine, &space_dwfl);

		if (err)
			return err;
		if (space_dwfl && space_dwfl->attached) {
			space_dwfl->space = space;
			unwind_in(space_dwfl, dump, &registers, ret);
		}
	}
	if (!ret->nr) {
		/* Unwinding cannot start, but the instruction pointer is known. */
		ret->addresses[0] = registers.pc;
		ret->is_call[0] = false;
		ret->nr = 1;
	}
	return 0;
}

static void dwfl_unwinder_deinit(void *self)
{
	forget_spaces(self, false);
}

const struct unwinder_ops dwfl_unwinder_ops = {
	.unwind = dwfl_unwinder_unwind,
	.deinit = dwfl_unwinder_deinit,
};
