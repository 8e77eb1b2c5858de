/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of test_probe_stores.c. */
#if defined(__x86_64__)
#include "test/support/code_cases.inc"

	.text

/* posix_memalign of glibc 2.36 (Debian 12). */
	CODE glibc_posix_memalign
	cmpb	$0x0, 0x140201(%rip)
	push	%r12
	mov	%rdx, %r12
	push	%rbp
	mov	%rdi, %rbp
	push	%rbx
	mov	%rsi, %rbx
	je	4f
1:	mov	%rbx, %rdx
	shr	$0x3, %rdx
	lea	-0x1(%rdx), %rax
	and	%rdx, %rax
	mov	%rbx, %rdx
	and	$0x7, %edx
	or	%rdx, %rax
	jne	3f
	test	%rbx, %rbx
	je	3f
	mov	%r12, %rsi
	mov	%rbx, %rdi
	call	. - 5738
	mov	%rax, %rdx
	mov	$0xc, %eax
	test	%rdx, %rdx
	je	2f
	mov	%rdx, 0x0(%rbp)
	xor	%eax, %eax
2:	pop	%rbx
	pop	%rbp
	pop	%r12
	ret
	{disp32} nopw 0x0(%rax,%rax,1)
3:	pop	%rbx
	mov	$0x16, %eax
	pop	%rbp
	pop	%r12
	ret
	{disp8} nopw 0x0(%rax,%rax,1)
4:	call	. - 20480
	jmp	1b
	END

/* From posix_memalign of musl 1.2.3. */
	CODE musl_posix_memalign
	test	%rax, %rax
	je	1f
	mov	%rax, (%rbx)
	xor	%eax, %eax
	pop	%rbx
	ret
1:	pop	%rbx
	ret
	END

	CODE high_registers
	mov	%r12, (%r15)
	mov	%r8, 0x0(%r13)
	ret
	END

	CODE other_moves
	mov	%rax, (%rsp)
	mov	%rax, 8(%rbx)
	mov	%rax, (%rbx,%rcx)
	mov	%eax, (%rbx)
	mov	(%rbx), %rax
	mov	%rax, 0(%rip)
	mov	%rax, %fs:(%rbx)
	movq	$0, (%rbx)
	add	%rax, (%rbx)
	ret
	END

/* 4 bytes of data that would read as a store, if what follows is misread. */
	CODE data_after_a_jump
	jmp	1f
	nop
	.byte	0x48, 0x89, 0x03
1:	ret
	.byte	0x48, 0x89, 0x03
	END

	CODE jump_to_itself
1:	jmp	1b
	END

	CODE jumps_out
	jne	. + 0x72
	jne	. - 0x7e
	.byte	0x48, 0x89 /* cut off */
	END
#endif
