/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs whose blocks are held, or not, in ways that they know. They print a line "case NAME
 * CLASS 0xADDRESS" for each block, CLASS being leakscan's word, then "ready PID", and wait for a
 * line on stdin. The address is nowhere in the process but where the case says.
 */
#ifndef LEAKTOOLS_TARGETS_REACH_H
#define LEAKTOOLS_TARGETS_REACH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REACH_CASE __attribute__((noinline))

/* The text is made digit by digit: nothing keeps the number. */
static __attribute__((unused)) REACH_CASE void expect(const char *name, const char *expected,
						      const volatile void *block)
{
	char line[128];
	int len = snprintf(line, sizeof(line), "case %s %s 0x%" PRIxPTR "\n", name, expected,
			   (uintptr_t)block);

	if (write(STDOUT_FILENO, line, (size_t)len) != len)
		abort();
}

/* Overwrites what calls have left below the stack pointer. */
static REACH_CASE void clear_stack(void)
{
	volatile char bytes[65536];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 0;
}

static inline void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

/* A block that the compiler knows nothing about. */
static REACH_CASE void *block_of(size_t size)
{
	return need(calloc(1, size));
}

static REACH_CASE void wait_now(void)
{
	char line[32];
	int len = snprintf(line, sizeof(line), "ready %d\n", getpid());

	if (write(STDOUT_FILENO, line, (size_t)len) != len)
		abort();
	while (read(STDIN_FILENO, line, 1) < 0)
		;
}

static REACH_CASE void wait_for_line(void)
{
	clear_stack();
	wait_now();
	clear_stack(); /* no tail call: the frame stays */
}

#endif
