/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/debug_symbols.h"

#include "common/debug_file.h"
#include "common/scope.h"

#include <stdlib.h>
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

void debug_symbols_use(struct elf_image *image, const char *path, const char *display)
{
	int fd;

	if (!image->is_native || elf_image_has_symtab(image) || !is_program(image))
		return;
	fd = find_file(image, path, display);
	if (fd < 0)
		return;
	image->debug = elf_begin(fd, ELF_C_READ, NULL);
	if (image->debug)
		image->debug_fd = fd;
	else
		close(fd);
}
