/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where libdwfl finds separate debug files: by build-id, by .gnu_debuglink, and dwz's shared ones;
 * in SYMFS/usr/lib/debug, then /usr/lib/debug and beside the module. On this machine only: no
 * debuginfod server is asked, whatever DEBUGINFOD_URLS says, as its answer may take minutes.
 */
#ifndef LEAKTOOLS_UNWIND_DEBUGINFO_H
#define LEAKTOOLS_UNWIND_DEBUGINFO_H

#include <elfutils/libdwfl.h>

struct debuginfo {
	Dwfl_Callbacks callbacks; /* for dwfl_begin(); must outlive that Dwfl */
	char *path;		  /* as in Dwfl_Callbacks.debuginfo_path */
};

/* @symfs may be NULL. Returns 0 or -ENOMEM. */
int debuginfo_init(struct debuginfo *debuginfo, const char *symfs);
void debuginfo_deinit(struct debuginfo *debuginfo);

#endif
