/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The notes of a core file: threads with their registers, the process's name, mapped files. */
#ifndef LEAKTOOLS_SCAN_CORE_NOTES_H
#define LEAKTOOLS_SCAN_CORE_NOTES_H

#include "scan/snapshot/snapshot.h"

/*
 * Takes what the @size bytes of @notes say into @snapshot, whose regions are known. Notes that are
 * too short are skipped. Returns 0, -E2BIG or -ENOMEM.
 */
int core_notes_parse(struct snapshot *snapshot, const char *notes, size_t size);

#endif
