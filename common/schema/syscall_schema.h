/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System calls that give and take what is no allocator's: the one table of those that leakrec
 * --with records. Each call has two events, those of the kernel's tracepoints: sys_enter_NAME with
 * the arguments, sys_exit_NAME with the value it returns. What is missing in a table of another
 * architecture has the number -1 and is not recorded.
 */
#ifndef LEAKTOOLS_COMMON_SYSCALL_SCHEMA_H
#define LEAKTOOLS_COMMON_SYSCALL_SCHEMA_H

#include "common/schema/resource_schema.h"

#include <stdbool.h>
#include <stddef.h>

#define SYSCALL_MAX_ARGS   6
#define SYSCALL_SYSTEM	   "syscalls" /* the tracepoints' */
#define SYSCALL_MAX_NUMBER 511	      /* of those that are recorded */

/* What can be asked for, a bit each. */
enum syscall_group {
	SYSCALL_MAPPINGS = 1 << 0,    /* memory that no allocator has to know of */
	SYSCALL_DESCRIPTORS = 1 << 1, /* files, sockets, and all else that has a number */
};

/* What a system call of SYSCALL_DESCRIPTORS does. */
enum syscall_does {
	SYSCALL_DOES_ELSE,
	SYSCALL_OPENS,	      /* returns a new one */
	SYSCALL_OPENS_PAIR,   /* stores two */
	SYSCALL_REPLACES,     /* closes args[1], if it is open, and opens it anew */
	SYSCALL_MAY_DUP,      /* fcntl: returns a new one, if args[1] says so */
	SYSCALL_CLOSES,	      /* args[0] */
	SYSCALL_CLOSES_RANGE, /* args[0] to args[1] */
};

/* A row. */
struct syscall_schema {
	const char *name; /* in the events' names */
	int number;	  /* <asm/unistd.h>'s, at most SYSCALL_MAX_NUMBER; -1: not there */
	unsigned int groups;
	int nr_args;
	/* The fields of sys_enter_NAME: the kernel's, and behind them what only our programs write.
	 */
	const char *arg_names[SYSCALL_MAX_ARGS];
	bool gives; /* its stack is that of something new: taken at the return */
	bool takes; /* it releases something: its entry is where that happens */
	/*
	 * The recorder's filter by size goes by @size_arg; -1: it is recorded always, as it is with
	 * @replaces_bit in @replaces_arg, with which it takes the place of others.
	 */
	int size_arg, replaces_arg;
	unsigned long replaces_bit;
	enum syscall_does does;
	int pair_arg;		   /* SYSCALL_OPENS_PAIR: where they are stored */
	struct resource_call call; /* what reports know of it */
};

/* A field of sys_enter_brk that the recorder's programs add: where the break is. */
#define SYSCALL_FIELD_BREAK "old_brk"

/*
 * Fields of sys_exit_NAME: the kernel's, and those that the recorder's programs add. On top of the
 * stack stands, where the C library's wrapper has no frame, the address in its caller. What the
 * programs add is 0 where stacks are dumped, which tell better.
 */
#define SYSCALL_FIELD_RET    "ret"
#define SYSCALL_FIELD_CALLER "caller" /* what stands on top of the stack */
#define SYSCALL_FIELD_PAIR   "pair"   /* SYSCALL_OPENS_PAIR: the first, and 2^32 times the second */
#define SYSCALL_FIELD_INSIDE "inside" /* the probed function that the thread is in, or 0 */

/* The table, of *@ret_nr rows; static. */
const struct syscall_schema *syscall_schema_table(size_t *ret_nr);

/*
 * The row that the event @event_name ("sys_enter_mmap") is one of, and which of the two it is.
 * Returns NULL where there is none.
 */
const struct syscall_schema *syscall_schema_parse_event(const char *event_name, bool *ret_is_exit);

#endif
