/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/helper_name.h"

#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void helper_rename(const char *name)
{
	/* The C library has the address of the arguments, which are contiguous (2.36). */
	char *arguments = program_invocation_name, text[4096];
	_cleanup_close_ int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	size_t size = 0, name_size = strlen(name) + 1;
	ssize_t len;

	while (fd >= 0 && (len = read(fd, text, sizeof(text))) > 0) {
		if (size == 0 && strncmp(text, arguments, sizeof(text)) != 0)
			break;
		size += (size_t)len;
	}
	if (size > 0) {
		memset(arguments, 0, size);
		memcpy(arguments, name, size > name_size ? name_size : size - 1);
	}
	prctl(PR_SET_NAME, name);
}
