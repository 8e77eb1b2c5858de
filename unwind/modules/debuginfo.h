/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where separate debug files are looked for, by build-id, by .gnu_debuglink, and dwz's shared ones:
 * in the directory given, in SYMFS/usr/lib/debug, in /usr/lib/debug and beside the module; then, if
 * that is wanted, by the servers of DEBUGINFOD_URLS. A file is taken only if its build-id, or where
 * it has none its checksum, is the one that the module names.
 */
#ifndef LEAKTOOLS_UNWIND_DEBUGINFO_H
#define LEAKTOOLS_UNWIND_DEBUGINFO_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

#define DEBUGINFO_MAX_ROOTS 3

struct debug_server;

struct debuginfo_options {
	const char *symfs;     /* NULL: none */
	const char *debug_dir; /* NULL: none */
	bool ask_servers;      /* if DEBUGINFOD_URLS names any: may take minutes */
	bool quiet;	       /* refused files are not told of */
};

struct debuginfo {
	Dwfl_Callbacks callbacks;	  /* for dwfl_begin(); must outlive that Dwfl */
	char *symfs;			  /* NULL: none */
	char *roots[DEBUGINFO_MAX_ROOTS]; /* each with .build-id/ and the modules' paths below it */
	size_t nr_roots;
	struct debug_server *server; /* NULL: none is asked */
	bool in_shared;		     /* a shared file's name is being looked up */
	bool quiet;
	const Dwfl_Module *without; /* the last one that no debug file was found for */
};

/* @options may be NULL. Returns 0 or -ENOMEM. */
int debuginfo_init(struct debuginfo *debuginfo, const struct debuginfo_options *options);
void debuginfo_deinit(struct debuginfo *debuginfo);

/*
 * Looks for the debug file of the module with that build-id, recorded as @name. Returns a
 * descriptor that the caller closes, with the file's path in *@ret_path, which the caller frees, or
 * -1.
 */
int debuginfo_find(struct debuginfo *debuginfo, const char *name, const uint8_t *build_id,
		   size_t build_id_size, char **ret_path);

/*
 * dwfl_report_elf() for a Dwfl begun with the callbacks: @name is the module's path as recorded,
 * @file_name where it was found.
 */
Dwfl_Module *debuginfo_report_elf(struct debuginfo *debuginfo, Dwfl *dwfl, const char *name,
				  const char *file_name, int fd, GElf_Addr base);

#endif
