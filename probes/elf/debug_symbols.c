/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/elf/debug_symbols.h"

#include "common/elf/debug_file.h"
#include "common/scope.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

static bool is_program(const struct elf_image *image)
{
	_cleanup_free_ char *interpreter = elf_image_interpreter(image);

	return interpreter || elf_image_is_static(image);
}

bool debug_symbols_are_wanted(const struct elf_image *image, struct debug_symbols_id *ret)
{
	return image->is_native && !elf_image_has_symtab(image) && is_program(image) &&
	       debug_symbols_id(image, ret);
}

bool debug_symbols_id(const struct elf_image *image, struct debug_symbols_id *ret)
{
	const void *build_id = NULL;
	GElf_Word crc = 0;
	const char *link;
	ssize_t size;

	*ret = (struct debug_symbols_id){0};
	size = dwelf_elf_gnu_build_id(image->elf, &build_id);
	if (size > 0 && (size_t)size <= sizeof(ret->build_id)) {
		memcpy(ret->build_id, build_id, (size_t)size);
		ret->build_id_size = (size_t)size;
	}
	link = dwelf_elf_gnu_debuglink(image->elf, &crc);
	if (link && strlen(link) < sizeof(ret->link)) {
		snprintf(ret->link, sizeof(ret->link), "%s", link);
		ret->crc = crc;
	}
	return ret->build_id_size || ret->link[0];
}

static struct elf_file_id file_id(const struct debug_symbols_id *id)
{
	return (struct elf_file_id){
		.build_id = id->build_id,
		.build_id_size = id->build_id_size,
		.has_crc = id->link[0] != '\0',
		.crc = id->crc,
	};
}

/*
 * Anyone can write a file with the build-id of another one, for instance next to a link to a system
 * program. Its symbols decide where breakpoints go, for all users of the program. So symbols are
 * used only if every user who could write them can also write the program itself.
 */
static bool is_trusted(int debug_fd, int fd)
{
	struct stat debug, file;

	if (fstat(debug_fd, &debug) || fstat(fd, &file))
		return false;
	/* Who makes up its owner could write a program on the same file system, too. */
	if (debug.st_dev != file.st_dev && !elf_file_has_true_owner(debug_fd, &debug))
		return false;
	return (debug.st_uid == 0 || debug.st_uid == file.st_uid) &&
	       !(debug.st_mode & ~file.st_mode & (S_IWGRP | S_IWOTH));
}

struct candidates {
	struct debug_symbols_files *files;
	int program_fd;
};

/*
 * The name may lead to any file that root can read, and whoever asked for it is not to be trusted:
 * it gets no other files than a debug file can be.
 */
static void take_candidate(void *context, int fd)
{
	const struct candidates *candidates = context;
	struct debug_symbols_files *files = candidates->files;

	if (files->nr < ARRAY_SIZE(files->fds) && elf_file_is_code(fd) &&
	    is_trusted(fd, candidates->program_fd))
		files->fds[files->nr++] = fd;
	else
		close(fd);
}

void debug_symbols_open(const struct debug_symbols_id *id, int fd, const char *path,
			const char *display, struct debug_symbols_files *ret)
{
	char system_root[] = DEBUG_FILE_SYSTEM_ROOT;
	char *const roots[] = {system_root};
	_cleanup_free_ char *found = NULL;
	struct candidates candidates = {ret, fd};
	struct debug_file_search wanted = {
		.roots = roots,
		.nr_roots = ARRAY_SIZE(roots),
		.quiet = true,
		.module_path = display,
		.main_file = path,
		.id = file_id(id),
		.take = take_candidate,
		.context = &candidates,
	};

	*ret = (struct debug_symbols_files){.id = *id};
	debug_file_by_build_id(&wanted, &found);
	if (id->link[0])
		debug_file_by_link(&wanted, id->link, &found);
}

void debug_symbols_files_deinit(struct debug_symbols_files *files)
{
	for (size_t i = 0; i < files->nr; i++)
		close(files->fds[i]);
	files->nr = 0;
}

size_t debug_symbols_find(const struct debug_symbols_files *files, size_t first, int *ret_fd)
{
	const struct elf_file_id id = file_id(&files->id);

	*ret_fd = -1;
	for (size_t i = first; i < files->nr; i++) {
		int fd = files->fds[i];

		if (!elf_file_is(fd, &id) || !elf_file_expands_well(fd, NULL))
			continue;
		*ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (*ret_fd >= 0)
			return i;
	}
	return files->nr;
}

void debug_symbols_try(struct elf_image *image, const struct debug_symbols_files *files)
{
	int fd;

	for (size_t i = 0; (i = debug_symbols_find(files, i, &fd)) < files->nr; i++) {
		/* The image closes its own. */
		if (elf_image_use_debug_file(image, fd))
			return;
		close(fd);
	}
}

void debug_symbols_use(struct elf_image *image, const char *path, const char *display)
{
	struct debug_symbols_files files;
	struct debug_symbols_id id;

	if (!debug_symbols_are_wanted(image, &id))
		return;
	debug_symbols_open(&id, image->fd, path, display, &files);
	debug_symbols_try(image, &files);
	debug_symbols_files_deinit(&files);
}
