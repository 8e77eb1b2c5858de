/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/broker/named_file.h"

#include "common/broker/broker.h"

#include <errno.h>
#include <fcntl.h>

int named_file_open(const char *path)
{
	int fd;

	if (broker_is_used())
		return broker_open(BROKER_OPEN_INPUT, path, NULL);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}
