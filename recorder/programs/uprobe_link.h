/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A link of a BPF program to places in a file's code: uprobe_multi (Linux 6.6). */
#ifndef LEAKTOOLS_RECORDER_UPROBE_LINK_H
#define LEAKTOOLS_RECORDER_UPROBE_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct uprobe_link {
	int program_fd;
	bool is_session; /* the program is one of sessions (Linux 6.13) */
	bool at_return;	 /* it runs when the functions return that begin at the places */
	int file_fd;
	pid_t pid; /* 0: in all processes */
	const uint64_t *offsets, *cookies;
	uint32_t nr;
};

/*
 * Creates the link: when it returns, the kernel has placed all breakpoints. Returns a descriptor,
 * or a negative errno, not reported: -ESRCH if the process has ended.
 */
int uprobe_link_create(const struct uprobe_link *link);

/*
 * The same in a process of its own, which a SIGKILL of this one does not reach
 * (recorder/processes/apart.h). Returns -EINTR, too, if a signal has come that ends this one.
 */
int uprobe_link_create_apart(struct uprobe_link *link);

#endif
