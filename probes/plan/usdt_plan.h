/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the probes that a file has been given by <leaktools/leak_probes.h> to those to be set. */
#ifndef LEAKTOOLS_PROBES_USDT_PLAN_H
#define LEAKTOOLS_PROBES_USDT_PLAN_H

#include "probes/elf/elf_image.h"
#include "probes/plan/probe_file.h"

/* True if the file has such probes. */
bool usdt_plan_has_probes(const struct elf_image *image);

/* Appends the probes for them to @file. Returns 0 or a negative errno, not reported. */
int usdt_plan_probes(struct probe_file *file, const struct elf_image *image);

#endif
