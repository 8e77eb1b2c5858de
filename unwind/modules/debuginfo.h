/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds separate debug files by build-id and by .gnu_debuglink, and the shared ones of dwz: in the
 * given directory, in SYMFS/usr/lib/debug, in /usr/lib/debug and beside the module; then, if asked
 * for, on the servers of DEBUGINFOD_URLS. A file is used only if its build-id (without one, its
 * checksum) is the one that the module names.
 */
#ifndef LEAKTOOLS_UNWIND_DEBUGINFO_H
#define LEAKTOOLS_UNWIND_DEBUGINFO_H

#include "unwind/modules/copy_table.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

#define DEBUGINFO_MAX_ROOTS 3

/*
 * Of files that are not root's, which may be made for that: their copies, and what libdw may keep
 * of them. Beyond it, these files are closed, and opened again when needed.
 */
#define DEBUGINFO_MAX_KEPT_BYTES (128u << 20)

struct debug_server;

struct debuginfo_options {
	const char *symfs;     /* NULL: none */
	const char *debug_dir; /* NULL: none */
	bool ask_servers;      /* those of DEBUGINFOD_URLS; may take minutes */
	bool quiet;	       /* do not report refused files */
	/*
	 * Not 0: to unwind. The modules must not be asked for symbols, and debug files that expand
	 * to more are not used.
	 */
	uint64_t max_expanded;
};

struct debuginfo {
	Dwfl_Callbacks callbacks;	  /* for dwfl_begin(); must outlive that Dwfl */
	char *symfs;			  /* NULL: none */
	char *roots[DEBUGINFO_MAX_ROOTS]; /* each holds .build-id/ and, below it, the modules' paths
					   */
	size_t nr_roots;
	struct debug_server *server; /* NULL: ask none */
	bool in_shared;		     /* during the lookup of a shared file's name */
	bool quiet;
	uint64_t max_expanded;
	const Dwfl_Module *without; /* the last module without a debug file */
	uint64_t others_bytes;	    /* debuginfo_take_others_bytes() */
	struct copy_table copies;
};

/* @options may be NULL. Returns 0 or -ENOMEM. */
int debuginfo_init(struct debuginfo *debuginfo, const struct debuginfo_options *options);
void debuginfo_deinit(struct debuginfo *debuginfo);

/*
 * Finds the debug file for a build-id; @name is the module's recorded path. Returns a descriptor
 * that the caller closes, with the file's path in *@ret_path, which the caller frees; or -1.
 */
int debuginfo_find(struct debuginfo *debuginfo, const char *name, const uint8_t *build_id,
		   size_t build_id_size, char **ret_path);

/*
 * As dwfl_report_elf(), for a Dwfl with the callbacks. @name is the module's recorded path,
 * @file_name the path of its file. Takes over @fd, also if it fails.
 */
Dwfl_Module *debuginfo_report_elf(struct debuginfo *debuginfo, Dwfl *dwfl, const char *name,
				  const char *file_name, int fd, GElf_Addr base);

/*
 * The bytes, about, that libdwfl and libelf keep for a module that was reported so, and what libdw
 * expands if it is asked for its debug information.
 */
uint64_t debuginfo_kept_bytes(const struct debuginfo *debuginfo, Dwfl_Module *module);

/*
 * The same of debug files that are not root's and were found since the last call, when libdwfl was
 * asked for debug information.
 */
uint64_t debuginfo_take_others_bytes(struct debuginfo *debuginfo);

/*
 * To unwind: true if libdwfl will look for no debug file of the module any more, as it does when it
 * is first asked for the module's debugging information. Who has asked ends that.
 */
bool debuginfo_is_searched(Dwfl_Module *module);
void debuginfo_end_search(Dwfl_Module *module);

/*
 * True if who keeps @kept_bytes of files that are not root's may open more of them. All share the
 * copies.
 */
bool debuginfo_has_room(const struct debuginfo *debuginfo, uint64_t kept_bytes);

/*
 * True if he has to close them all now. Then all others who have opened such files must do so, too:
 * each asks before he opens any. *@epoch is his own, 0 at first.
 */
bool debuginfo_must_close(struct debuginfo *debuginfo, uint64_t kept_bytes, uint64_t *epoch);

#endif
