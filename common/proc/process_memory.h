/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much memory a process has in RAM and in swap, from /proc/PID/status, which all users may
 * read. The kernel shows counters of the address space: no lock of the process is taken, and the
 * time does not depend on its size (task_mem(), fs/proc/task_mmu.c, 6.1). From Linux 6.2 until
 * 6.16, and 6.15 with its fixes, a counter may lack what each CPU has not added to it yet: 128 KiB
 * and more a CPU ("mm: fix the inaccurate memory statistics issue for users"). Reports nothing.
 */
#ifndef LEAKTOOLS_COMMON_PROCESS_MEMORY_H
#define LEAKTOOLS_COMMON_PROCESS_MEMORY_H

#include <stdint.h>

struct process_memory {
	uint64_t anon_bytes;   /* RssAnon: of no file; heap, stacks, private copies of file pages */
	uint64_t file_bytes;   /* RssFile */
	uint64_t shared_bytes; /* RssShmem: shared memory and tmpfs */
	uint64_t swap_bytes;   /* VmSwap: anonymous, and not in RAM */
	uint64_t data_bytes;   /* VmData: private writable mappings, touched or not */
};

/* Parses the text of the file. Returns 0, or -ENODATA: the process has no memory any more. */
int process_memory_parse(const char *text, struct process_memory *ret);

/*
 * Reads it below @proc_fd, an open directory /proc/PID. Returns 0, -ENODATA as above, or another
 * negative errno: the process is gone.
 */
int process_memory_read_at(int proc_fd, struct process_memory *ret);

#endif
