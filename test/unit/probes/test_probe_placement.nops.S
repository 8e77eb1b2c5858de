/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of test_probe_placement.c with instructions of which kernels make calls, or nops. */
#if defined(__x86_64__)
#include "test/support/code_cases.inc"

	.text

	CODE nop5_first
	{disp8} nopl 0(%rax,%rax)
	push	%rbx
	pop	%rbx
	ret
	END

	CODE nop5_after_endbr64
	endbr64
	{disp8} nopl 0(%rax,%rax)
	push	%rbx
	pop	%rbx
	ret
	END

	CODE nop5_with_prefixes
	.byte	0x66, 0x66, 0x66, 0x66, 0x90
	push	%rbx
	pop	%rbx
	ret
	END

	CODE nop5_before_test
	{disp8} nopl 8(%rax,%rax)
	test	%rdi, %rdi
	ret
	END

	CODE nop5_before_table
	{disp8} nopl 0(%rax,%rax)
	push	%rbx
	jmp	*(%rax,%rdi,8)
	END

	CODE store_nop5
	mov	%rcx, (%rbx)
	{disp8} nopl 0(%rax,%rax)
	ret
	END

	CODE store_nop5_prefixes
	mov	%rcx, (%rbx)
	.byte	0x66, 0x66, 0x66, 0x66, 0x90
	ret
	END

	CODE store_jmp5_next
	mov	%rcx, (%rbx)
	{disp32} jmp 1f
1:	ret
	END

	CODE form_nop5
	{disp8} nopl	0(%rax,%rax)
	END

	CODE form_nop5_clang
	{disp8} nopl	8(%rax,%rax)
	END

	CODE form_nop5_rex
	rex {disp8} nopl 0(%rax)
	END

	CODE form_nop5_prefixes
	.byte	0x66, 0x66, 0x66, 0x66, 0x90
	END

	CODE form_pause5
	.byte	0xf3, 0x66, 0x66, 0x66, 0x90
	END

	CODE form_xchg5
	.byte	0x66, 0x66, 0x66, 0x41, 0x90
	END

	CODE form_jmp5_next
	{disp32} jmp 1f
1:
	END

	CODE form_lea5_same
	{disp8} lea	0(%rsp), %rsp
	END

	CODE form_lea5_other
	{disp8} lea	0(%rsp), %rax
	END

	CODE form_mov5_same
	.byte	0x66, 0x66, 0x48, 0x89, 0xc0
	END

	CODE form_mov5_other
	.byte	0x66, 0x66, 0x48, 0x89, 0xc8
	END

	CODE form_nop10
	.byte	0x66, 0x66
	{disp32} nopl	0(%rax,%rax)
	END

	CODE refused_exchange
	xchg	%r8, %rax
	test	%rdi, %rdi
	ret
	END

	CODE form_xchg_r8
	xchg	%r8, %rax
	END

	CODE form_xchg_r9
	xchg	%r9, %rax
	END
#endif
