/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the jump of a switch goes: the tables that compilers make of one, and how code reads them.
 *
 *	cmp $N,%I; ja default; lea table(%rip),%B; movslq (%B,%I,4),%T; add %B,%T; jmp *%T
 *	cmp $N,%I; ja default; jmp *table(,%I,8)         (programs that are linked to one address)
 *
 * Only what is recognised whole, with the comparison that says how many entries there are, has
 * targets. The file is hostile.
 */
#ifndef LEAKTOOLS_PROBES_CODE_SWITCH_H
#define LEAKTOOLS_PROBES_CODE_SWITCH_H

#include "probes/x86/code_segment.h"

#define CODE_SWITCH_MAX_TARGETS 1024
#define CODE_SWITCH_MAX_PATH	128

/*
 * Finds the targets of the indirect jump at @path[0], offsets in the file. The rest of the @nr
 * offsets in @path are instructions that lead to it, the nearest first. Returns how many, or 0
 * where the jump is not understood.
 */
int code_switch_find(struct code_segment *segment, const uint64_t *path, size_t nr,
		     uint64_t ret[CODE_SWITCH_MAX_TARGETS]);

#endif
