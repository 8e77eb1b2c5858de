/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which rows of call frame information libdwfl can be trusted with. Files are hostile, and its
 * evaluation of expressions (expr_eval() in libdwfl/frame_unwind.c, elfutils 0.188) is not made for
 * that: it divides the lowest number by -1, which ends the process, dereferences NULL at a
 * DW_OP_deref_size in the rule of the canonical frame address, leaks its stack at an operation that
 * it does not know, and takes jumps, also back.
 */
#ifndef LEAKTOOLS_UNWIND_SAFE_ROW_H
#define LEAKTOOLS_UNWIND_SAFE_ROW_H

#include <elfutils/libdw.h>
#include <stdbool.h>

/* True if all expressions of the row are short and have only operations that do no harm. */
bool safe_row(Dwarf_Frame *row);

#endif
