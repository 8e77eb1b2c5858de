/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/pid_list.h"

#include "common/number.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add(struct pid_list *list, pid_t pid)
{
	pid_t *grown;

	for (size_t i = 0; i < list->nr; i++)
		if (list->pids[i] == pid)
			return 0;
	grown = reallocarray(list->pids, list->nr + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	list->pids = grown;
	list->pids[list->nr++] = pid;
	return 0;
}

int pid_list_parse(struct pid_list *list, const char *text)
{
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy, *word;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (word = strsep(&rest, ","))) {
		uint64_t pid;

		if (number_parse(word, &pid) || pid == 0 || pid > INT32_MAX)
			return -EINVAL;
		err = add(list, (pid_t)pid);
	}
	return err;
}

void pid_list_deinit(struct pid_list *list)
{
	free(list->pids);
	*list = (struct pid_list){0};
}
