/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plans probes for the marks of <leaktools/leak_probes.h> in a file: LEAK_MARK(). */
#ifndef LEAKTOOLS_PROBES_USDT_PLAN_H
#define LEAKTOOLS_PROBES_USDT_PLAN_H

#include "probes/elf/elf_image.h"
#include "probes/plan/probe_file.h"

/* True if the file has any probes of <leaktools/leak_probes.h>. */
bool usdt_plan_has_probes(const struct elf_image *image);

/* Appends the probes for the marks to @file. Returns 0 or a negative errno, not reported. */
int usdt_plan_probes(struct probe_file *file, const struct elf_image *image);

#endif
