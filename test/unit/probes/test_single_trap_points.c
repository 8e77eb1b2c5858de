/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The points where one probe sees a whole call, on code that was assembled for a rule each. What
 * they tell of real calls is in test_single_trap_calls.c.
 */
#include "probes/x86/code_flow.h"
#include "probes/sites/single_trap_points.h"
#include "probes/x86/register_state.h"

#include "common/scope.h"
#include "test/support/code_file.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_CODE 4096

static const struct placement_kernel kernel = {.emulates_long_nops = false};

struct expected_point {
	uint64_t offset;
	int size_register, block_register;
	uint32_t frame_bytes;
	int32_t saved[SINGLE_TRAP_NR_SAVED];
};

struct points_case {
	const char *name;
	const uint8_t *code; /* the function, and what it calls */
	size_t size_bytes;
	uint64_t function_bytes;
	struct expected_point points[3];
	int nr_points;
};

#define CODE(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* Behind the bar is other code of the file. */
static const struct points_case cases[] = {
	/* push %rbx; mov %rdi,%rbx; mov (%rsi),%rax; test %rax,%rax; je 2f; mov (%rax),%rcx; test
	   %rcx,%rcx; je 1f; mov %rcx,8(%rdx); 1: pop %rbx; ret; 2: mov %rbx,%rdi; call helper; jmp
	   1b | helper: ret */
	{"two_paths",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x0e, 0x48, 0x8b,
	      0x08, 0x48, 0x85, 0xc9, 0x74, 0x04, 0x48, 0x89, 0x4a, 0x08, 0x5b, 0xc3, 0x48, 0x89,
	      0xdf, 0xe8, 0x02, 0x00, 0x00, 0x00, 0xeb, 0xf4, 0xc3),
	 36,
	 {{18, REGISTER_BX, REGISTER_AX, 8, {0, -1, -1, -1, -1, -1}},
	  {34, REGISTER_BX, REGISTER_AX, 8, {0, -1, -1, -1, -1, -1}}},
	 2},
	/* sub $8,%rsp; call helper; test %rax,%rax; je 1f; movq $0,(%rax); 1: add $8,%rsp; ret |
	   helper: ret */
	{"size_before_block",
	 CODE(0x48, 0x83, 0xec, 0x08, 0xe8, 0x11, 0x00, 0x00, 0x00, 0x48, 0x85, 0xc0, 0x74, 0x07,
	      0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3, 0xc3),
	 26,
	 {{4, REGISTER_DI, SINGLE_TRAP_NOWHERE, 8, {-1, -1, -1, -1, -1, -1}},
	  {12, SINGLE_TRAP_NOWHERE, REGISTER_AX, 8, {-1, -1, -1, -1, -1, -1}}},
	 2},
	/* push %rbx; mov %rdi,%rbx; test %rdi,%rdi; js 2f; call helper; test %rax,%rax; je 1f; movq
	   $0,(%rax); 1: pop %rbx; ret; 2: xor %eax,%eax; pop %rbx; ret | helper: ret */
	{"failing_path",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0x48, 0x85, 0xff, 0x78, 0x13, 0xe8, 0x12, 0x00, 0x00, 0x00,
	      0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5b, 0xc3,
	      0x31, 0xc0, 0x5b, 0xc3, 0xc3),
	 32,
	 {{17, REGISTER_BX, REGISTER_AX, 8, {0, -1, -1, -1, -1, -1}},
	  {28, REGISTER_BX, SINGLE_TRAP_IS_NULL, 8, {0, -1, -1, -1, -1, -1}}},
	 2},
	/* push %rbx; mov %rdi,%rbx; test %rdi,%rdi; js 2f; call helper; test %rax,%rax; je 1f; movq
	   $0,(%rax); 1: pop %rbx; ret; 2: movl $12,(%rsi); jmp 3f; 3: xor %eax,%eax; pop %rbx; ret
	   | helper: ret */
	{"failing_jump",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0x48, 0x85, 0xff, 0x78, 0x13, 0xe8, 0x1a, 0x00, 0x00, 0x00,
	      0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5b, 0xc3,
	      0xc7, 0x06, 0x0c, 0x00, 0x00, 0x00, 0xeb, 0x00, 0x31, 0xc0, 0x5b, 0xc3, 0xc3),
	 40,
	 {{17, REGISTER_BX, REGISTER_AX, 8, {0, -1, -1, -1, -1, -1}},
	  {34, REGISTER_BX, SINGLE_TRAP_IS_NULL, 8, {0, -1, -1, -1, -1, -1}}},
	 2},
	/* push %rbx; mov %rdi,%rbx; test %rdi,%rdi; js 2f; call helper; test %rax,%rax; je 1f; movq
	   $0,(%rax); 1: pop %rbx; ret; 2: mov $16,%eax; pop %rbx; ret | helper: ret */
	{"other_than_null",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0x48, 0x85, 0xff, 0x78, 0x13, 0xe8, 0x15, 0x00, 0x00, 0x00,
	      0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5b, 0xc3,
	      0xb8, 0x10, 0x00, 0x00, 0x00, 0x5b, 0xc3, 0xc3),
	 35,
	 {},
	 0},
	/* mov (%rsi),%rax; 1: lock cmpxchg %rcx,(%rsi); jne 1b; ret */
	{"retried",
	 CODE(0x48, 0x8b, 0x06, 0xf0, 0x48, 0x0f, 0xb1, 0x0e, 0x75, 0xf9, 0xc3),
	 11,
	 {},
	 0},
	/* mov (%rsi),%rax; 1: lock cmpxchg %rcx,(%rsi); jne 1b; test %rax,%rax; je 2f; movq
	   $0,8(%rax); 2: ret */
	{"retried_before",
	 CODE(0x48, 0x8b, 0x06, 0xf0, 0x48, 0x0f, 0xb1, 0x0e, 0x75, 0xf9, 0x48, 0x85, 0xc0, 0x74,
	      0x08, 0x48, 0xc7, 0x40, 0x08, 0x00, 0x00, 0x00, 0x00, 0xc3),
	 24,
	 {{13, REGISTER_DI, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}},
	 1},
	/* sub $8,%rsp; mov (%rsi),%rdi; call helper; test %rax,%rax; je 1f; movq $0,(%rax); 1: add
	   $8,%rsp; ret | helper: ret */
	{"size_overwritten",
	 CODE(0x48, 0x83, 0xec, 0x08, 0x48, 0x8b, 0x3e, 0xe8, 0x11, 0x00, 0x00, 0x00, 0x48, 0x85,
	      0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x48, 0x83, 0xc4, 0x08,
	      0xc3, 0xc3),
	 29,
	 {},
	 0},
	/* sub $8,%rsp; mov %edi,%edi; call helper; test %rax,%rax; je 1f; movq $0,(%rax); 1: add
	   $8,%rsp; ret | helper: ret */
	{"size_half_written",
	 CODE(0x48, 0x83, 0xec, 0x08, 0x89, 0xff, 0xe8, 0x11, 0x00, 0x00, 0x00, 0x48, 0x85, 0xc0,
	      0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3,
	      0xc3),
	 28,
	 {},
	 0},
	/* mov %rdi,%r10; mov (%rsi),%rax; test %rdx,%rdx; mov $1,%edi; je 1f; movq $0,(%rax); 1:
	   ret */
	{"size_moved",
	 CODE(0x49, 0x89, 0xfa, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xd2, 0xbf, 0x01, 0x00, 0x00, 0x00,
	      0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc3),
	 24,
	 {{14, 10, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}},
	 1},
	/* sub $8,%rsp; mov %rdi,%r10; xor %edi,%edi; call helper; test %rax,%rax; je 1f; movq
	   $0,(%rax); 1: add $8,%rsp; ret | helper: ret */
	{"size_lost_in_call",
	 CODE(0x48, 0x83, 0xec, 0x08, 0x49, 0x89, 0xfa, 0x31, 0xff, 0xe8, 0x11, 0x00, 0x00, 0x00,
	      0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x48, 0x83,
	      0xc4, 0x08, 0xc3, 0xc3),
	 31,
	 {{9, 10, SINGLE_TRAP_NOWHERE, 8, {-1, -1, -1, -1, -1, -1}},
	  {17, SINGLE_TRAP_NOWHERE, REGISTER_AX, 8, {-1, -1, -1, -1, -1, -1}}},
	 2},
	/* mov %rdi,%rcx; xor %edi,%edi; syscall; test %rax,%rax; je 1f; movq $0,8(%rax); 1: ret */
	{"size_lost_in_system_call",
	 CODE(0x48, 0x89, 0xf9, 0x31, 0xff, 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x74, 0x08, 0x48, 0xc7,
	      0x40, 0x08, 0x00, 0x00, 0x00, 0x00, 0xc3),
	 21,
	 {},
	 0},
	/* push %rbx; mov %rdi,%rbx; sub $16,%rsp; call helper; test %rdx,%rdx; je 1f; mov
	   %rax,8(%rsp); call helper; mov 8(%rsp),%rax; 1: add $16,%rsp; pop %rbx; ret | helper: ret
	 */
	{"spilled",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0x48, 0x83, 0xec, 0x10, 0xe8, 0x1a, 0x00, 0x00, 0x00, 0x48,
	      0x85, 0xd2, 0x74, 0x0f, 0x48, 0x89, 0x44, 0x24, 0x08, 0xe8, 0x0b, 0x00, 0x00, 0x00,
	      0x48, 0x8b, 0x44, 0x24, 0x08, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3, 0xc3),
	 39,
	 {{16, REGISTER_BX, REGISTER_AX, 24, {16, -1, -1, -1, -1, -1}}},
	 1},
	/* push %rbx; mov %rdi,%rbx; sub $16,%rsp; call helper; test %rdx,%rdx; je 1f; mov
	   %rax,8(%rsp); movb $0,15(%rsp); mov 8(%rsp),%rax; 1: add $16,%rsp; pop %rbx; ret |
	   helper: ret */
	{"spilled_and_changed",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0x48, 0x83, 0xec, 0x10, 0xe8, 0x1a, 0x00, 0x00, 0x00, 0x48,
	      0x85, 0xd2, 0x74, 0x0f, 0x48, 0x89, 0x44, 0x24, 0x08, 0xc6, 0x44, 0x24, 0x0f, 0x00,
	      0x48, 0x8b, 0x44, 0x24, 0x08, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3, 0xc3),
	 39,
	 {},
	 0},
	/* push %rbx; mov %rdi,%rbx; sub $16,%rsp; call helper; test %rdx,%rdx; je 1f; mov
	   %rax,8(%rsp); mov %rcx,(%rsp,%rdx,8); mov 8(%rsp),%rax; 1: add $16,%rsp; pop %rbx; ret |
	   helper: ret */
	{"spilled_somewhere",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0x48, 0x83, 0xec, 0x10, 0xe8, 0x19, 0x00, 0x00, 0x00, 0x48,
	      0x85, 0xd2, 0x74, 0x0e, 0x48, 0x89, 0x44, 0x24, 0x08, 0x48, 0x89, 0x0c, 0xd4, 0x48,
	      0x8b, 0x44, 0x24, 0x08, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3, 0xc3),
	 38,
	 {},
	 0},
	/* push %rbx; mov %rdi,%rbx; call helper; test %rdx,%rdx; je 1f; mov %rax,-8(%rsp); call
	   helper; mov -8(%rsp),%rax; 1: pop %rbx; ret | helper: ret */
	{"spilled_below",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0xe8, 0x16, 0x00, 0x00, 0x00, 0x48, 0x85, 0xd2, 0x74, 0x0f,
	      0x48, 0x89, 0x44, 0x24, 0xf8, 0xe8, 0x07, 0x00, 0x00, 0x00, 0x48, 0x8b, 0x44, 0x24,
	      0xf8, 0x5b, 0xc3, 0xc3),
	 31,
	 {},
	 0},
	/* push %rbx; mov %rdi,%rbx; call helper; test $15,%al; jne 1f; pop %rbx; ret; 1: mov
	   $1,%edi; call die; xor %eax,%eax; pop %rbx; ret | helper: ret; die: and $1,%edi; je 1f;
	   dead: hlt; jmp dead; 1: ret */
	{"never_returns",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0xe8, 0x14, 0x00, 0x00, 0x00, 0xa8, 0x0f, 0x75, 0x02, 0x5b,
	      0xc3, 0xbf, 0x01, 0x00, 0x00, 0x00, 0xe8, 0x05, 0x00, 0x00, 0x00, 0x31, 0xc0, 0x5b,
	      0xc3, 0xc3, 0x83, 0xe7, 0x01, 0x74, 0x03, 0xf4, 0xeb, 0xfd, 0xc3),
	 29,
	 {{11, REGISTER_BX, REGISTER_AX, 8, {0, -1, -1, -1, -1, -1}}},
	 1},
	/* push %rbx; mov %rdi,%rbx; call helper; test $15,%al; jne 1f; pop %rbx; ret; 1: mov
	   $2,%edi; call die; xor %eax,%eax; pop %rbx; ret | helper: ret; die: and $1,%edi; je 1f;
	   dead: hlt; jmp dead; 1: ret */
	{"may_return",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0xe8, 0x14, 0x00, 0x00, 0x00, 0xa8, 0x0f, 0x75, 0x02, 0x5b,
	      0xc3, 0xbf, 0x02, 0x00, 0x00, 0x00, 0xe8, 0x05, 0x00, 0x00, 0x00, 0x31, 0xc0, 0x5b,
	      0xc3, 0xc3, 0x83, 0xe7, 0x01, 0x74, 0x03, 0xf4, 0xeb, 0xfd, 0xc3),
	 29,
	 {},
	 0},
	/* mov (%rsi),%rax; test %rax,%rax; je 1f; jmp *%rdx; 1: ret */
	{"jump_to_table",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x02, 0xff, 0xe2, 0xc3),
	 11,
	 {},
	 0},
	/* mov (%rsi),%rax; test %rax,%rax; je 1f; jmp *0(%rip); 1: ret */
	{"jump_to_pointer",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x06, 0xff, 0x25, 0x00, 0x00, 0x00, 0x00,
	      0xc3),
	 15,
	 {},
	 0},
	/* mov (%rsi),%rax; test %rax,%rax; je helper; movq $0,(%rax); ret | helper: ret */
	{"tail_call",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x08, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00,
	      0x00, 0xc3, 0xc3),
	 16,
	 {},
	 0},
	/* mov (%rsi),%rax; mov %rdi,%r10; mov $1,%edi; test %rax,%rax; js die; ret | helper: ret;
	   die: and $1,%edi; je 1f; dead: hlt; jmp dead; 1: ret */
	{"tail_call_to_death",
	 CODE(0x48, 0x8b, 0x06, 0x49, 0x89, 0xfa, 0xbf, 0x01, 0x00, 0x00, 0x00, 0x48, 0x85, 0xc0,
	      0x78, 0x02, 0xc3, 0xc3, 0x83, 0xe7, 0x01, 0x74, 0x03, 0xf4, 0xeb, 0xfd, 0xc3),
	 17,
	 {{14, 10, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}},
	 1},
	/* mov (%rsi),%rax; test %rax,%rax; je 1f; ret; 1: movq $0,(%rax) | ret */
	{"falls_off",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x01, 0xc3, 0x48, 0xc7, 0x00, 0x00, 0x00,
	      0x00, 0x00, 0xc3),
	 16,
	 {},
	 0},
	/* mov (%rsi),%rax; test %rax,%rax; je 1f; movq $0,(%rax); ret; 1: ret */
	{"two_returns",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x08, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00,
	      0x00, 0xc3, 0xc3),
	 17,
	 {{6, REGISTER_DI, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}},
	 1},
	/* mov (%rsi),%rax; test %rax,%rax; jne 1f; xor %eax,%eax; 1: ret */
	{"null_is_the_block",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x75, 0x02, 0x31, 0xc0, 0xc3),
	 11,
	 {{6, REGISTER_DI, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}},
	 1},
	/* mov (%rsi),%rax; test %eax,%eax; jne 1f; xor %eax,%eax; 1: ret */
	{"null_by_half",
	 CODE(0x48, 0x8b, 0x06, 0x85, 0xc0, 0x75, 0x02, 0x31, 0xc0, 0xc3),
	 10,
	 {},
	 0},
	/* mov (%rsi),%rax; test %rax,%rax; cmp %rdx,%rcx; jne 1f; xor %eax,%eax; 1: ret */
	{"null_by_other_flags",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x48, 0x39, 0xd1, 0x75, 0x02, 0x31, 0xc0, 0xc3),
	 14,
	 {},
	 0},
	/* mov (%rsi),%rax; test %rax,%rax; mov (%rdx),%rax; jne 1f; xor %eax,%eax; 1: ret */
	{"null_of_before",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x48, 0x8b, 0x02, 0x75, 0x02, 0x31, 0xc0, 0xc3),
	 14,
	 {},
	 0},
	/* test %rdx,%rdx; je 1f; mov (%rsi),%rax; test %rcx,%rcx; je 2f; movq $0,(%rax); test
	   %r8,%r8; je 3f; ret; 1: mov 8(%rsi),%rax; 2: test %rax,%rax; je 3f; movq $0,8(%rax); 3:
	   ret */
	{"second_point_follows",
	 CODE(0x48, 0x85, 0xd2, 0x74, 0x15, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xc9, 0x74, 0x11, 0x48,
	      0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x4d, 0x85, 0xc0, 0x74, 0x12, 0xc3, 0x48, 0x8b,
	      0x46, 0x08, 0x48, 0x85, 0xc0, 0x74, 0x08, 0x48, 0xc7, 0x40, 0x08, 0x00, 0x00, 0x00,
	      0x00, 0xc3),
	 44,
	 {{23, REGISTER_DI, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}},
	  {33, REGISTER_DI, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}},
	 2},
	/* push %rbp; mov %rsp,%rbp; and $-16,%rsp; mov (%rsi),%rax; test %rax,%rax; je 1f; movq
	   $0,(%rax); 1: leave; ret */
	{"aligned_stack",
	 CODE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xf0, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0,
	      0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc9, 0xc3),
	 25,
	 {},
	 0},
	/* push %rbp; mov %rsp,%rbp; sub %rdi,%rsp; mov (%rsi),%rax; test %rax,%rax; je 1f; movq
	   $0,(%rax); 1: leave; ret */
	{"variable_stack",
	 CODE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xfc, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74,
	      0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc9, 0xc3),
	 24,
	 {},
	 0},
	/* push %rbx; mov %rdi,%rbx; sub $16,%rsp; lea 8(%rsp),%rsi; call helper; test %rax,%rax; je
	   1f; movq $0,(%rax); 1: add $16,%rsp; pop %rbx; ret | helper: ret */
	{"address_of_stack",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0x48, 0x83, 0xec, 0x10, 0x48, 0x8d, 0x74, 0x24, 0x08, 0xe8,
	      0x12, 0x00, 0x00, 0x00, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00,
	      0x00, 0x00, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3, 0xc3),
	 36,
	 {},
	 0},
	/* mov %rsp,%rdx; mov (%rsi),%rax; test %rax,%rax; je 1f; movq $0,(%rdx); 1: ret */
	{"stack_pointer_copied",
	 CODE(0x48, 0x89, 0xe2, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x02,
	      0x00, 0x00, 0x00, 0x00, 0xc3),
	 19,
	 {},
	 0},
	/* push %rbp; mov %rsp,%rbp; mov (%rsi),%rax; push %rbp; test %rax,%rax; je 1f; movq
	   $0,(%rax); 1: leave; ret */
	{"frame_address_pushed",
	 CODE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x06, 0x55, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48,
	      0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc9, 0xc3),
	 22,
	 {},
	 0},
	/* mov (%rsi),%rax; mov %rdx,(%rsp); test %rax,%rax; je 1f; movq $0,(%rax); 1: ret */
	{"return_address_written",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x89, 0x14, 0x24, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7,
	      0x00, 0x00, 0x00, 0x00, 0x00, 0xc3),
	 20,
	 {},
	 0},
	/* push %rbx; mov %rdi,%rbx; mov (%rsi),%rax; test %rax,%rax; je 1f; add $8,%rsp; 1: pop
	   %rbx; ret */
	{"stack_lost",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x04, 0x48, 0x83,
	      0xc4, 0x08, 0x5b, 0xc3),
	 18,
	 {},
	 0},
	/* mov (%rsi),%rax; push %rdx; test %rax,%rax; je 1f; movq $0,(%rax); 1: ret */
	{"unbalanced",
	 CODE(0x48, 0x8b, 0x06, 0x52, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00,
	      0x00, 0x00, 0xc3),
	 17,
	 {},
	 0},
	/* mov %rdi,%rbx; mov (%rsi),%rax; test %rax,%rax; je 1f; movq $0,(%rax); 1: ret */
	{"not_restored",
	 CODE(0x48, 0x89, 0xfb, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00,
	      0x00, 0x00, 0x00, 0x00, 0xc3),
	 19,
	 {},
	 0},
	/* push %rbx; push %rbp; mov (%rsi),%rax; test %rax,%rax; je 1f; movq $0,(%rax); 1: pop
	   %rbx; pop %rbp; ret */
	{"restored_wrongly",
	 CODE(0x53, 0x55, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00,
	      0x00, 0x00, 0x00, 0x5b, 0x5d, 0xc3),
	 20,
	 {},
	 0},
	/* push %rbp; mov %rsp,%rbp; push %rbx; sub $24,%rsp; mov %rdi,%rbx; call helper; test
	   %rax,%rax; je 1f; movq $0,(%rax); 1: mov -8(%rbp),%rbx; leave; ret | helper: ret */
	{"frame_pointer",
	 CODE(0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0xfb, 0xe8, 0x12,
	      0x00, 0x00, 0x00, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00,
	      0x00, 0x48, 0x8b, 0x5d, 0xf8, 0xc9, 0xc3, 0xc3),
	 35,
	 {{20, REGISTER_BX, REGISTER_AX, 40, {24, 32, -1, -1, -1, -1}}},
	 1},
	/* push %rbp; mov %rsp,%rbp; push %r12; push %rbx; mov %rdi,%rbx; mov %rsi,%r12; call
	   helper; test %rax,%rax; je 1f; movq $0,(%rax); 1: lea -16(%rbp),%rsp; pop %rbx; pop %r12;
	   pop %rbp; ret | helper: ret */
	{"frame_pointer_popped",
	 CODE(0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x53, 0x48, 0x89, 0xfb, 0x49, 0x89, 0xf4, 0xe8,
	      0x15, 0x00, 0x00, 0x00, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00,
	      0x00, 0x00, 0x48, 0x8d, 0x65, 0xf0, 0x5b, 0x41, 0x5c, 0x5d, 0xc3, 0xc3),
	 39,
	 {{21, REGISTER_BX, REGISTER_AX, 24, {0, 16, 8, -1, -1, -1}}},
	 1},
	/* mov %rdi,%r10; add $-128,%rsp; mov (%rsi),%rax; test %rax,%rax; je 1f; movq $0,(%rax); 1:
	   sub $-128,%rsp; test %rdx,%rdx; je 2f; movq $0,8(%rax); 2: ret */
	{"signed_bytes",
	 CODE(0x49, 0x89, 0xfa, 0x48, 0x83, 0xc4, 0x80, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74,
	      0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x48, 0x83, 0xec, 0x80, 0x48, 0x85,
	      0xd2, 0x74, 0x08, 0x48, 0xc7, 0x40, 0x08, 0x00, 0x00, 0x00, 0x00, 0xc3),
	 40,
	 {{29, REGISTER_DI, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}},
	 1},
	/* push %rbx; mov %rdi,%rbx; sub $240,%rsp; call helper; test %rax,%rax; je 1f; movq
	   $0,(%rax); 1: add $240,%rsp; pop %rbx; ret | helper: ret */
	{"deep_frame",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0x48, 0x81, 0xec, 0xf0, 0x00, 0x00, 0x00, 0xe8, 0x15, 0x00,
	      0x00, 0x00, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00,
	      0x48, 0x81, 0xc4, 0xf0, 0x00, 0x00, 0x00, 0x5b, 0xc3, 0xc3),
	 37,
	 {},
	 0},
	/* mov (%rsi),%rax; test %rax,%rax; je 1f; int3; 1: ret */
	{"breakpoint", CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x01, 0xcc, 0xc3), 10, {}, 0},
	/* mov $1,%eax; int $0x80; test %rax,%rax; je 1f; movq $0,(%rax); 1: ret */
	{"old_system_call",
	 CODE(0xb8, 0x01, 0x00, 0x00, 0x00, 0xcd, 0x80, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7,
	      0x00, 0x00, 0x00, 0x00, 0x00, 0xc3),
	 20,
	 {},
	 0},
	/* mov (%rsi),%rax; test %rax,%rax; je 1f; movq $0,(%rax); 1: ret | mov %rdx,%rax; .byte
	   0xe9; .long 1b-.-4 */
	{"entered_from_elsewhere",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00,
	      0x00, 0xc3, 0x48, 0x89, 0xd0, 0xe9, 0xf7, 0xff, 0xff, 0xff),
	 16,
	 {},
	 0},
	/* mov (%rsi),%rax; test %rax,%rax; je 1f+1; 1: mov $0x90c3,%edx; ret */
	{"overlapping",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x01, 0xba, 0xc3, 0x90, 0x00, 0x00, 0xc3),
	 14,
	 {},
	 0},
	/* push %rbx; mov %rdi,%rbx; .byte 0x66; call helper; test %rax,%rax; je 1f; movq $0,(%rax);
	   1: pop %rbx; ret | helper: ret */
	{"prefixed_call",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0x66, 0xe8, 0x0e, 0x00, 0x00, 0x00, 0x48, 0x85, 0xc0, 0x74,
	      0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5b, 0xc3, 0xc3),
	 24,
	 {},
	 0},
	/* push %rbx; mov %rdi,%rbx; .byte 0x66,0x66,0x48; call helper; test %rax,%rax; je 1f; movq
	   $0,(%rax); 1: pop %rbx; ret | helper: ret */
	{"tls_call",
	 CODE(0x53, 0x48, 0x89, 0xfb, 0x66, 0x66, 0x48, 0xe8, 0x0e, 0x00, 0x00, 0x00, 0x48, 0x85,
	      0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5b, 0xc3, 0xc3),
	 26,
	 {{15, REGISTER_BX, REGISTER_AX, 8, {0, -1, -1, -1, -1, -1}}},
	 1},
	/* mov (%rsi),%rax; test %rax,%rax; .byte 0x66; je 1f; movq $0,(%rax); 1: ret */
	{"prefixed_jump",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x66, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00,
	      0x00, 0x00, 0xc3),
	 17,
	 {},
	 0},
	/* mov (%rsi),%rax; test %rax,%rax; je 1f; movq $0,(%rax); 1: .byte 0x66; ret */
	{"prefixed_return",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00,
	      0x00, 0x66, 0xc3),
	 17,
	 {},
	 0},
	/* mov (%rsi),%rax; xbegin 1f; test %rax,%rax; je 1f; movq $0,(%rax); 1: ret */
	{"transaction",
	 CODE(0x48, 0x8b, 0x06, 0xc7, 0xf8, 0x0c, 0x00, 0x00, 0x00, 0x48, 0x85, 0xc0, 0x74, 0x07,
	      0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc3),
	 22,
	 {},
	 0},
	/* enter $16,$0; mov (%rsi),%rax; test %rax,%rax; je 1f; movq $0,(%rax); 1: leave; ret */
	{"enter",
	 CODE(0xc8, 0x10, 0x00, 0x00, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7,
	      0x00, 0x00, 0x00, 0x00, 0x00, 0xc9, 0xc3),
	 21,
	 {},
	 0},
	/* mov (%rsi),%rax; test %rax,%rax; je 1f; movq $0,(%rax); 1: ret $8 */
	{"returns_and_pops",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00,
	      0x00, 0xc2, 0x08, 0x00),
	 18,
	 {},
	 0},
	/* mov (%rsi),%rax; test %rcx,%rcx; je 1f; test %rax,%rax; jne 2f; 1: xor %eax,%eax; 2: ret
	 */
	{"zero_and_unknown_meet",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xc9, 0x74, 0x05, 0x48, 0x85, 0xc0, 0x75, 0x02, 0x31,
	      0xc0, 0xc3),
	 16,
	 {},
	 0},
	/* mov (%rsi),%rax; 1: sub $1,%rcx; jne 1b; ret */
	{"looped", CODE(0x48, 0x8b, 0x06, 0x48, 0x83, 0xe9, 0x01, 0x75, 0xfa, 0xc3), 10, {}, 0},
	/* mov %rbx,-8(%rsp); mov %rdi,%rbx; mov (%rsi),%rax; test %rax,%rax; je 1f; movq $0,(%rax);
	   1: mov -8(%rsp),%rbx; ret */
	{"saved_below",
	 CODE(0x48, 0x89, 0x5c, 0x24, 0xf8, 0x48, 0x89, 0xfb, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0,
	      0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x48, 0x8b, 0x5c, 0x24, 0xf8,
	      0xc3),
	 29,
	 {},
	 0},
	/* mov %rdi,%r10; test %rcx,%rcx; jne 1f; mov %rsi,%r10; 1: xor %edi,%edi; mov (%rdx),%rax;
	   test %rax,%rax; je 2f; movq $0,(%rax); 2: ret */
	{"size_or_other",
	 CODE(0x49, 0x89, 0xfa, 0x48, 0x85, 0xc9, 0x75, 0x03, 0x49, 0x89, 0xf2, 0x31, 0xff, 0x48,
	      0x8b, 0x02, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00,
	      0xc3),
	 29,
	 {{6, REGISTER_DI, SINGLE_TRAP_NOWHERE, 0, {-1, -1, -1, -1, -1, -1}},
	  {19, SINGLE_TRAP_NOWHERE, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}},
	 2},
	/* test %rcx,%rcx; je 1f; mov %rdx,%rax; jmp 2f; 1: mov %r8,%rax; 2: ret */
	{"block_or_other",
	 CODE(0x48, 0x85, 0xc9, 0x74, 0x05, 0x48, 0x89, 0xd0, 0xeb, 0x03, 0x4c, 0x89, 0xc0, 0xc3),
	 14,
	 {},
	 0},
	/* test %rcx,%rcx; je 1f; mov %rdx,%rax; ret; 1: mov %r8,%rax; ret */
	{"either_block",
	 CODE(0x48, 0x85, 0xc9, 0x74, 0x04, 0x48, 0x89, 0xd0, 0xc3, 0x4c, 0x89, 0xc0, 0xc3),
	 13,
	 {},
	 0},
	/* test %rcx,%rcx; je 1f; mov %rdx,%rax; ret; 1: mov %rdx,%rax; ret */
	{"block_before_move",
	 CODE(0x48, 0x85, 0xc9, 0x74, 0x04, 0x48, 0x89, 0xd0, 0xc3, 0x48, 0x89, 0xd0, 0xc3),
	 13,
	 {{3, REGISTER_DI, REGISTER_DX, 0, {-1, -1, -1, -1, -1, -1}}},
	 1},
	/* mov (%rsi),%rax; test %rdx,%rdx; je 1f; syscall; 1: ret */
	{"system_call_result",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0x85, 0xd2, 0x74, 0x02, 0x0f, 0x05, 0xc3),
	 11,
	 {},
	 0},
	/* add %rsp,%rdx; mov (%rsi),%rax; test %rax,%rax; je 1f; movq $0,(%rdx); 1: ret */
	{"stack_pointer_added",
	 CODE(0x48, 0x01, 0xe2, 0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48, 0xc7, 0x02,
	      0x00, 0x00, 0x00, 0x00, 0xc3),
	 19,
	 {},
	 0},
	/* mov (%rsi),%rax; movq $0,(%rax); ret */
	{"only_stepped",
	 CODE(0x48, 0x8b, 0x06, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc3),
	 11,
	 {},
	 0},
	/* test %rdx,%rdx; mov (%rsi),%rax; je 1f; mov 8(%rsi),%rax; 1: ret */
	{"two_values",
	 CODE(0x48, 0x85, 0xd2, 0x48, 0x8b, 0x06, 0x74, 0x04, 0x48, 0x8b, 0x46, 0x08, 0xc3),
	 13,
	 {},
	 0},
};

