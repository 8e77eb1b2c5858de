/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes any text as leakparse's, of either version, for plots. */
#include "plot/leaks/leak_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void label(const struct stack_label *label)
{
	free(stack_label_text(label, &label, 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("leaks", MFD_CLOEXEC);
	struct leak_set set;
	char path[64];

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (leak_set_init(&set, path, NULL) == 0) {
		for (size_t i = 0; i < LEAK_SET_RANKS && set.ranked[i]; i++)
			label(&set.ranked[i]->label);
		for (size_t i = 0; i < set.histories.nr; i++)
			label(&set.histories.stacks[i].group->label);
		leak_set_deinit(&set);
	}
	close(fd);
	return 0;
}
