/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The targets of the jump of a switch: the jump tables of compilers, and the code that reads them.
 *
 *	cmp $N,%I; ja default; lea table(%rip),%B; movslq (%B,%I,4),%T; add %B,%T; jmp *%T
 *	cmp $N,%I; ja default; jmp *table(,%I,8)         (programs that are linked to one address)
 *	cmp $N,%I; ja default; mov table(,%I,8),%T; jmp *%T                            (the same)
 *
 * The whole pattern must be recognised, with the comparison, or an `and`, that bounds the index.
 * The file is hostile: it may hold anything (elf_image.h).
 */
#ifndef LEAKTOOLS_PROBES_CODE_SWITCH_H
#define LEAKTOOLS_PROBES_CODE_SWITCH_H

#include "probes/x86/code_segment.h"

#define CODE_SWITCH_MAX_TARGETS 1024
#define CODE_SWITCH_MAX_PATH	128

/*
 * Finds the targets of the indirect jump at @path[0], as offsets in the file. The other @nr - 1
 * offsets in @path are the instructions that lead to it, the nearest first. Returns how many, or 0
 * if the jump is not understood.
 */
int code_switch_find(struct code_segment *segment, const uint64_t *path, size_t nr,
		     uint64_t ret[CODE_SWITCH_MAX_TARGETS]);

#endif
