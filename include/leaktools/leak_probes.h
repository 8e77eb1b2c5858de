/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes for leakrec that a C or C++ program has in its source:
 *
 *	#include <leaktools/leak_probes.h>
 *
 *	LEAK_MARK("after request");
 *	LEAK_ALLOC(slot, sizeof(*slot));
 *	LEAK_FREE(slot);
 *
 * A probe is a nop, and a note in the file that says where the nop is. Nothing is linked or called,
 * and while nothing records, it costs as much as a nop. On processors other than x86-64 and AArch64
 * the macros do nothing.
 *
 * This file is in the public domain as far as the law permits: it may be copied into any program,
 * under any licence.
 */
#ifndef LEAKTOOLS_LEAK_PROBES_H
#define LEAKTOOLS_LEAK_PROBES_H

/*
 * LEAK_MARK(TEXT): marks a moment. `leakparse --diff` shows what changed between marks. TEXT is a C
 * string of at most 63 bytes (the rest is cut off). It is evaluated also while nothing records.
 */
#define LEAK_MARK(text) LEAK_PROBES_1_("leak_mark", (const char *)(text))

/*
 * LEAK_ALLOC(PTR, SIZE), LEAK_FREE(PTR): the program's own allocator gives out SIZE bytes at PTR,
 * and takes them back. leakrec records them beside malloc and free, and leakparse reports them as
 * resources of the kind "pool". The arguments are evaluated also while nothing records. PTR may be
 * any pointer; NULL is ignored.
 */
#define LEAK_ALLOC(ptr, size)                                                                      \
	LEAK_PROBES_2_("leak_alloc", (const void *)(ptr), (unsigned long)(size))
#define LEAK_FREE(ptr) LEAK_PROBES_1_("leak_free", (const void *)(ptr))

/*
 * The notes have the format of SystemTap's <sys/sdt.h>, version 3, so that other tools list and use
 * the probes, too (perf, bpftrace, gdb). The provider is "leaktools". An argument is in the
 * register in which a call has it. The nop has one byte. The kernel emulates that at any place, but
 * turns a nop of five bytes into a call (Linux 6.18), which overwrites what a leaf function keeps
 * below its stack pointer.
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

/* "memory": the program must have stored what the argument points to. */
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