/* The points of the first @function_bytes of @code for the argument @size_arg. */
static int find_points(const uint8_t *code, size_t size_bytes, uint64_t function_bytes,
		       int size_arg, struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS])
{
	const struct elf_function function = {
		.is_found = true, .offset = CODE_FILE_OFFSET, .size_bytes = function_bytes};
	struct code_file file;
	int nr;

	code_file_init(&file, code, size_bytes);
	nr = single_trap_points_find(&file.image, &function, size_arg, &kernel, ret);
	code_file_deinit(&file);
	return nr;
}

/* mov (%rsi),%rax; test %rax,%rax; je 1f; movq $0,(%rax); 1: ret */
static const uint8_t simple_code[] = {0x48, 0x8b, 0x06, 0x48, 0x85, 0xc0, 0x74, 0x07,
				      0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc3};
#define SIMPLE_POINT 6

static int count_simple_points(const struct code_file *file)
{
	const struct elf_function function = {
		.is_found = true, .offset = CODE_FILE_OFFSET, .size_bytes = sizeof(simple_code)};
	struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];
	int nr = single_trap_points_find(&file->image, &function, 0, &kernel, points);

	if (nr == 1)
		assert_int_equal(points[0].offset, SIMPLE_POINT);
	return nr;
}

/* What may be called is an entry: a function's symbol behind the first byte. */
static void inner_symbols_are_entries(void **state)
{
	static const struct {
		uint64_t offset;
		int type, nr_points;
	} symbols[] = {
		{0, STT_FUNC, 1},
		{8, STT_FUNC, 0},
		{sizeof(simple_code) - 1, STT_GNU_IFUNC, 0},
		{sizeof(simple_code), STT_FUNC, 1},
		{8, STT_OBJECT, 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		Elf64_Sym table[2] = {{0},
				      {.st_name = 1,
				       .st_info = ELF64_ST_INFO(STB_GLOBAL, symbols[i].type),
				       .st_shndx = 1,
				       .st_value = CODE_FILE_OFFSET + symbols[i].offset,
				       .st_size = 1}};
		uint8_t code[2 * sizeof(simple_code)] = {0};
		struct code_file file;

		memcpy(code, simple_code, sizeof(simple_code));
		code_file_init(&file, code, sizeof(code));
		assert_int_equal(count_simple_points(&file), 1);
		code_file_add_section(&file, ".symtab", SHT_SYMTAB, table, sizeof(table));
		assert_int_equal(count_simple_points(&file), symbols[i].nr_points);
		code_file_deinit(&file);
	}
}

/* Frame information of the code from @offset on, and whether it has a table of landing pads. */
static void make_frame_info(uint8_t ret[48], const char *letters, uint8_t encoding, int32_t offset,
			    int32_t size_bytes)
{
	/* A CIE of 20 bytes behind its length; an FDE of 20, which refers to it, 4 before its id */
	const int32_t fde[] = {20, 28, CODE_FILE_OFFSET + offset - (CODE_FILE_DATA_OFFSET + 32),
			       size_bytes};
	uint8_t *at = ret;

	memset(ret, 0, 48); /* nops, and the end */
	*at = 20;
	at += 8; /* its id is 0 */
	*at++ = 1;
	memcpy(at, letters, strlen(letters) + 1);
	at += strlen(letters) + 1;
	*at++ = 1;    /* the alignment of code, */
	*at++ = 0x78; /* of data: -8 */
	*at++ = 16;   /* the return address's column */
	*at++ = (uint8_t)(strlen(letters) - 1);
	for (const char *letter = letters + 1; *letter; letter++)
		*at++ = encoding;
	memcpy(ret + 24, fde, sizeof(fde));
	ret[40] = 4; /* bytes of a table's address, if there is one */
	ret[41] = strchr(letters, 'L') ? 16 : 0;
}

static void landing_pads_are_entries(void **state)
{
	static const struct {
		const char *letters;
		uint8_t encoding;
		int32_t offset, size_bytes;
		int nr_points;
	} infos[] = {
		{"zR", 0x1b, 0, sizeof(simple_code), 1},
		{"zLR", 0x1b, 0, sizeof(simple_code), 0},
		{"zPLR", 0x1b, 0, sizeof(simple_code),
		 0}, /* the personality's address is missing */
		{"zLR", 0x1b, sizeof(simple_code) - 1, 16, 0},
		{"zLR", 0x1b, sizeof(simple_code), 16, 1},
		{"zLR", 0x1b, -16, 16, 1},
		{"zLR", 0x1b, -16, 17, 0},
		{"zLR", 0x00, sizeof(simple_code), 16, 0}, /* another encoding, not understood */
		{"zR", 0x00, sizeof(simple_code), 16, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(infos); i++) {
		struct code_file file;
		uint8_t info[48];

		make_frame_info(info, infos[i].letters, infos[i].encoding, infos[i].offset,
				infos[i].size_bytes);
		code_file_init(&file, simple_code, sizeof(simple_code));
		code_file_add_section(&file, ".eh_frame", SHT_PROGBITS, info, sizeof(info));
		if (count_simple_points(&file) != infos[i].nr_points)
			fail_msg("frame information %zu: not %d points", i, infos[i].nr_points);
		code_file_deinit(&file);
	}
}

static bool is_expected(const struct single_trap_point *point,
			const struct expected_point *expected)
{
	return point->offset == expected->offset &&
	       point->size_register == expected->size_register &&
	       point->block_register == expected->block_register &&
	       point->frame_bytes == expected->frame_bytes &&
	       memcmp(point->saved, expected->saved, sizeof(point->saved)) == 0;
}

static void each_rule_holds(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct points_case *test = &cases[i];
		struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];
		int nr = find_points(test->code, test->size_bytes, test->function_bytes, 0, points);

		for (int j = 0; j < nr; j++)
			if (j >= test->nr_points || !is_expected(&points[j], &test->points[j]))
				fail_msg("%s: point %d at +0x%" PRIx64
					 ", size %d, block %d, frame %u",
					 test->name, j, points[j].offset, points[j].size_register,
					 points[j].block_register, points[j].frame_bytes);
		if (nr != test->nr_points)
			fail_msg("%s: %d points, but it should be %d", test->name, nr,
				 test->nr_points);
	}
}

