/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where probes go: on code captured from libcs, on code in the manner of compilers that was
 * assembled for a rule each, and on the allocators of this machine.
 */
#include "probes/x86/code_flow.h"
#include "probes/x86/code_jumps.h"
#include "probes/x86/placement.h"
#include "probes/sites/probe_arch.h"
#include "probes/plan/allocator_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct placement_kernel old_kernel = {.emulates_long_nops = false};
static const struct placement_kernel new_kernel = {.emulates_long_nops = true};

struct code_case {
	const char *name;
	const uint8_t *code;
	size_t size_bytes;
	int nr_args;
	uint64_t offset;
	enum placement_class class;
};

#define CODE(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* free of glibc 2.36 (Debian 12), whole: test %rdi,%rdi; je ... */
static const uint8_t glibc_free[] = {
	0x48, 0x85, 0xff, 0x0f, 0x84, 0xbf, 0x00, 0x00, 0x00, 0x55, 0x48, 0x8d, 0x77, 0xf0, 0x53,
	0x48, 0x83, 0xec, 0x18, 0x48, 0x8b, 0x1d, 0xd6, 0x9e, 0x13, 0x00, 0x48, 0x8b, 0x47, 0xf8,
	0x64, 0x8b, 0x2b, 0xa8, 0x02, 0x75, 0x5b, 0x48, 0x8b, 0x15, 0x5c, 0x9e, 0x13, 0x00, 0x64,
	0x48, 0x83, 0x3a, 0x00, 0x0f, 0x84, 0x99, 0x00, 0x00, 0x00, 0x48, 0x8d, 0x3d, 0x32, 0xad,
	0x13, 0x00, 0xa8, 0x04, 0x74, 0x26, 0x48, 0x8b, 0x15, 0x37, 0xa4, 0x13, 0x00, 0x48, 0x8d,
	0x04, 0x95, 0x00, 0x00, 0x00, 0x00, 0x48, 0xf7, 0xd8, 0x48, 0x85, 0xd2, 0x48, 0xc7, 0xc2,
	0x00, 0x00, 0x00, 0xfc, 0x48, 0x0f, 0x44, 0xc2, 0x48, 0x21, 0xf0, 0x48, 0x8b, 0x38, 0x31,
	0xd2, 0xe8, 0xc1, 0xd1, 0xff, 0xff, 0x64, 0x89, 0x2b, 0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d,
	0xc3, 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00, 0x8b, 0x15, 0x12, 0xa4, 0x13, 0x00, 0x85,
	0xd2, 0x75, 0x26, 0x48, 0x39, 0x05, 0xcf, 0xa3, 0x13, 0x00, 0x73, 0x1d, 0x48, 0x3d, 0x00,
	0x00, 0x00, 0x02, 0x77, 0x15, 0x48, 0x83, 0xe0, 0xf8, 0x48, 0x89, 0x05, 0xba, 0xa3, 0x13,
	0x00, 0x48, 0x01, 0xc0, 0x48, 0x89, 0x05, 0xa0, 0xa3, 0x13, 0x00, 0x48, 0x89, 0xf7, 0xe8,
	0x08, 0xba, 0xff, 0xff, 0x64, 0x89, 0x2b, 0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3, 0x66,
	0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3, 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00, 0x48, 0x8b,
	0x15, 0xb9, 0x9d, 0x13, 0x00, 0x48, 0x89, 0x3c, 0x24, 0x64, 0x80, 0x3a, 0x00, 0x0f, 0x85,
	0x52, 0xff, 0xff, 0xff, 0x48, 0x89, 0x74, 0x24, 0x08, 0xe8, 0x31, 0xf2, 0xff, 0xff, 0x48,
	0x8b, 0x3c, 0x24, 0x48, 0x8b, 0x74, 0x24, 0x08, 0x48, 0x8b, 0x47, 0xf8, 0xe9, 0x36, 0xff,
	0xff, 0xff};

