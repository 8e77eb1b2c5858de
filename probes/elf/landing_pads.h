/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells whether an exception can resume in a function, in code that none of its jumps leads to: a
 * catch clause or a cleanup. The call frame information of such a function refers to a table of
 * these places, the language-specific data area (Linux Standard Base, Core, "Exception Frames").
 */
#ifndef LEAKTOOLS_PROBES_LANDING_PADS_H
#define LEAKTOOLS_PROBES_LANDING_PADS_H

#include "probes/elf/elf_image.h"

/* Returns false if no exception resumes in @function; true also if that is not known. */
bool landing_pads_may_exist(const struct elf_image *image, const struct elf_function *function);

#endif
