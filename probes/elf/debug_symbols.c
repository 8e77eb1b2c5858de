/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/elf/debug_symbols.h"

#include "common/elf/debug_file.h"
#include "common/scope.h"

#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

static bool is_program(const struct elf_image *image)
{
	_cleanup_free_ char *interpreter = elf_image_interpreter(image);

	return interpreter || elf_image_is_static(image);
}

static int find_file(const struct elf_image *image, const char *path, const char *display)
{
	char system_root[] = DEBUG_FILE_SYSTEM_ROOT;
	char *const roots[] = {system_root};
	_cleanup_free_ char *found = NULL;
	const void *build_id = NULL;
	GElf_Word crc = 0;
	const char *link = dwelf_elf_gnu_debuglink(image->elf, &crc);
	ssize_t size = dwelf_elf_gnu_build_id(image->elf, &build_id);
	struct debug_file_search wanted = {
		.roots = roots,
		.nr_roots = ARRAY_SIZE(roots),
		.quiet = true,
		.module_path = display,
		.main_file = path,
		.id =
			{
				.build_id = build_id,
				.build_id_size = size > 0 ? (size_t)size : 0,
				.has_crc = link != NULL,
				.crc = crc,
			},
	};
	int fd = debug_file_by_build_id(&wanted, &found);

	return fd < 0 && link ? debug_file_by_link(&wanted, link, &found) : fd;
}

/*
 * Anyone can write a file with the build-id of another one, for instance next to a link to a system
 * program. Its symbols decide where breakpoints go, for all users of the program. So symbols are
 * used only if every user who could write them can also write the program itself.
 */
static bool is_trusted(int debug_fd, int fd)
{
	struct stat debug, file;
	struct statfs fs;

	if (fstat(debug_fd, &debug) || fstat(fd, &file) || fstatfs(debug_fd, &fs))
		return false;
	/* A FUSE file system may show any owner. */
	if (fs.f_type == FUSE_SUPER_MAGIC && debug.st_dev != file.st_dev)
		return false;
	return (debug.st_uid == 0 || debug.st_uid == file.st_uid) &&
	       !(debug.st_mode & ~file.st_mode & (S_IWGRP | S_IWOTH));
}

void debug_symbols_use(struct elf_image *image, const char *path, const char *display)
{
	int fd;

	if (!image->is_native || elf_image_has_symtab(image) || !is_program(image))
		return;
	fd = find_file(image, path, display);
	if (fd < 0)
		return;
	if (!is_trusted(fd, image->fd) || !elf_image_use_debug_file(image, fd))
		close(fd);
}
