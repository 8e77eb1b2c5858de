/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns call frame information (CFI) into small rules. elfutils reads a module's .eh_frame or
 * .debug_frame. The row for an address becomes a rule that takes a few loads to apply, and the rule
 * is cached by module and address. Nearly all rows of all programs are one of a few hundred rules,
 * so equal rules are stored once.
 *
 * A rule of x86-64 (rule_walk.h) may use all of struct cfi_rule. One of AArch64 (arm64_unwinder.h)
 * has only a CFA that is a register plus an offset, and registers saved there. Other machines have
 * no rules.
 */
#ifndef LEAKTOOLS_UNWIND_CFI_RULES_H
#define LEAKTOOLS_UNWIND_CFI_RULES_H

#include "unwind/modules/debuginfo.h"
#include "unwind/modules/module.h"
#include "unwind/modules/owner_time.h"

/* DWARF's numbers (System V ABI, AMD64 supplement, figure 3.36): rax to r15, return address. */
#define CFI_NR_REGISTERS   17
#define CFI_FRAME_POINTER  6
#define CFI_STACK_POINTER  7
#define CFI_RETURN_ADDRESS 16

/* Of AArch64 (DWARF for the Arm 64-bit Architecture, 4.1), the same as perf's. */
#define ARM64_FP   29
#define ARM64_LINK 30 /* the return address, until the function saves it */
#define ARM64_SP   31

/* Limits of the cache. At either one the cache is emptied, and rules are read again when needed. */
#define CFI_MAX_ENTRIES (1u << 20)
#define CFI_MAX_RULES	(1u << 15)

enum cfi_kind {
	CFI_FRAME,     /* the rest of the rule finds the caller */
	CFI_OUTERMOST, /* no caller: _start, a thread's start */
	CFI_ABSENT,    /* no call frame information */
	CFI_ELSEWHERE, /* the caller is on another stack: Go's runtime.asmcgocall() */
	CFI_COMPLEX,   /* a row that no rule can express */
};

/* How to find the canonical frame address (CFA): the stack pointer before the call. */
enum cfi_cfa {
	CFA_REGISTER, /* register + offset */
	CFA_MEMORY,   /* *(register + offset) + addend: signal frames, realigned stacks */
	CFA_PLT,      /* register + offset + ((pc & 15) >= addend) * 8: lazy PLT entries */
};

/* Where to find the caller's value of a register. */
enum cfi_where {
	SAVED_AT_CFA,	   /* *(CFA + offset) */
	SAVED_AT_REGISTER, /* *(register + offset) */
	VALUE_OF_CFA,	   /* CFA + offset */
	VALUE_OF_REGISTER, /* register + offset */
};

struct cfi_saved {
	uint8_t number; /* the caller's register */
	uint8_t where;	/* enum cfi_where */
	uint8_t base;	/* the callee's register, if @where names one */
	uint8_t unused; /* 0: rules are compared as bytes */
	int32_t offset;
};

/* Compared as bytes: unused parts are zeros. */
struct cfi_rule {
	uint8_t kind;	      /* enum cfi_kind; the rest is for CFI_FRAME */
	uint8_t cfa;	      /* enum cfi_cfa */
	uint8_t cfa_register; /* a register of the callee */
	bool signal_frame;    /* the "caller" was interrupted; it made no call */
	bool sp_is_cfa;	      /* if so, @saved lacks the stack pointer */
	uint8_t nr_at_cfa;    /* the first elements of @saved that are SAVED_AT_CFA */
	uint8_t nr_saved;     /* all elements of @saved */
	bool is_arm64;	      /* else it is of x86-64 */
	int32_t cfa_offset, cfa_addend;
	uint32_t same;		 /* bits of the registers that caller and callee share */
	uint32_t at_cfa;	 /* bits of the registers that are SAVED_AT_CFA */
	int32_t lowest, highest; /* the range of their offsets; 0: none */
	struct cfi_saved saved[CFI_NR_REGISTERS];
};

struct cfi_entry;
struct cfi_known_rule;
struct module_cfi;

struct cfi_rules {
	struct module_table *modules;
	struct debuginfo *debuginfo;
	bool own_vdso;		       /* our own vdso is that of the recorded processes */
	struct module_cfi **by_module; /* [module id - 1] */
	size_t nr_modules;
	struct cfi_entry *entries; /* a hash table, open addressing; its size a power of two */
	size_t nr_entries, capacity;
	uint64_t seed;		      /* of the hash, so that nobody can prepare collisions */
	struct cfi_known_rule *known; /* by content */
	uint64_t epoch;		      /* counts how often the cache was emptied */
	uint64_t kept_bytes;	      /* by libdw, of files that are not root's */
	uint64_t copies_epoch;	      /* debuginfo_must_close() */
	struct owner_time time;
	bool is_late; /* the last rule found is a makeshift: there was no time to read it */
};

/*
 * @own_vdso: the recording was made on this machine since it booted, so that "[vdso]" is our own.
 */
void cfi_rules_init(struct cfi_rules *rules, struct module_table *modules,
		    struct debuginfo *debuginfo, bool own_vdso);
void cfi_rules_deinit(struct cfi_rules *rules);

/*
 * Finds the rule for the instruction at @file_offset of @module. The rule stays valid until
 * @rules->epoch changes, which this call may do before it looks. Returns 0 or -ENOMEM.
 */
int cfi_rules_find(struct cfi_rules *rules, struct module *module, uint64_t file_offset,
		   const struct cfi_rule **ret);

/*
 * Makes a rule of a row that dwarf_cfi_addrframe() has found. A row that no rule can express
 * becomes CFI_COMPLEX.
 */
void cfi_rule_read(Dwarf_Frame *row, struct cfi_rule *ret);

/* The same for a row of AArch64. */
void cfi_rule_read_arm64(Dwarf_Frame *row, struct cfi_rule *ret);

#endif
