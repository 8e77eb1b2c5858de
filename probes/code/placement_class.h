/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is said of a probe's instruction, and of a store, on every architecture. */
#ifndef LEAKTOOLS_PROBES_PLACEMENT_CLASS_H
#define LEAKTOOLS_PROBES_PLACEMENT_CLASS_H

#include <stddef.h>
#include <stdint.h>

/* How the kernel runs the instruction under a probe, the cheapest first. */
enum placement_class {
	PLACEMENT_EMULATED, /* in the trap of the breakpoint */
	PLACEMENT_STEPPED,  /* in a second trap */
	PLACEMENT_REFUSED,  /* not at all, or in a way that harms the program */
	PLACEMENT_UNKNOWN,  /* not decoded */
};

#define PLACEMENT_TEXT_MAX 64

/* The instruction at a probe, as shown to the user. */
struct placement_instruction {
	enum placement_class class;
	char text[PLACEMENT_TEXT_MAX]; /* in AT&T syntax; "?" if unknown */
};

/* "emulated", "stepped", "refused" or "?". */
const char *placement_class_name(enum placement_class class);

/* A store of a 64-bit register through a pointer. */
struct store_site {
	size_t offset;		   /* in the function, in bytes */
	const char *base_register; /* holds the address; as in tracefs, without '%' */
	const char *value_register;
};

#endif
