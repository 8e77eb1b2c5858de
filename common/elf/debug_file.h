/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds separate debug files, by build-id and by .gnu_debuglink. A file is used only if its
 * build-id is the wanted one, or if it has no build-id and its checksum is.
 */
#ifndef LEAKTOOLS_COMMON_DEBUG_FILE_H
#define LEAKTOOLS_COMMON_DEBUG_FILE_H

#include "common/elf/elf_file.h"

#define DEBUG_FILE_SYSTEM_ROOT "/usr/lib/debug"

/* The search for one debug file. */
struct debug_file_search {
	char *const *roots; /* directories with .build-id/ and the modules' paths below them */
	size_t nr_roots;
	bool quiet;		 /* do not warn of refused files */
	const char *module_path; /* as recorded */
	const char *main_file; /* the file that lacks debug information, which is never used itself;
				  or NULL */
	struct elf_file_id id;
	bool is_to_unwind; /* the caller checks it, instead of elf_file_expands_well() */
	bool refused;	   /* result: a file with the right name was another file */
	/*
	 * If set, gets the descriptor, its own then, of each file that has the right name, instead
	 * of any check: then nothing is found. For who must not read such files. The name may be a
	 * link to any file.
	 */
	void (*take)(void *context, int fd);
	void *context;
};

/*
 * These open the file that they find. They return a descriptor that the caller closes, with the
 * file's path in *@ret_path, which the caller frees; or -1.
 */
int debug_file_by_build_id(struct debug_file_search *wanted, char **ret_path);

/* @link: the name in .gnu_debuglink, or NULL. */
int debug_file_by_link(struct debug_file_search *wanted, const char *link, char **ret_path);

/* Opens @path, which it frees. @path may be NULL. */
int debug_file_open(struct debug_file_search *wanted, char *path, char **ret_path);

/* Formats a @path for debug_file_open(). NULL: out of memory. */
char *debug_file_format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));

/* The part of @path after its last slash, and the length of the part before that. */
const char *debug_file_base_name(const char *path);
int debug_file_dir_length(const char *path);

#endif
