/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/cfi_rules.h"

#include "common/elf/elf_section.h"
#include "common/scope.h"
#include "unwind/frames/cfi_guard.h"
#include "unwind/frames/first_function.h"
#include "unwind/modules/module_file.h"
#include "unwind/modules/module_segments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

#define VDSO_NAME     "[vdso]"
#define VDSO_MAX_SIZE (1u << 16)
#define MIN_PLACES    1024

/* An instruction and its rule. */
struct cfi_entry {
	uint64_t file_offset;
	uint32_t module_id; /* MODULE_NONE: free */
	const struct cfi_rule *rule;
};

struct cfi_known_rule {
	struct cfi_rule rule;
	UT_hash_handle hh;
};

/* A module's call frame information, by ELF addresses. */
struct module_cfi {
	Dwfl *dwfl; /* holds only the module; NULL: the file was not found, or it is the vdso */
	Dwfl_Module *module;
	struct cfi_guard eh_guard, debug_guard;
	bool has_eh_guard, has_debug_guard;
	Elf *vdso;
	Dwarf_CFI *vdso_cfi;
	uint64_t switch_begin, switch_end; /* of runtime.asmcgocall(); equal: there is none */
	struct exit_functions exits;
};

_Static_assert(sizeof(struct cfi_saved) == 8, "cfi_saved has padding");
_Static_assert(sizeof(struct cfi_rule) == 32 + CFI_NR_REGISTERS * sizeof(struct cfi_saved),
	       "cfi_rule has padding");

void cfi_rules_init(struct cfi_rules *rules, struct module_table *modules,
		    struct debuginfo *debuginfo, bool own_vdso)
{
	*rules = (struct cfi_rules){
		.modules = modules, .debuginfo = debuginfo, .own_vdso = own_vdso};
	if (getrandom(&rules->seed, sizeof(rules->seed), GRND_NONBLOCK) < 0)
		rules->seed = (uintptr_t)rules; /* no random numbers during early boot */
}

static void module_cfi_destroy(struct module_cfi *cfi)
{
	if (!cfi)
		return;
	if (cfi->vdso_cfi)
		dwarf_cfi_end(cfi->vdso_cfi);
	elf_end(cfi->vdso);
	dwfl_end(cfi->dwfl);
	free(cfi);
}

static void forget(struct cfi_rules *rules)
{
	struct cfi_known_rule *known, *next;

	HASH_ITER (hh, rules->known, known, next) {
		HASH_DELETE(hh, rules->known, known);
		free(known);
	}
	free(rules->entries);
	rules->entries = NULL;
	rules->nr_entries = rules->capacity = 0;
	rules->epoch++;
}

void cfi_rules_deinit(struct cfi_rules *rules)
{
	forget(rules);
	for (size_t i = 0; i < rules->nr_modules; i++)
		module_cfi_destroy(rules->by_module[i]);
	free(rules->by_module);
}

/* Reports the module's file to libdwfl, at bias 0. A file that libdwfl rejects has no CFI. */
static int load_file(struct cfi_rules *rules, struct module *module, struct module_cfi *cfi)
{
	_cleanup_close_ int fd = module_open_file(rules->modules, module);

	if (fd < 0 || module->elf_class != ELFCLASS64 ||
	    (module->machine != EM_X86_64 && module->machine != EM_AARCH64))
		return 0;
	cfi->dwfl = dwfl_begin(&rules->debuginfo->callbacks);
	if (!cfi->dwfl)
		return -ENOMEM;
	dwfl_report_begin(cfi->dwfl);
	cfi->module = debuginfo_report_elf(rules->debuginfo, cfi->dwfl, module->path,
					   module->file_path, steal_fd(fd), 0);
	dwfl_report_end(cfi->dwfl, NULL, NULL);
	if (module->owner != 0 && cfi->module)
		rules->kept_bytes += debuginfo_kept_bytes(rules->debuginfo, cfi->module);
	return 0;
}

/*
 * The vdso has no file. Our own is the same one if the processes run on this machine. It is one
 * segment, from offset 0 to address 0.
 */
