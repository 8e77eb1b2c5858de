/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The overlays that are mounted in this process's mount namespace, which only who is trusted can
 * do. In a namespace of his own, any user mounts one over what a FUSE server of his gives, also
 * files that seem to be root's.
 */
#ifndef LEAKTOOLS_COMMON_OWN_MOUNTS_H
#define LEAKTOOLS_COMMON_OWN_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * True if the overlay that the file at @fd, of @device, belongs to is mounted here. A process that
 * cannot open files goes by what was known before.
 */
bool own_mounts_have(int fd, dev_t device);

/* For a process that will not be able to open files any more. */
void own_mounts_note(void);

struct own_mount {
	uint64_t id;
	dev_t device; /* of directories; of other files, unless its layers are on several ones */
};

/* The overlays in a list of mounts (proc(5), mountinfo), at most @room. Returns how many. */
size_t own_mounts_read(FILE *mountinfo, struct own_mount *ret, size_t room);

#endif