static void the_size_is_any_argument(void **state)
{
	static const int registers[] = {7, 6, 2, 1, 8, 9};
	struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];

	for (int i = 0; i < 6; i++) {
		assert_int_equal(find_points(simple_code, sizeof(simple_code), sizeof(simple_code),
					     i, points),
				 1);
		assert_int_equal(points[0].offset, SIMPLE_POINT);
		assert_int_equal(points[0].size_register, registers[i]);
		assert_int_equal(points[0].block_register, 0);
	}
	assert_int_equal(
		find_points(simple_code, sizeof(simple_code), sizeof(simple_code), 6, points), 0);
	assert_int_equal(
		find_points(simple_code, sizeof(simple_code), sizeof(simple_code), -1, points), 0);
}

static void unknown_sizes_have_no_points(void **state)
{
	static uint8_t code[CODE_FLOW_MAX_BYTES + 1];
	struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];

	memcpy(code, cases[0].code, cases[0].size_bytes);
	assert_int_equal(find_points(code, sizeof(code), 0, 0, points), 0);
	assert_int_equal(find_points(code, sizeof(code), sizeof(code), 0, points), 0);
	assert_true(find_points(code, sizeof(code), cases[0].function_bytes, 0, points) > 0);
}

/* Cut off anywhere, a function has no points behind the cut, or its end would be jumped over. */
static void cut_off_code_is_survived(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (uint64_t size = 0; size < cases[i].function_bytes; size++) {
			struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];
			int nr = find_points(cases[i].code, cases[i].size_bytes, size, 0, points);

			assert_in_range(nr, 0, SINGLE_TRAP_MAX_POINTS);
			for (int j = 0; j < nr; j++)
				assert_true(points[j].offset < size);
		}
	}
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