static void load_vdso(struct cfi_rules *rules, struct module_cfi *cfi)
{
#if defined(__x86_64__) || defined(__aarch64__)
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): the auxiliary vector holds integers */
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	size_t size;

	if (!rules->own_vdso || !header)
		return;
	size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	if (size > VDSO_MAX_SIZE)
		return;
	cfi->vdso = elf_memory((char *)header, size);
	cfi->vdso_cfi = cfi->vdso ? dwarf_getcfi_elf(cfi->vdso) : NULL;
#endif
}

/* Only programs that Go's linker made have this function, and the section. */
static bool is_go(Elf *elf)
{
	struct elf_section section = {0};

	while (elf_section_next(elf, &section))
		if (section.name && strcmp(section.name, ".gopclntab") == 0)
			return true;
	return false;
}

/*
 * runtime.asmcgocall() calls C on the thread's own stack. By the CFI its caller is there, too, but
 * that is on the goroutine's (Go 1.19, src/runtime/asm_amd64.s).
 */
static void find_switch(struct module_cfi *cfi)
{
	GElf_Addr bias;
	Elf *elf = cfi->module ? dwfl_module_getelf(cfi->module, &bias) : NULL;
	struct elf_symbol_table table;
	GElf_Sym symbol;

	if (!elf || !is_go(elf) || !elf_symbol_table_find(elf, SHT_SYMTAB, &table))
		return;
	for (size_t i = 0; i < table.nr; i++) {
		const char *name = elf_symbol_table_read(&table, i, &symbol);

		if (!name || (strcmp(name, "runtime.asmcgocall") != 0 &&
			      strcmp(name, "runtime.asmcgocall.abi0") != 0))
			continue;
		cfi->switch_begin = symbol.st_value;
		cfi->switch_end = symbol.st_value + symbol.st_size;
		return;
	}
}

static int get_module_cfi(struct cfi_rules *rules, struct module *module, struct module_cfi **ret)
{
	struct module_cfi **slot;

	if (module->id > rules->nr_modules) {
		size_t nr = rules->modules->nr;
		struct module_cfi **by_module =
			reallocarray(rules->by_module, nr, sizeof(struct module_cfi *));

		if (!by_module)
			return -ENOMEM;
		for (size_t i = rules->nr_modules; i < nr; i++)
			by_module[i] = NULL;
		rules->by_module = by_module;
		rules->nr_modules = nr;
	}

	slot = &rules->by_module[module->id - 1];
	if (!*slot) {
		struct module_cfi *cfi = calloc(1, sizeof(*cfi));
		int err = cfi ? 0 : -ENOMEM;

		if (!err && strcmp(module->path, VDSO_NAME) == 0)
			load_vdso(rules, cfi);
		else if (!err)
			err = load_file(rules, module, cfi);
		if (!err)
			find_switch(cfi);
		if (err) {
			module_cfi_destroy(cfi);
			return err;
		}
		*slot = cfi;
	}
	*ret = *slot;
	return 0;
}

static Dwarf_Frame *find_eh_row(struct module_cfi *cfi, uint64_t vaddr)
{
	GElf_Addr bias, elf_bias;
	Dwarf_CFI *table = dwfl_module_eh_cfi(cfi->module, &bias);
	Dwarf_Frame *row;

	if (table && !cfi->has_eh_guard) {
		cfi_guard_init_eh(&cfi->eh_guard, dwfl_module_getelf(cfi->module, &elf_bias));
		cfi->has_eh_guard = true;
	}
	return table && cfi_guard_allows(&cfi->eh_guard, vaddr - bias) &&
			       dwarf_cfi_addrframe(table, vaddr - bias, &row) == 0
		       ? row
		       : NULL;
}

/* From then on, the module takes others' time if it has a debug file of theirs. */
static void keep_others(struct cfi_rules *rules, struct module *module)
{
	uint64_t others = debuginfo_take_others_bytes(rules->debuginfo);

	if (others)
		module_lend(module);
	rules->kept_bytes += others;
}

/* Lets libdwfl look for the module's debug file. Returns false if there is no time. */
static bool search(struct cfi_rules *rules, struct module *module, struct module_cfi *cfi)
{
	Dwarf_Addr bias;

	if (debuginfo_is_searched(cfi->module))
		return true;
	rules->is_late = !owner_time_begin_search(&rules->time);
	if (rules->is_late)
		return false;
	dwfl_module_dwarf_cfi(cfi->module, &bias);
	debuginfo_end_search(cfi->module);
	keep_others(rules, module);
	rules->is_late = !owner_time_begin(&rules->time, module);
	return !rules->is_late;
}

