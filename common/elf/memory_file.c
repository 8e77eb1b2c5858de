/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/elf/memory_file.h"

#include <errno.h>
#include <sys/mman.h>

/* include/linux/memfd.h, from Linux 6.3 on; with vm.memfd_noexec=2 it is necessary. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

int memory_file_create(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
