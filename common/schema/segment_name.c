/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/segment_name.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void segment_name_format(struct segment_name name, char ret[SEGMENT_NAME_BYTES])
{
	snprintf(ret, SEGMENT_NAME_BYTES, "%06" PRIu32 ".%08" PRIu32 ".data", name.recording,
		 name.number);
}

int segment_name_parse(const char *text, struct segment_name *ret)
{
	char same[SEGMENT_NAME_BYTES];

	if (strlen(text) >= sizeof(same) ||
	    sscanf(text, "%" SCNu32 ".%" SCNu32 ".data", &ret->recording, &ret->number) != 2)
		return -EINVAL;
	segment_name_format(*ret, same);
	if (strcmp(same, text) != 0 || !ret->recording || !ret->number ||
	    ret->recording > SEGMENT_NAME_MAX || ret->number > SEGMENT_NAME_MAX)
		return -EINVAL;
	return 0;
}

int segment_name_compare(const void *a, const void *b)
{
	const struct segment_name *x = a, *y = b;

	if (x->recording != y->recording)
		return x->recording < y->recording ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

int segment_names_open(int dir_fd, DIR **ret)
{
	int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3), err;

	*ret = fd < 0 ? NULL : fdopendir(fd);
	if (*ret) {
		rewinddir(*ret);
		return 0;
	}
	err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

bool segment_names_next(DIR *entries, struct segment_name *ret)
{
	const struct dirent *entry;

	while ((entry = readdir(entries)))
		if (segment_name_parse(entry->d_name, ret) == 0)
			return true;
	return false;
}
