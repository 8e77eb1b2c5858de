/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of segments that are only in memory. */
#ifndef LEAKTOOLS_RECORDER_SEGMENT_MEMORY_H
#define LEAKTOOLS_RECORDER_SEGMENT_MEMORY_H

/* Makes an empty one. Returns a descriptor, which the caller closes, or a negative errno. */
int segment_memory_create(void);

#endif
