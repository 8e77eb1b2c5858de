/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call frame information as small rules. elfutils reads a module's .eh_frame or .debug_frame; the
 * row that holds for an address is turned into a rule that takes no more than a few loads to
 * apply, and the rule is remembered by module and address. Nearly all rows of all programs are one
 * of a few hundred rules, so equal rules are kept once.
 *
 * x86-64 only: other machines' rows are CFI_COMPLEX.
 */
#ifndef LEAKTOOLS_UNWIND_CFI_RULES_H
#define LEAKTOOLS_UNWIND_CFI_RULES_H

#include "unwind/modules/debuginfo.h"
#include "unwind/modules/module.h"

/* DWARF's numbers (System V ABI, AMD64 supplement, figure 3.36): rax to r15, return address. */
#define CFI_NR_REGISTERS   17
#define CFI_FRAME_POINTER  6
#define CFI_STACK_POINTER  7
#define CFI_RETURN_ADDRESS 16

/* What is cached at most; past either limit everything is forgotten and read again when needed. */
#define CFI_MAX_PLACES (1u << 20)
#define CFI_MAX_RULES  (1u << 15)

enum cfi_kind {
	CFI_FRAME,     /* a caller, found by the rest of the rule */
	CFI_OUTERMOST, /* no caller: _start, a thread's start */
	CFI_ABSENT,    /* no call frame information */
	CFI_COMPLEX,   /* a row that no rule can express */
};

/* How the canonical frame address, the stack pointer before the call, is found. */
enum cfi_cfa {
	CFA_REGISTER, /* register + offset */
	CFA_MEMORY,   /* *(register + offset) + addend: signal frames, realigned stacks */
	CFA_PLT,      /* register + offset + ((pc & 15) >= addend) * 8: lazy PLT entries */
};

/* Where the caller's value of a register is. */
enum cfi_where {
	SAVED_AT_CFA,	   /* *(CFA + offset) */
	SAVED_AT_REGISTER, /* *(register + offset) */
	VALUE_OF_CFA,	   /* CFA + offset */
	VALUE_OF_REGISTER, /* register + offset */
};

struct cfi_saved {
	uint8_t number; /* the caller's register */
	uint8_t where;	/* enum cfi_where */
	uint8_t base;	/* the callee's register, where one is meant */
	uint8_t unused; /* else padding, which is never equal */
	int32_t offset;
};

/* Compared as bytes: zeros where nothing is set. */
struct cfi_rule {
	uint8_t kind;	      /* enum cfi_kind; the rest is of CFI_FRAME */
	uint8_t cfa;	      /* enum cfi_cfa */
	uint8_t cfa_register; /* of the callee's */
	bool signal_frame;    /* the "caller" was interrupted, it did not call */
	bool sp_is_cfa;	      /* then the stack pointer is not in @saved */
	uint8_t nr_at_cfa;    /* @saved begins with that many SAVED_AT_CFA */
	uint8_t nr_saved;     /* of them all */
	uint8_t unused;
	int32_t cfa_offset, cfa_addend;
	uint32_t same;	 /* registers, as bits, in which the caller has what the callee has */
	uint32_t at_cfa; /* those that are SAVED_AT_CFA, as bits */
	int32_t lowest, highest; /* the range of their offsets; 0 if there are none */
	struct cfi_saved saved[CFI_NR_REGISTERS];
};

struct cfi_place;
struct cfi_known_rule;
struct module_cfi;

struct cfi_rules {
	struct module_table *modules;
	struct debuginfo *debuginfo;
	bool own_vdso;		       /* the processes' vdso is this one's */
	struct module_cfi **by_module; /* [module id - 1] */
	size_t nr_modules;
	struct cfi_place *places; /* a hash table, open addressing; its size a power of two */
	size_t nr_places, capacity;
	uint64_t seed;		      /* of its hash: colliding places can't be prepared */
	struct cfi_known_rule *known; /* by content */
	uint64_t epoch;		      /* counts the times that all was forgotten */
};

/* @own_vdso: the recording was made on this machine since it was started, "[vdso]" is our own. */
void cfi_rules_init(struct cfi_rules *rules, struct module_table *modules,
		    struct debuginfo *debuginfo, bool own_vdso);
void cfi_rules_deinit(struct cfi_rules *rules);

/*
 * The rule for the instruction at @file_offset of @module. The rule stays until @rules->epoch
 * changes, which this call may do before it looks. Returns 0 or -ENOMEM.
 */
int cfi_rules_find(struct cfi_rules *rules, struct module *module, uint64_t file_offset,
		   const struct cfi_rule **ret);

/* How many different rules there are, and what the tables take. */
unsigned cfi_rules_nr(const struct cfi_rules *rules);
size_t cfi_rules_bytes(const struct cfi_rules *rules);

/*
 * Makes the rule of a row that dwarf_cfi_addrframe() has found. Any row makes a rule, be it
 * CFI_COMPLEX.
 */
void cfi_rule_read(Dwarf_Frame *row, struct cfi_rule *ret);

#endif
