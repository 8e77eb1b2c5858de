/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Process ids as users give them: "12,34", in one option or in several. */
#ifndef LEAKTOOLS_TOOLS_PID_LIST_H
#define LEAKTOOLS_TOOLS_PID_LIST_H

#include <stddef.h>
#include <sys/types.h>

struct pid_list {
	pid_t *pids; /* freed by pid_list_deinit() */
	size_t nr;
};

/* Adds the ids in @text, each once. Returns 0, -ENOMEM, or -EINVAL if @text is no list of ids. */
int pid_list_parse(struct pid_list *list, const char *text);
void pid_list_deinit(struct pid_list *list);

#endif