/* The beginning of its malloc: push %r12; push %rbp; push %rbx; mov %rdi,%rbx ... */
static const uint8_t glibc_malloc[] = {
	0x41, 0x54, 0x55, 0x53, 0x48, 0x89, 0xfb, 0x48, 0x83, 0xec, 0x10, 0x80, 0x3d,
	0x46, 0x1b, 0x14, 0x00, 0x00, 0x0f, 0x84, 0xf8, 0x01, 0x00, 0x00, 0x48, 0x85,
	0xdb, 0x0f, 0x88, 0xfd, 0x01, 0x00, 0x00, 0x48, 0x8d, 0x43, 0x17, 0x31, 0xed,
	0x48, 0x83, 0xf8, 0x1f, 0x76, 0x0c, 0x48, 0x83, 0xe0, 0xf0, 0x48, 0x8d, 0x68,
	0xef, 0x48, 0xc1, 0xed, 0x04, 0x4c, 0x8b, 0x25, 0x08, 0xa4, 0x13, 0x00};

static const struct code_case cases[] = {
	{"glibc_free", glibc_free, sizeof(glibc_free), 1, 3, PLACEMENT_EMULATED},
	{"glibc_malloc", glibc_malloc, sizeof(glibc_malloc), 1, 0, PLACEMENT_EMULATED},
	/* endbr64; test %rdi,%rdi; je 1f; push %rbp; mov %rdi,%rbp; pop %rbp; 1: ret */
	{"cet_free",
	 CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x74, 0x05, 0x55, 0x48, 0x89, 0xfd, 0x5d,
	      0xc3),
	 1, 7, PLACEMENT_EMULATED},
	/* endbr64; push %r12; push %rbp; mov %rdi,%rbp; pop %rbp; pop %r12; ret */
	{"cet_malloc",
	 CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x54, 0x55, 0x48, 0x89, 0xfd, 0x5d, 0x41, 0x5c, 0xc3),
	 1, 4, PLACEMENT_EMULATED},
	/* endbr64; mov %rdi,%rax; mul %rsi; jo 1f; push %rbx; pop %rbx; 1: ret */
	{"cet_calloc",
	 CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8, 0x48, 0xf7, 0xe6, 0x70, 0x02, 0x53, 0x5b,
	      0xc3),
	 2, 10, PLACEMENT_EMULATED},
	/* endbr64; mov %rsi,%rax; mul %rdi; jo 1f; xor %eax,%eax; 1: ret */
	{"cet_divided",
	 CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf0, 0x48, 0xf7, 0xe7, 0x70, 0x02, 0x31, 0xc0,
	      0xc3),
	 3, 0, PLACEMENT_STEPPED},
	/* endbr64; mov %rdi,%rax; mov %rsi,%rdi; mov %rax,%rsi; push %rbx; pop %rbx; ret */
	{"cet_moved",
	 CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xc6, 0x53,
	      0x5b, 0xc3),
	 2, 0, PLACEMENT_STEPPED},
	/* endbr64; jmp .+200 */
	{"cet_forward", CODE(0xf3, 0x0f, 0x1e, 0xfa, 0xe9, 0xc3, 0x00, 0x00, 0x00), 2, 4,
	 PLACEMENT_EMULATED},
	/* endbr64; sub $0x18,%rsp; call 1f; add $0x18,%rsp; 1: ret */
	{"cet_frame",
	 CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x18, 0xe8, 0x04, 0x00, 0x00, 0x00, 0x48,
	      0x83, 0xc4, 0x18, 0xc3),
	 1, 0, PLACEMENT_STEPPED},
	/* mov %rdi,%rax; lea 8(%rdi),%rcx; push %rbx; mov %rax,%rbx; pop %rbx; ret */
	{"moved_before_push",
	 CODE(0x48, 0x89, 0xf8, 0x48, 0x8d, 0x4f, 0x08, 0x53, 0x48, 0x89, 0xc3, 0x5b, 0xc3), 1, 7,
	 PLACEMENT_EMULATED},
	/* mov $1,%dil; push %rbx; pop %rbx; ret */
	{"part_written", CODE(0x40, 0xb7, 0x01, 0x53, 0x5b, 0xc3), 1, 0, PLACEMENT_STEPPED},
	/* mov $1,%esi; push %rbx; pop %rbx; ret */
	{"half_written", CODE(0xbe, 0x01, 0x00, 0x00, 0x00, 0x53, 0x5b, 0xc3), 2, 0,
	 PLACEMENT_STEPPED},
	/* mov %rsi,%rax; xchg %rsi,%rcx; push %rbx; pop %rbx; ret */
	{"second_moved", CODE(0x48, 0x89, 0xf0, 0x48, 0x87, 0xf1, 0x53, 0x5b, 0xc3), 2, 0,
	 PLACEMENT_STEPPED},
	/* rep stosb; push %rbx; pop %rbx; ret */
	{"strings", CODE(0xf3, 0xaa, 0x53, 0x5b, 0xc3), 1, 0, PLACEMENT_STEPPED},
	/* mov %rdi,%rax; syscall; push %rbx; pop %rbx; ret */
	{"system_call", CODE(0x48, 0x89, 0xf8, 0x0f, 0x05, 0x53, 0x5b, 0xc3), 1, 0,
	 PLACEMENT_STEPPED},
	/* test %rdi,%rdi; 1: je 2f; sub $1,%rcx; jmp 1b; 2: ret */
	{"loop_to_place",
	 CODE(0x48, 0x85, 0xff, 0x74, 0x06, 0x48, 0x83, 0xe9, 0x01, 0xeb, 0xf8, 0xc3), 1, 0,
	 PLACEMENT_STEPPED},
	/* xor %eax,%eax; 1: test %rcx,%rcx; je 2f; sub $1,%rcx; jmp 1b; 2: ret */
	{"loop_between",
	 CODE(0x31, 0xc0, 0x48, 0x85, 0xc9, 0x74, 0x06, 0x48, 0x83, 0xe9, 0x01, 0xeb, 0xf5, 0xc3),
	 1, 0, PLACEMENT_STEPPED},
	/* 1: test %rcx,%rcx; je 2f; sub $1,%rcx; jmp 1b; 2: ret */
	{"loop_to_entry",
	 CODE(0x48, 0x85, 0xc9, 0x74, 0x06, 0x48, 0x83, 0xe9, 0x01, 0xeb, 0xf5, 0xc3), 1, 3,
	 PLACEMENT_EMULATED},
	/* xor %eax,%eax; 1: test %rax,%rax; je 2f; loop 1b; 2: ret */
	{"loop_instruction", CODE(0x31, 0xc0, 0x48, 0x85, 0xc0, 0x74, 0x02, 0xe2, 0xf9, 0xc3), 1, 0,
	 PLACEMENT_STEPPED},
	/* test %rdi,%rdi; je 1f; lea 2f(%rip),%rdx; movslq (%rdx,%rdi,4),%rax; add %rdx,%rax; jmp
	 *%rax; 1: ret; 2: .long 0 */
	{"switch_table",
	 CODE(0x48, 0x85, 0xff, 0x74, 0x10, 0x48, 0x8d, 0x15, 0x0a, 0x00, 0x00, 0x00, 0x48, 0x63,
	      0x04, 0xba, 0x48, 0x01, 0xd0, 0xff, 0xe0, 0xc3, 0x00, 0x00, 0x00, 0x00),
	 1, 0, PLACEMENT_STEPPED},
	/* endbr64; test %rdi,%rdi; je 1f; lea 2f(%rip),%rdx; movslq (%rdx,%rdi,4),%rax; add
	   %rdx,%rax; notrack jmp *%rax; 1: ret; 2: .long 0 */
	{"cet_table",
	 CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x74, 0x11, 0x48, 0x8d, 0x15, 0x0b, 0x00,
	      0x00, 0x00, 0x48, 0x63, 0x04, 0xba, 0x48, 0x01, 0xd0, 0x3e, 0xff, 0xe0, 0xc3, 0x00,
	      0x00, 0x00, 0x00),
	 1, 0, PLACEMENT_STEPPED},
	/* endbr64; test %rdi,%rdi; je 1f; mov 0x1000(%rip),%rax; jmp *%rax; 1: ret */
	{"cet_hook",
	 CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x74, 0x09, 0x48, 0x8b, 0x05, 0x00, 0x10,
	      0x00, 0x00, 0xff, 0xe0, 0xc3),
	 1, 7, PLACEMENT_EMULATED},
	/* test %rdi,%rdi; je 1f; jmp *0x1000(%rip); 1: ret */
	{"got_tail", CODE(0x48, 0x85, 0xff, 0x74, 0x06, 0xff, 0x25, 0x00, 0x10, 0x00, 0x00, 0xc3),
	 1, 3, PLACEMENT_EMULATED},
	/* sub $0x18,%rsp; test %rdi,%rdi; je 1f; 1: add $0x18,%rsp; ret */
	{"frame_first",
	 CODE(0x48, 0x83, 0xec, 0x18, 0x48, 0x85, 0xff, 0x74, 0x00, 0x48, 0x83, 0xc4, 0x18, 0xc3),
	 1, 0, PLACEMENT_STEPPED},
	/* mov %rdi,(%rsp); test %rdi,%rdi; je 1f; 1: ret */
	{"return_overwritten", CODE(0x48, 0x89, 0x3c, 0x24, 0x48, 0x85, 0xff, 0x74, 0x00, 0xc3), 1,
	 0, PLACEMENT_STEPPED},
	/* leave; test %rdi,%rdi; je 1f; 1: ret */
	{"frame_pointer_left", CODE(0xc9, 0x48, 0x85, 0xff, 0x74, 0x00, 0xc3), 1, 0,
	 PLACEMENT_STEPPED},
	/* test %rdi,%rdi; ud2; je 1f; 1: ret */
	{"stops", CODE(0x48, 0x85, 0xff, 0x0f, 0x0b, 0x74, 0x00, 0xc3), 1, 0, PLACEMENT_STEPPED},
	/* test %rdi,%rdi; je 1f; (bad); 1: ret */
	{"undecoded", CODE(0x48, 0x85, 0xff, 0x74, 0x01, 0x06, 0xc3), 1, 0, PLACEMENT_STEPPED},
	/* mov %rdi,-8(%rsp); nop5; push %rbx; pop %rbx; ret */
	{"red_zone",
	 CODE(0x48, 0x89, 0x7c, 0x24, 0xf8, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x53, 0x5b, 0xc3), 1, 0,
	 PLACEMENT_STEPPED},
	/* test %rdi,%rdi; ds je 1f; push %rbx; pop %rbx; 1: ret */
	{"hinted", CODE(0x48, 0x85, 0xff, 0x3e, 0x74, 0x02, 0x53, 0x5b, 0xc3), 1, 0,
	 PLACEMENT_STEPPED},
	/* test %rdi,%rdi; data16 je 1f; push %rbx; pop %rbx; 1: ret */
	{"sixteen_bit", CODE(0x48, 0x85, 0xff, 0x66, 0x74, 0x02, 0x53, 0x5b, 0xc3), 1, 0,
	 PLACEMENT_STEPPED},
	/* xchg %r8,%rax; push %rbx; pop %rbx; ret */
	{"exchange_r8", CODE(0x41, 0x90, 0x53, 0x5b, 0xc3), 1, 2, PLACEMENT_EMULATED},
	/* push (%rdi); push %rbx; pop %rbx; pop %rbx; ret */
	{"pushes_memory", CODE(0xff, 0x37, 0x53, 0x5b, 0x5b, 0xc3), 1, 0, PLACEMENT_STEPPED},
};

