/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of system calls that leakrec --with records: they give and take resources without an
 * allocator. Each call has two events, from the kernel's tracepoints: sys_enter_NAME with the
 * arguments, sys_exit_NAME with the return value. A call that an architecture does not have has the
 * number -1 and is not recorded.
 */
#ifndef LEAKTOOLS_COMMON_SYSCALL_SCHEMA_H
#define LEAKTOOLS_COMMON_SYSCALL_SCHEMA_H

#include "common/schema/resource_schema.h"

#include <stdbool.h>
#include <stddef.h>

#define SYSCALL_MAX_ARGS   6
#define SYSCALL_SYSTEM	   "syscalls" /* the tracepoints' subsystem */
#define SYSCALL_MAX_NUMBER 511	      /* of a recorded system call */

/* The groups that --with names, one bit each. */
enum syscall_group {
	SYSCALL_MAPPINGS = 1 << 0,    /* memory mapped without an allocator */
	SYSCALL_DESCRIPTORS = 1 << 1, /* file descriptors of all kinds */
};

/* What a system call of SYSCALL_DESCRIPTORS does. */
enum syscall_does {
	SYSCALL_DOES_ELSE,
	SYSCALL_OPENS,	    /* returns a new descriptor */
	SYSCALL_OPENS_PAIR, /* stores two new descriptors */
	SYSCALL_REPLACES,   /* closes args[1] if it is open, and opens it again */
	SYSCALL_MAY_DUP,    /* fcntl: returns a new descriptor if args[1] is F_DUPFD or the like */
	SYSCALL_CLOSES,	    /* args[0] */
	SYSCALL_CLOSES_RANGE, /* args[0] to args[1] */
};

/* A row. */
struct syscall_schema {
	const char *name; /* in the events' names */
	int number;	  /* from <asm/unistd.h>, at most SYSCALL_MAX_NUMBER; -1: missing */
	unsigned int groups;
	int nr_args;
	/* The fields of sys_enter_NAME: the kernel's, then those that our BPF programs add. */
	const char *arg_names[SYSCALL_MAX_ARGS];
	bool gives; /* makes something new: the stack is taken at the return */
	bool takes; /* releases something, which counts from its entry on */
	/*
	 * leakrec --size compares @size_arg; -1: always recorded. A call with @replaces_bit in
	 * @replaces_arg is always recorded, too: it may replace existing mappings.
	 */
	int size_arg, replaces_arg;
	unsigned long replaces_bit;
	enum syscall_does does;
	int pair_arg;		   /* SYSCALL_OPENS_PAIR: the argument that points to the pair */
	struct resource_call call; /* the call as reports see it */
};

/* A field of sys_enter_brk that our BPF programs add: the break before the call. */
#define SYSCALL_FIELD_BREAK "old_brk"

/*
 * Fields of sys_exit_NAME: the kernel's, and those that our BPF programs add. The C library's
 * wrapper mostly has no frame: above the registers that it restores before it returns is the
 * return address into its caller. The added fields are 0 if stacks are dumped: unwinding the dump
 * gives better answers.
 */
#define SYSCALL_FIELD_RET    "ret"
#define SYSCALL_FIELD_CALLER "caller" /* that word; 0: not readable */
#define SYSCALL_FIELD_PAIR   "pair"   /* SYSCALL_OPENS_PAIR: first descriptor + (second << 32) */
#define SYSCALL_FIELD_INSIDE "inside" /* the probed function that the thread is in, or 0 */

/* The table, of *@ret_nr rows; static. */
const struct syscall_schema *syscall_schema_table(size_t *ret_nr);

/*
 * The row of the event @event_name ("sys_enter_mmap"), and whether it is the exit. Returns NULL if
 * no row has that name.
 */
const struct syscall_schema *syscall_schema_parse_event(const char *event_name, bool *ret_is_exit);

#endif
