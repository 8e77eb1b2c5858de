/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds stack dumps of AArch64 by cached rules (cfi_rules.h). Dumps of other machines, and those
 * that meet a row which is no rule, are left to the next unwinder.
 *
 * A return address that a function keeps on the stack may be signed (pointer authentication): its
 * upper bits then hold a code. They are removed here. Call frame information says whether an
 * address is signed (DW_CFA_AARCH64_negate_ra_state), but that is not needed: what is not signed
 * has no such bits.
 *
 * Where there is no call frame information, a frame pointer is assumed.
 */
#ifndef LEAKTOOLS_UNWIND_ARM64_UNWINDER_H
#define LEAKTOOLS_UNWIND_ARM64_UNWINDER_H

#include "unwind/frames/cfi_rules.h"
#include "unwind/frames/unwinder.h"

struct arm64_unwinder {
	struct cfi_rules *rules; /* borrowed */
};

extern const struct unwinder_ops arm64_unwinder_ops;

/* @rules must stay as long as @unwinder. */
void arm64_unwinder_init(struct arm64_unwinder *unwinder, struct cfi_rules *rules);

#endif