/* Points of whatever code must be in it, in order, and have their registers and frames. */
static void assert_sane(const struct single_trap_point *points, int nr, size_t size_bytes)
{
	assert_in_range(nr, 0, SINGLE_TRAP_MAX_POINTS);
	for (int i = 0; i < nr; i++) {
		assert_true(points[i].offset < size_bytes);
		assert_true(i == 0 || points[i].offset > points[i - 1].offset);
		assert_true(points[i].size_register >= SINGLE_TRAP_NOWHERE);
		assert_true(points[i].size_register < NR_REGISTERS);
		assert_true(points[i].block_register >= SINGLE_TRAP_IS_NULL);
		assert_true(points[i].block_register < NR_REGISTERS);
		assert_true(points[i].frame_bytes <= SINGLE_TRAP_MAX_FRAME_BYTES);
		for (int j = 0; j < SINGLE_TRAP_NR_SAVED; j++)
			assert_true(points[i].saved[j] == SINGLE_TRAP_UNCHANGED ||
				    (points[i].saved[j] >= 0 &&
				     (uint32_t)points[i].saved[j] < points[i].frame_bytes));
	}
}

static void random_bytes_are_survived(void **state)
{
	uint32_t seed = 4711;

	for (int round = 0; round < 2000; round++) {
		struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];
		uint8_t code[256];

		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = (uint8_t)next_random(&seed);
		assert_sane(points, find_points(code, sizeof(code), sizeof(code), 0, points),
			    sizeof(code));
	}
}