static void assert_place(const struct code_case *test, const struct placement_kernel *kernel)
{
	struct placement_instruction instruction;
	uint64_t offset = 99;

	assert_int_equal(
		placement_find_entry(test->code, test->size_bytes, test->nr_args, kernel, &offset),
		0);
	placement_describe(test->code + offset, test->size_bytes - offset, kernel, &instruction);
	if (offset != test->offset || instruction.class != test->class)
		fail_msg("%s: +0x%" PRIx64 " %s (%s), but it should be +0x%" PRIx64 " %s",
			 test->name, offset, placement_class_name(instruction.class),
			 instruction.text, test->offset, placement_class_name(test->class));
}

static void each_rule_holds(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_place(&cases[i], &old_kernel);
		assert_place(&cases[i], &new_kernel);
	}
}

/* Cut off anywhere, a function gets the place that it has, or the entry; never one behind the cut.
 */
static void cut_off_code_is_survived(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t size = 0; size <= cases[i].size_bytes; size++) {
			uint64_t offset = 99;

			assert_int_equal(placement_find_entry(cases[i].code, size, cases[i].nr_args,
							      &new_kernel, &offset),
					 0);
			assert_true(offset == 0 || offset < size);
		}
	}
}

static void long_nops_are_for_new_kernels(void **state)
{
	/* nop5; push %rbx; pop %rbx; ret, and the same behind an endbr64 */
	const struct code_case first_old = {"nop5, old",
					    CODE(0x0f, 0x1f, 0x44, 0, 0, 0x53, 0x5b, 0xc3), 1, 5,
					    PLACEMENT_EMULATED};
	const struct code_case cet_old = {
		"cet nop5, old",
		CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0, 0, 0x53, 0x5b, 0xc3), 1, 9,
		PLACEMENT_EMULATED};
	struct code_case first_new = first_old, cet_new = cet_old;

	first_new.offset = 0;
	cet_new.offset = 4;
	first_new.class = cet_new.class = PLACEMENT_NOP5;
	assert_place(&first_old, &old_kernel);
	assert_place(&cet_old, &old_kernel);
	assert_place(&first_new, &new_kernel);
	assert_place(&cet_new, &new_kernel);
}

