/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes that a program has for leakrec, by hand, in C or C++:
 *
 *	#include <leaktools/leak_probes.h>
 *
 *	LEAK_MARK("after request");
 *	LEAK_ALLOC(slot, sizeof(*slot));
 *	LEAK_FREE(slot);
 *
 * A probe is a nop, and a note in the file that says where it is: nothing is linked or called, and
 * while nobody records it costs what a nop costs. On processors other than x86-64 and AArch64 it is
 * nothing at all.
 *
 * This file is in the public domain as far as the law permits that: it may be copied into any
 * program, under any licence.
 */
#ifndef LEAKTOOLS_LEAK_PROBES_H
#define LEAKTOOLS_LEAK_PROBES_H

/*
 * LEAK_MARK(TEXT): a moment between which and others `leakparse --diff` tells what changed. TEXT is
 * a C string of at most 63 bytes (what is longer is cut off), evaluated also while nobody records.
 */
#define LEAK_MARK(text) LEAK_PROBES_1_("leak_mark", (const char *)(text))

/*
 * LEAK_ALLOC(PTR, SIZE), LEAK_FREE(PTR): the program's own allocator gives out SIZE bytes at PTR,
 * and takes them back. leakrec records them beside malloc and free, and leakparse reports them as
 * resources of the kind "pool". Both arguments are evaluated also while nobody records; PTR may be
 * any pointer, and NULL counts for nothing.
 */
#define LEAK_ALLOC(ptr, size)                                                                      \
	LEAK_PROBES_2_("leak_alloc", (const void *)(ptr), (unsigned long)(size))
#define LEAK_FREE(ptr) LEAK_PROBES_1_("leak_free", (const void *)(ptr))

/*
 * The notes are those of SystemTap's <sys/sdt.h>, version 3, so that other tools list and use the
 * probes, too (perf, bpftrace, gdb): provider "leaktools". An argument is in the register in which
 * a call has it. The nop has one byte: the kernel emulates that at all places, but turns one of
 * five bytes into a call (Linux 6.18), which overwrites what a leaf function keeps below its stack
 * pointer.
 */
#define LEAK_PROBES_ASM_(name, arguments)                                                          \
	"990:\tnop\n"                                                                              \
	"\t.pushsection .note.stapsdt,\"?\",\"note\"\n"                                            \
	"\t.balign 4\n"                                                                            \
	"\t.4byte 992f-991f, 994f-993f, 3\n"                                                       \
	"991:\t.asciz \"stapsdt\"\n"                                                               \
	"992:\t.balign 4\n"                                                                        \
	"993:\t.8byte 990b\n"                                                                      \
	"\t.8byte _.stapsdt.base\n"                                                                \
	"\t.8byte 0\n"                                                                             \
	"\t.asciz \"leaktools\"\n"                                                                 \
	"\t.asciz \"" name "\"\n"                                                                  \
	"\t.asciz \"" arguments "\"\n"                                                             \
	"994:\t.balign 4\n"                                                                        \
	"\t.popsection\n"                                                                          \
	"\t.ifndef _.stapsdt.base\n"                                                               \
	"\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                  \
	"\t.weak _.stapsdt.base\n"                                                                 \
	"\t.hidden _.stapsdt.base\n"                                                               \
	"_.stapsdt.base:\t.space 1\n"                                                              \
	"\t.size _.stapsdt.base, 1\n"                                                              \
	"\t.popsection\n"                                                                          \
	"\t.endif\n"

/* "memory": what the argument points to is there to be read. */
#if defined(__x86_64__) && !defined(__ILP32__)
#define LEAK_PROBES_1_(name, argument)                                                             \
	__asm__ __volatile__(LEAK_PROBES_ASM_(name, "8@%%rdi")::"D"(argument) : "memory")
#define LEAK_PROBES_2_(name, first, second)                                                        \
	__asm__ __volatile__(LEAK_PROBES_ASM_(name, "8@%%rdi 8@%%rsi")::"D"(first), "S"(second)    \
			     : "memory")
#elif defined(__aarch64__) && !defined(__ILP32__)
#define LEAK_PROBES_1_(name, argument)                                                             \
	do {                                                                                       \
		register __typeof__(argument) leak_probes_1 __asm__("x0") = (argument);            \
		__asm__ __volatile__(LEAK_PROBES_ASM_(name, "8@x0")::"r"(leak_probes_1)            \
				     : "memory");                                                  \
	} while (0)
#define LEAK_PROBES_2_(name, first, second)                                                        \
	do {                                                                                       \
		register __typeof__(first) leak_probes_1 __asm__("x0") = (first);                  \
		register __typeof__(second) leak_probes_2 __asm__("x1") = (second);                \
		__asm__ __volatile__(LEAK_PROBES_ASM_(name, "8@x0 8@x1")::"r"(leak_probes_1),      \
				     "r"(leak_probes_2)                                            \
				     : "memory");                                                  \
	} while (0)
#else
#define LEAK_PROBES_1_(name, argument)	    ((void)(argument))
#define LEAK_PROBES_2_(name, first, second) ((void)(first), (void)(second))
#endif

#endif