static Dwarf_Frame *find_debug_row(struct cfi_rules *rules, struct module *module,
				   struct module_cfi *cfi, uint64_t vaddr)
{
	Dwarf_Addr bias, dwarf_bias;
	Dwarf_Frame *row;
	Dwarf_CFI *table;

	if (!cfi_guard_allows_debug(dwfl_module_getelf(cfi->module, &bias)) ||
	    !search(rules, module, cfi))
		return NULL;
	table = dwfl_module_dwarf_cfi(cfi->module, &bias);
	if (table && !cfi->has_debug_guard) {
		cfi_guard_init_debug(&cfi->debug_guard,
				     dwfl_module_getdwarf(cfi->module, &dwarf_bias));
		cfi->has_debug_guard = true;
	}
	return table && cfi_guard_allows(&cfi->debug_guard, vaddr - bias) &&
			       dwarf_cfi_addrframe(table, vaddr - bias, &row) == 0
		       ? row
		       : NULL;
}

static uint64_t kept_bytes(const struct module_cfi *cfi)
{
	return cfi->eh_guard.kept_bytes + cfi->debug_guard.kept_bytes;
}

static void close_others_files(struct cfi_rules *rules)
{
	for (size_t i = 0; i < rules->nr_modules; i++) {
		if (module_table_by_id(rules->modules, (uint32_t)i + 1)->owner == 0)
			continue;
		module_cfi_destroy(rules->by_module[i]);
		rules->by_module[i] = NULL;
	}
	rules->kept_bytes = 0;
}

/* Finds elfutils' row for @vaddr, which the caller frees. NULL: none. */
static Dwarf_Frame *find_row(struct cfi_rules *rules, struct module *module, struct module_cfi *cfi,
			     uint64_t vaddr)
{
	Dwarf_Frame *row;

	if (cfi->vdso_cfi)
		return dwarf_cfi_addrframe(cfi->vdso_cfi, vaddr, &row) ? NULL : row;
	if (!cfi->module)
		return NULL;
	row = find_eh_row(cfi, vaddr);
	return row ? row : find_debug_row(rules, module, cfi, vaddr);
}

/* The vdso, which has no file, is our own. */
static bool is_arm64(const struct module_cfi *cfi, const struct module *module)
{
#if defined(__aarch64__)
	if (cfi->vdso)
		return true;
#endif
	return module->machine == EM_AARCH64;
}

/* True if the instruction is the call of a program's or a thread's first function. */
static bool is_first_call(struct module_cfi *cfi, uint64_t file_offset, uint64_t vaddr)
{
	GElf_Addr bias;
	Elf *elf = cfi->module ? dwfl_module_getelf(cfi->module, &bias) : NULL;

	/* @file_offset is that of the call's last byte. */
	return elf && first_function_returns_to(elf, &cfi->exits, file_offset + 1, vaddr + 1);
}

static int read_rule(struct cfi_rules *rules, struct module *module, uint64_t file_offset,
		     struct cfi_rule *ret)
{
	struct module_cfi *cfi;
	uint64_t vaddr = file_offset, kept_before;
	int err;

	if (debuginfo_must_close(rules->debuginfo, rules->kept_bytes, &rules->copies_epoch))
		close_others_files(rules);
	err = get_module_cfi(rules, module, &cfi);
	memset(ret, 0, sizeof(*ret));
	ret->kind = CFI_ABSENT;
	if (err || (!cfi->vdso_cfi && !module_vaddr(module, file_offset, &vaddr)))
		return err;

	if (vaddr >= cfi->switch_begin && vaddr < cfi->switch_end) {
		ret->kind = CFI_ELSEWHERE;
		return 0;
	}

