/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether an exception can come back into a function, to code that none of its jumps leads to: a
 * catch clause, or a cleanup. The call frame information of such a function names a table of these
 * places, its language-specific data area (Linux Standard Base, Core, "Exception Frames").
 */
#ifndef LEAKTOOLS_PROBES_LANDING_PADS_H
#define LEAKTOOLS_PROBES_LANDING_PADS_H

#include "probes/elf/elf_image.h"

/* False if no exception comes back into @function; true, too, if that cannot be told. */
bool landing_pads_may_exist(const struct elf_image *image, const struct elf_function *function);

#endif
