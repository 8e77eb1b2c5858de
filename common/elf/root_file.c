/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/elf/root_file.h"

#include "common/broker/broker.h"
#include "common/elf/elf_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

int root_file_open(const char *root, const char *path, struct stat *ret_stat)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};

	if (broker_is_used())
		return broker_open(BROKER_OPEN_BELOW, path, ret_stat);

	_cleanup_close_ int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	_cleanup_close_ int path_fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (path_fd < 0)
		return -errno;
	return elf_file_reopen(path_fd, ret_stat);
}