	kept_before = kept_bytes(cfi);
	_cleanup_free_ Dwarf_Frame *row = find_row(rules, module, cfi, vaddr);
	if (module->owner != 0)
		rules->kept_bytes += kept_bytes(cfi) - kept_before;
	if (row && is_arm64(cfi, module))
		cfi_rule_read_arm64(row, ret);
	else if (row)
		cfi_rule_read(row, ret);
	else if (is_first_call(cfi, file_offset, vaddr))
		ret->kind = CFI_OUTERMOST;
	return 0;
}

/* Returns the only stored copy of @rule. NULL: out of memory. */
static const struct cfi_rule *intern(struct cfi_rules *rules, const struct cfi_rule *rule)
{
	uint64_t words[sizeof(*rule) / sizeof(uint64_t)];
	struct cfi_known_rule *known;
	unsigned int hash;

	memcpy(words, rule, sizeof(words));
	hash = (unsigned int)hash_words(words, ARRAY_SIZE(words), rules->seed);
	HASH_FIND_BYHASHVALUE(hh, rules->known, rule, sizeof(*rule), hash, known);
	if (known)
		return &known->rule;
	known = calloc(1, sizeof(*known));
	if (!known)
		return NULL;
	memcpy(&known->rule, rule, sizeof(*rule));
	HASH_ADD_BYHASHVALUE(hh, rules->known, rule, sizeof(known->rule), hash, known);
	if (!hash_added(known)) {
		free(known);
		return NULL;
	}
	return &known->rule;
}

/* Returns the slot of the instruction, or the free slot where it belongs. */
static struct cfi_entry *find_slot(const struct cfi_rules *rules, struct cfi_entry *entries,
				   size_t capacity, uint32_t module_id, uint64_t file_offset)
{
	uint64_t hash = hash_mix(file_offset ^ rules->seed, module_id ^ 0xd6e8feb86659fd93);

	for (size_t i = hash;; i++) {
		struct cfi_entry *entry = &entries[i & (capacity - 1)];

		if (entry->module_id == MODULE_NONE ||
		    (entry->module_id == module_id && entry->file_offset == file_offset))
			return entry;
	}
}

/* Makes room for one more instruction; at most half of the slots are in use. */
static int grow(struct cfi_rules *rules)
{
	size_t capacity = rules->capacity ? 2 * rules->capacity : MIN_PLACES;
	struct cfi_entry *entries;

	if (rules->nr_entries < rules->capacity / 2)
		return 0;
	entries = calloc(capacity, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < rules->capacity; i++) {
		const struct cfi_entry *old = &rules->entries[i];

		if (old->module_id != MODULE_NONE)
			*find_slot(rules, entries, capacity, old->module_id, old->file_offset) =
				*old;
	}
	free(rules->entries);
	rules->entries = entries;
	rules->capacity = capacity;
	return 0;
}

/* Returns false if there is no time to read a rule of the file. */
static bool begin(struct cfi_rules *rules, struct module *module)
{
	if (module->state == MODULE_UNTRIED && module->has_file) {
		if (!owner_time_begin_opening(&rules->time))
			return false;
		module_find_file(rules->modules, module);
	}
	return owner_time_begin(&rules->time, module);
}

int cfi_rules_find(struct cfi_rules *rules, struct module *module, uint64_t file_offset,
		   const struct cfi_rule **ret)
{
	static const struct cfi_rule absent = {.kind = CFI_ABSENT};
	struct cfi_entry *entry;
	struct cfi_rule rule;
	int err;

	rules->is_late = false;
	if (rules->nr_entries >= CFI_MAX_ENTRIES || HASH_COUNT(rules->known) >= CFI_MAX_RULES)
		forget(rules);
	err = grow(rules);
	if (err)
		return err;
	entry = find_slot(rules, rules->entries, rules->capacity, module->id, file_offset);
	if (entry->module_id == MODULE_NONE) {
		rules->is_late = !begin(rules, module);
		if (rules->is_late) {
			*ret = &absent;
			return 0;
		}
		err = read_rule(rules, module, file_offset, &rule);
		owner_time_end(&rules->time);
		if (err)
			return err;
		if (rules->is_late) {
			*ret = &absent;
			return 0;
		}
		entry->rule = intern(rules, &rule);
		if (!entry->rule)
			return -ENOMEM;
		entry->module_id = module->id;
		entry->file_offset = file_offset;
		rules->nr_entries++;
	}
	*ret = entry->rule;
	return 0;
}