/* As measured: docs/placement.md has the table. */
static void classes_are_the_kernels(void **state)
{
	const struct {
		const uint8_t *code;
		size_t size_bytes;
		enum placement_class on_old, on_new;
	} forms[] = {
		{CODE(0x90), PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{CODE(0x66, 0x90), PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{CODE(0xf3, 0x90), PLACEMENT_EMULATED, PLACEMENT_EMULATED}, /* pause */
		{CODE(0x0f, 0x1f, 0x00), PLACEMENT_STEPPED, PLACEMENT_EMULATED},
		{CODE(0x0f, 0x1f, 0x40, 0), PLACEMENT_STEPPED, PLACEMENT_EMULATED},
		{CODE(0x0f, 0x1f, 0x44, 0, 0), PLACEMENT_STEPPED, PLACEMENT_NOP5},
		{CODE(0x66, 0x0f, 0x1f, 0x44, 0, 0), PLACEMENT_STEPPED, PLACEMENT_EMULATED},
		{CODE(0x0f, 0x1f, 0x80, 0, 0, 0, 0), PLACEMENT_STEPPED, PLACEMENT_EMULATED},
		{CODE(0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0), PLACEMENT_STEPPED, PLACEMENT_EMULATED},
		{CODE(0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0), PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{CODE(0xf3, 0x0f, 0x1e, 0xfa), PLACEMENT_STEPPED, PLACEMENT_STEPPED}, /* endbr64 */
		{CODE(0x75, 0), PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{CODE(0x0f, 0x85, 0, 0, 0, 0), PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{CODE(0x66, 0x75, 0), PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{CODE(0x3e, 0x75, 0), PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{CODE(0xeb, 0), PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{CODE(0xf2, 0xeb, 0), PLACEMENT_EMULATED, PLACEMENT_EMULATED}, /* bnd jmp */
		{CODE(0xe9, 0, 0, 0, 0), PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{CODE(0xe8, 0, 0, 0, 0), PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{CODE(0xff, 0xe0), PLACEMENT_STEPPED, PLACEMENT_STEPPED}, /* jmp *%rax */
		{CODE(0xe2, 0), PLACEMENT_STEPPED, PLACEMENT_STEPPED},	  /* loop */
		{CODE(0xe3, 0), PLACEMENT_STEPPED, PLACEMENT_STEPPED},	  /* jrcxz */
		{CODE(0x55), PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{CODE(0x41, 0x54), PLACEMENT_EMULATED, PLACEMENT_EMULATED},
		{CODE(0x48, 0x55), PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{CODE(0x66, 0x55), PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{CODE(0xff, 0x34, 0x24), PLACEMENT_STEPPED, PLACEMENT_STEPPED}, /* push (%rsp) */
		{CODE(0x6a, 1), PLACEMENT_STEPPED, PLACEMENT_STEPPED},		/* push $1 */
		{CODE(0xc3), PLACEMENT_STEPPED, PLACEMENT_STEPPED},
		{CODE(0xc5, 0xf8, 0x77), PLACEMENT_STEPPED, PLACEMENT_STEPPED}, /* vzeroupper */
		{CODE(0x0f), PLACEMENT_UNKNOWN, PLACEMENT_UNKNOWN},
		{CODE(0x06), PLACEMENT_UNKNOWN, PLACEMENT_UNKNOWN},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct placement_instruction is;

		placement_describe(forms[i].code, forms[i].size_bytes, &old_kernel, &is);
		if (is.class != forms[i].on_old)
			fail_msg("%s: %s before 6.18", is.text, placement_class_name(is.class));
		placement_describe(forms[i].code, forms[i].size_bytes, &new_kernel, &is);
		if (is.class != forms[i].on_new)
			fail_msg("%s: %s from 6.18 on", is.text, placement_class_name(is.class));
	}
}

static void stores_move_only_with_their_registers(void **state)
{
	const struct {
		const char *name;
		const uint8_t *code;
		size_t size_bytes;
		uint64_t store, offset;
	} stores[] = {
		/* test %rax,%rax; je 1f; mov %rax,(%rbx); xor %eax,%eax; jmp 1f; nop; 1: ret */
		{"value lost",
		 CODE(0x48, 0x85, 0xc0, 0x74, 0x08, 0x48, 0x89, 0x03, 0x31, 0xc0, 0xeb, 0x01, 0x90,
		      0xc3),
		 5, 5},
		/* mov %rcx,(%rbx); xor %eax,%eax; jmp 1f; 1: ret */
		{"then jump", CODE(0x48, 0x89, 0x0b, 0x31, 0xc0, 0xeb, 0x00, 0xc3), 0, 5},
		/* mov %rdx,(%rbp); xor %eax,%eax; pop %rbx; push %rax; pop %rax; ret */
		{"then push", CODE(0x48, 0x89, 0x55, 0x00, 0x31, 0xc0, 0x5b, 0x50, 0x58, 0xc3), 0,
		 7},
		/* mov %rdx,(%rbp); xor %eax,%eax; pop %rbx; pop %rbp; push %rax; ret */
		{"base lost", CODE(0x48, 0x89, 0x55, 0x00, 0x31, 0xc0, 0x5b, 0x5d, 0x50, 0xc3), 0,
		 0},
		/* test %rdi,%rdi; je 1f; mov %rcx,(%rbx); xor %eax,%eax; 1: jmp 2f; 2: ret */
		{"joined",
		 CODE(0x48, 0x85, 0xff, 0x74, 0x05, 0x48, 0x89, 0x0b, 0x31, 0xc0, 0xeb, 0x00, 0xc3),
		 5, 5},
		/* mov %rcx,(%rbx); nop5; ret: the trampoline pushes over the red zone */
		{"nop5", CODE(0x48, 0x89, 0x0b, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3), 0, 0},
	};

	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		uint64_t offset = 99;

		assert_int_equal(placement_find_store(stores[i].code, stores[i].size_bytes,
						      stores[i].store, &new_kernel, &offset),
				 0);
		if (offset != stores[i].offset)
			fail_msg("%s: +0x%" PRIx64, stores[i].name, offset);
	}
}

/* A cold part's jump, a conditional one, and a call: each enters the span that it goes to. */
static void jumps_from_elsewhere_are_seen(void **state)
{
	/* At 0x1000: jmp 0x503; jne 0x600; call 0x701; and one that goes just behind a span. */
	static const uint8_t code[] = {
		0xe9, 0xfe, 0xf4, 0xff, 0xff, 0x0f, 0x85, 0xf5, 0xf5, 0xff, 0xff,
		0xe8, 0xf1, 0xf6, 0xff, 0xff, 0xe9, 0xef, 0xf7, 0xff, 0xff,
	};
	struct code_span spans[] = {
		{.first = 0x501, .last = 0x503},
		{.first = 0x600, .last = 0x600},
		{.first = 0x701, .last = 0x709},
		{.first = 0x801, .last = 0x803},
		{.first = 0x500, .last = 0x502},
		{.first = 0x503, .last = 0x503, .own_begin = 0x1000, .own_end = 0x1001},
		{.first = 0x503, .last = 0x503, .own_begin = 0xfff, .own_end = 0x1000},
		{.first = 0x503, .last = 0x503, .own_begin = 0x1001, .own_end = 0x1100},
	};

	code_jumps_scan(code, sizeof(code), 0x1000, spans, sizeof(spans) / sizeof(spans[0]));
	assert_true(spans[0].is_entered);
	assert_true(spans[1].is_entered);
	assert_true(spans[2].is_entered);
	assert_false(spans[3].is_entered);
	assert_false(spans[4].is_entered);
	assert_false(spans[5].is_entered);
	assert_true(spans[6].is_entered);
	assert_true(spans[7].is_entered);
	spans[0].is_entered = false;
	code_jumps_scan(code, 4, 0x1000, spans, 1);
	assert_false(spans[0].is_entered);
}

/* AArch64: stp x29,x30,[sp,#-48]!; mov x29,sp; stp x19,x20,[sp,#16]; mov x19,x0; ... ret */
static void aarch64_gets_the_entry(void **state)
{
	static const uint8_t code[] = {
		0xfd, 0x7b, 0xbd, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0xf3, 0x53, 0x01, 0xa9, 0xf3, 0x03,
		0x00, 0xaa, 0x20, 0x00, 0x00, 0xb4, 0xfd, 0x7b, 0xc3, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
	};
	struct placement_instruction instruction;
	struct store_site stores[1];
	uint64_t offset = 99;

	assert_int_equal(
		probe_arch_place_entry(&probe_arch_aarch64, code, sizeof(code), 1, &offset), 0);
	assert_int_equal(offset, 0);
	assert_int_equal(probe_arch_find_stores(&probe_arch_aarch64, code, sizeof(code), stores, 1),
			 0);
	probe_arch_describe(&probe_arch_aarch64, code, sizeof(code), &instruction);
	assert_int_equal(instruction.class, PLACEMENT_UNKNOWN);
	assert_string_equal(instruction.text, "?");
	assert_string_equal(probe_arch_aarch64.arguments[0], "%x0");
	assert_string_equal(probe_arch_aarch64.arguments[1], "%x1");
	assert_string_equal(probe_arch_aarch64.arguments[2], "%x2");
	assert_string_equal(probe_arch_aarch64.caller, "%x30");
}

static void x86_64_has_its_registers(void **state)
{
	assert_string_equal(probe_arch_x86_64.arguments[0], "%di");
	assert_string_equal(probe_arch_x86_64.arguments[1], "%si");
	assert_string_equal(probe_arch_x86_64.arguments[2], "%dx");
	assert_string_equal(probe_arch_x86_64.caller, "+0(%sp)");
}

static void size_limits_hold(void **state)
{
	static const uint8_t code[] = {0xc3};
	uint64_t offset = 99;

	assert_int_equal(placement_find_entry(code, 0, 1, &new_kernel, &offset), 0);
	assert_int_equal(offset, 0);
	assert_int_equal(
		placement_find_entry(code, CODE_FLOW_MAX_BYTES + 1, 1, &new_kernel, &offset),
		-E2BIG);
	assert_int_equal(placement_find_store(code, sizeof(code), 1000, &new_kernel, &offset), 0);
	assert_int_equal(offset, 1000);
}

/* Whatever the bytes: the place is an instruction of the kernel's list, or the entry. */
static void random_bytes_are_survived(void **state)
{
	uint32_t seed = 4711;

	for (int round = 0; round < 5000; round++) {
		struct placement_instruction is;
		uint8_t code[64];
		uint64_t offset = 99;

		for (size_t i = 0; i < sizeof(code); i++) {
			seed = seed * 1103515245u + 12345u;
			code[i] = seed >> 16;
		}
		assert_int_equal(placement_find_entry(code, sizeof(code), 2, &new_kernel, &offset),
				 0);
		assert_true(offset < sizeof(code));
		placement_describe(code + offset, sizeof(code) - offset, &new_kernel, &is);
		assert_true(offset == 0 || is.class <= PLACEMENT_EMULATED);
		placement_find_store(code, sizeof(code), seed % sizeof(code), &new_kernel, &offset);
		assert_true(offset < sizeof(code));
	}
}

/* Every allocator on this machine: a place is in its function, and cheaper than the entry. */
static void real_allocators_are_placed(void **state)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
		"/lib/ld-musl-x86_64.so.1",	   "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
		"/usr/lib64/libjemalloc.so.2",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct probe_set set;

		if (access(paths[i], R_OK) != 0 || allocator_plan_file(&set, paths[i], false))
			continue;
		for (size_t j = 0; j < set.files[0].nr_probes; j++) {
			const struct probe *probe = &set.files[0].probes[j];
			uint64_t place = probe->offset - probe->function_offset;

			if (probe->point == PROBE_EXIT) {
				assert_string_equal(probe->instruction.text, "ret");
				continue;
			}
			printf("%s: %s+0x%" PRIx64 " %s %s\n", paths[i], probe->event, place,
			       placement_class_name(probe->instruction.class),
			       probe->instruction.text);
			assert_true(place < CODE_FLOW_MAX_BYTES);
			if (probe->point != PROBE_STORE)
				assert_true(place == 0 ||
					    probe->instruction.class <= PLACEMENT_EMULATED);
			if (probe->point == PROBE_RETURN)
				assert_int_equal(probe->offset, probe[-1].offset);
		}
		probe_set_deinit(&set);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_holds),
		cmocka_unit_test(cut_off_code_is_survived),
		cmocka_unit_test(long_nops_are_for_new_kernels),
		cmocka_unit_test(classes_are_the_kernels),
		cmocka_unit_test(stores_move_only_with_their_registers),
		cmocka_unit_test(jumps_from_elsewhere_are_seen),
		cmocka_unit_test(aarch64_gets_the_entry),
		cmocka_unit_test(x86_64_has_its_registers),
		cmocka_unit_test(size_limits_hold),
		cmocka_unit_test(random_bytes_are_survived),
		cmocka_unit_test(real_allocators_are_placed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
