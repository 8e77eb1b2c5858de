/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/elf/debug_file.h"

#include "common/diag.h"
#include "common/scope.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BUILD_ID 64

int debug_file_open(struct debug_file_search *wanted, char *path, char **ret_path)
{
	_cleanup_free_ char *name = path;
	struct stat st, main_st;

	if (!name)
		return -1;
	_cleanup_close_ int fd = elf_file_open(name, &st), main_fd = -1;
	if (fd >= 0 && wanted->main_file)
		main_fd = elf_file_open(wanted->main_file, &main_st);
	if (fd < 0 || (main_fd >= 0 && st.st_dev == main_st.st_dev && st.st_ino == main_st.st_ino))
		return -1;
	if (wanted->take) {
		wanted->take(wanted->context, steal_fd(fd));
		return -1;
	}
	if (!elf_file_is(fd, &wanted->id)) {
		if (!wanted->refused && !wanted->quiet)
			diag_warn(
				"%s: not the debug file of %s: its build-id or checksum differs; it is not used",
				name, wanted->module_path);
		wanted->refused = true;
		return -1;
	}
	if (!wanted->is_to_unwind && !elf_file_expands_well(fd, wanted->quiet ? NULL : name))
		return -1;
	*ret_path = steal_ptr(name);
	return steal_fd(fd);
}

char *debug_file_format(const char *pattern, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, pattern);
	if (vasprintf(&text, pattern, arguments) < 0)
		text = NULL;
	va_end(arguments);
	return text;
}

/* ROOT/.build-id/01/23456789abcdef.debug */
int debug_file_by_build_id(struct debug_file_search *wanted, char **ret_path)
{
	const uint8_t *id = wanted->id.build_id;
	char hex[2 * MAX_BUILD_ID + 1] = "";
	int fd = -1;

	if (wanted->id.build_id_size < 2 || wanted->id.build_id_size > MAX_BUILD_ID)
		return -1;
	for (size_t i = 1; i < wanted->id.build_id_size; i++)
		snprintf(hex + 2 * (i - 1), 3, "%02x", id[i]);
	for (size_t i = 0; i < wanted->nr_roots && fd < 0; i++)
		fd = debug_file_open(wanted,
				     debug_file_format("%s/.build-id/%02x/%s.debug",
						       wanted->roots[i], id[0], hex),
				     ret_path);
	return fd;
}

const char *debug_file_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int debug_file_dir_length(const char *path)
{
	return (int)(debug_file_base_name(path) - path);
}

/*
 * Looks where gdb looks for a debuglink (its manual, "Separate Debug Files"), and in the root
 * directories themselves. A module without a link may have a MODULE.debug, as elfutils assumes.
 */
int debug_file_by_link(struct debug_file_search *wanted, const char *link, char **ret_path)
{
	/* Directories in a link must not lead elsewhere. */
	_cleanup_free_ char *name =
		link ? strdup(debug_file_base_name(link))
		     : debug_file_format("%s.debug", debug_file_base_name(wanted->module_path));
	int fd = -1;

	if (!name || !*name)
		return -1;
	if (wanted->main_file) {
		int len = debug_file_dir_length(wanted->main_file);

		fd = debug_file_open(wanted,
				     debug_file_format("%.*s%s", len, wanted->main_file, name),
				     ret_path);
		if (fd < 0)
			fd = debug_file_open(
				wanted,
				debug_file_format("%.*s.debug/%s", len, wanted->main_file, name),
				ret_path);
	}
	for (size_t i = 0; i < wanted->nr_roots && fd < 0; i++) {
		fd = debug_file_open(wanted,
				     debug_file_format("%s%.*s%s", wanted->roots[i],
						       debug_file_dir_length(wanted->module_path),
						       wanted->module_path, name),
				     ret_path);
		if (fd < 0)
			fd = debug_file_open(wanted,
					     debug_file_format("%s/%s", wanted->roots[i], name),
					     ret_path);
	}
	return fd;
}
