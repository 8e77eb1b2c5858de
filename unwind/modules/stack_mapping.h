/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A mapping of a file into a process, as a recording describes it. */
#ifndef LEAKTOOLS_UNWIND_STACK_MAPPING_H
#define LEAKTOOLS_UNWIND_STACK_MAPPING_H

#include <stdint.h>
#include <sys/types.h>

#define BUILD_ID_MAX 20

/* PERF_RECORD_MMAP, MMAP2. */
struct stack_mapping {
	pid_t pid;
	uint64_t start; /* addresses [start, start + len) */
	uint64_t len;
	uint64_t file_offset;
	const char *path;
	uint8_t build_id[BUILD_ID_MAX]; /* from the kernel or the recorder */
	uint8_t build_id_size;		/* 0: not known */
	dev_t device;
	ino_t inode; /* of the file, if it has no build-id; 0: not known */
};

#endif
