/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where separate debug files are looked for, by build-id and by .gnu_debuglink. A file is taken
 * only if its build-id, or where it has none its checksum, is the one that is wanted.
 */
#ifndef LEAKTOOLS_COMMON_DEBUG_FILE_H
#define LEAKTOOLS_COMMON_DEBUG_FILE_H

#include "common/elf/elf_file.h"

#define DEBUG_FILE_SYSTEM_ROOT "/usr/lib/debug"

/* One debug file that is looked for. */
struct debug_file_search {
	char *const *roots; /* each with .build-id/ and the modules' paths below it */
	size_t nr_roots;
	bool quiet;		 /* refused files are not told of */
	const char *module_path; /* as recorded */
	const char *main_file;	 /* whose debug file it is; never taken itself; or NULL */
	struct elf_file_id id;
	bool refused; /* a file of its name was another one */
};

/*
 * Each opens what it finds: returns a descriptor that the caller closes, with the file's path in
 * *@ret_path, which the caller frees, or -1.
 */
int debug_file_by_build_id(struct debug_file_search *wanted, char **ret_path);

/* @link: .gnu_debuglink's, or NULL. */
int debug_file_by_link(struct debug_file_search *wanted, const char *link, char **ret_path);

/* At @path, which it takes over, and which may be NULL. */
int debug_file_open(struct debug_file_search *wanted, char *path, char **ret_path);

/* Text for @path above. NULL: out of memory. */
char *debug_file_format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));

/* Behind the last slash of @path, and the length of what is before that. */
const char *debug_file_base_name(const char *path);
int debug_file_dir_length(const char *path);

#endif
