/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A snapshot from a core file, as the kernel or gcore writes it: segments, NT_PRSTATUS,
 * NT_X86_XSTATE or NT_FPREGSET, NT_PRPSINFO, NT_FILE.
 */
#ifndef LEAKTOOLS_SCAN_CORE_FILE_H
#define LEAKTOOLS_SCAN_CORE_FILE_H

#include "scan/snapshot/snapshot.h"

/*
 * Reads the core file @path. Returns 0 or a negative errno, reported. Release with
 * snapshot_deinit() in either case.
 */
int core_file_read(struct snapshot *ret, const char *path);

#endif
