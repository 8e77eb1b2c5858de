/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf_file.h"

#include "common/scope.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define CHUNK		(256u << 10)
#define MAX_SUMMED_SIZE (8ll << 30) /* a larger file, sparse perhaps, is not read for its sum */

int elf_file_open(const char *path, struct stat *ret_stat)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, ret_stat) || !S_ISREG(ret_stat->st_mode))
		return -1;
	return steal_fd(fd);
}

/* The checksum of all bytes. Returns 0 or a negative errno. */
static int sum_file(int fd, uint32_t *ret)
{
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK);
	uLong crc = crc32(0, NULL, 0);
	struct stat st;
	off_t offset = 0;

	if (!chunk)
		return -ENOMEM;
	if (fstat(fd, &st) || st.st_size > MAX_SUMMED_SIZE)
		return -EFBIG;
	while (offset < st.st_size) {
		ssize_t nr = pread(fd, chunk, CHUNK, offset);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			return nr ? -errno : -EIO;
		crc = crc32(crc, chunk, (uInt)nr);
		offset += nr;
	}
	*ret = (uint32_t)crc;
	return 0;
}

bool elf_file_is(int fd, const struct elf_file_id *id)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *build_id;
	bool same = false;
	uint32_t crc = 0;

	if (!elf)
		return false;
	ssize_t size = dwelf_elf_gnu_build_id(elf, &build_id);
	if (size > 0 && id->build_id_size)
		same = (size_t)size == id->build_id_size &&
		       memcmp(build_id, id->build_id, id->build_id_size) == 0;
	else if (id->has_crc)
		same = !sum_file(fd, &crc) && crc == id->crc;
	elf_end(elf);
	return same;
}
