/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hands the blocks that a process holds to leakscan (common/schema/traced_list.h). */
#ifndef LEAKTOOLS_RECORDER_HELD_LIST_H
#define LEAKTOOLS_RECORDER_HELD_LIST_H

#include "recorder/held/held_blocks.h"

/*
 * Writes to @fd which blocks process @pid held at @held_ns and still holds. What it has released
 * since is left out, so that leakscan takes it for other memory, where pointers may be. Returns 0
 * or a negative errno.
 */
int held_list_write(int fd, const struct held_blocks *held, pid_t pid, uint64_t held_ns);

#endif