static void mutated_functions_are_survived(void **state)
{
	uint32_t seed = 815;

	for (int round = 0; round < 100; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];
			uint8_t code[256];

			assert_true(cases[i].size_bytes <= sizeof(code));
			memcpy(code, cases[i].code, cases[i].size_bytes);
			for (int j = 0; j < 3; j++)
				code[next_random(&seed) % cases[i].size_bytes] =
					(uint8_t)next_random(&seed);
			assert_sane(points,
				    find_points(code, cases[i].size_bytes, cases[i].function_bytes,
						0, points),
				    cases[i].function_bytes);
		}
	}
}

/* Much code, each instruction of which may be reached in many ways, takes bounded time. */
static void endless_branches_end(void **state)
{
	static uint8_t code[32768];
	struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];

	for (size_t i = 0; i + 2 < sizeof(code); i += 2) {
		code[i] = 0x74; /* je, to and fro */
		code[i + 1] = i % 4 ? 0x7c : 0x84;
	}
	assert_sane(points, find_points(code, sizeof(code), sizeof(code), 0, points), sizeof(code));
	/* Calls of one another, as deep as the file goes. */
	for (size_t i = 0; i + 10 < sizeof(code); i += 5)
		memcpy(code + i, (const uint8_t[]){0xe8, 0x05, 0x00, 0x00, 0x00}, 5);
	assert_sane(points, find_points(code, sizeof(code), 64, 0, points), 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_holds),
		cmocka_unit_test(inner_symbols_are_entries),
		cmocka_unit_test(landing_pads_are_entries),
		cmocka_unit_test(the_size_is_any_argument),
		cmocka_unit_test(unknown_sizes_have_no_points),
		cmocka_unit_test(cut_off_code_is_survived),
		cmocka_unit_test(random_bytes_are_survived),
		cmocka_unit_test(mutated_functions_are_survived),
		cmocka_unit_test(endless_branches_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
