/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The system calls that a thread has entered but not left. */
#ifndef LEAKTOOLS_PARSER_OPEN_SYSCALLS_H
#define LEAKTOOLS_PARSER_OPEN_SYSCALLS_H

#include "parser/heap/region_map.h"
#include "parser/records/perf_event_types.h"

/* The thread's open call on mappings. */
struct mapping_call {
	const struct syscall_schema *syscall; /* NULL: in none */
	uint64_t args[PERF_MAX_ARGS];
	struct heap_op op;	 /* the entry */
	struct region_cuts cuts; /* what it has unmapped */
};

void mapping_call_destroy(struct mapping_call *call);

/* The thread's open call on descriptors. */
struct descriptor_call {
	const struct syscall_schema *syscall; /* NULL: in none */
	uint64_t args[2];
};

#endif
