/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of test_probe_placement.c. */
#if defined(__x86_64__)
#include "test/support/code_cases.inc"

	.text

/* free of glibc 2.36 (Debian 12), whole. */
	CODE glibc_free
	test	%rdi, %rdi
	je	5f
	push	%rbp
	lea	-0x10(%rdi), %rsi
	push	%rbx
	sub	$0x18, %rsp
	mov	0x139ed6(%rip), %rbx
	mov	-0x8(%rdi), %rax
	mov	%fs:(%rbx), %ebp
	test	$0x2, %al
	jne	3f
	mov	0x139e5c(%rip), %rdx
	cmpq	$0x0, %fs:(%rdx)
	je	6f
1:	lea	0x13ad32(%rip), %rdi
	test	$0x4, %al
	je	2f
	mov	0x13a437(%rip), %rdx
	lea	0x0(, %rdx, 4), %rax
	neg	%rax
	test	%rdx, %rdx
	mov	$0xfffffffffc000000, %rdx
	cmove	%rdx, %rax
	and	%rsi, %rax
	mov	(%rax), %rdi
2:	xor	%edx, %edx
	call	. - 11834
	mov	%ebp, %fs:(%rbx)
	add	$0x18, %rsp
	pop	%rbx
	pop	%rbp
	ret
	{disp32} nopl 0x0(%rax)
3:	mov	0x13a412(%rip), %edx
	test	%edx, %edx
	jne	4f
	cmp	%rax, 0x13a3cf(%rip)
	jae	4f
	cmp	$0x2000000, %rax
	ja	4f
	and	$0xfffffffffffffff8, %rax
	mov	%rax, 0x13a3ba(%rip)
	add	%rax, %rax
	mov	%rax, 0x13a3a0(%rip)
4:	mov	%rsi, %rdi
	call	. - 17907
	mov	%ebp, %fs:(%rbx)
	add	$0x18, %rsp
	pop	%rbx
	pop	%rbp
	ret
	{disp8} nopw 0x0(%rax,%rax,1)
5:	ret
	{disp32} nopl 0x0(%rax)
6:	mov	0x139db9(%rip), %rdx
	mov	%rdi, (%rsp)
	cmpb	$0x0, %fs:(%rdx)
	jne	1b
	mov	%rsi, 0x8(%rsp)
	call	. - 3530
	mov	(%rsp), %rdi
	mov	0x8(%rsp), %rsi
	mov	-0x8(%rdi), %rax
	jmp	1b
	END

/* The beginning of its malloc. */
	CODE glibc_malloc
	push	%r12
	push	%rbp
	push	%rbx
	mov	%rdi, %rbx
	sub	$0x10, %rsp
	cmpb	$0x0, 0x141b46(%rip)
	je	. + 510
	test	%rbx, %rbx
	js	. + 515
	lea	0x17(%rbx), %rax
	xor	%ebp, %ebp
	cmp	$0x1f, %rax
	jbe	1f
	and	$0xfffffffffffffff0, %rax
	lea	-0x11(%rax), %rbp
	shr	$0x4, %rbp
1:	mov	0x13a408(%rip), %r12
	END

	CODE cet_free
	endbr64
	test	%rdi, %rdi
	je	1f
	push	%rbp
	mov	%rdi, %rbp
	pop	%rbp
1:	ret
	END

	CODE cet_malloc
	endbr64
	push	%r12
	push	%rbp
	mov	%rdi, %rbp
	pop	%rbp
	pop	%r12
	ret
	END

	CODE cet_calloc
	endbr64
	mov	%rdi, %rax
	mul	%rsi
	jo	1f
	push	%rbx
	pop	%rbx
1:	ret
	END

	CODE cet_divided
	endbr64
	mov	%rsi, %rax
	mul	%rdi
	jo	1f
	xor	%eax, %eax
1:	ret
	END

	CODE cet_moved
	endbr64
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rax, %rsi
	push	%rbx
	pop	%rbx
	ret
	END

	CODE cet_forward
	endbr64
	jmp	.+200
	END

	CODE cet_frame
	endbr64
	sub	$0x18, %rsp
	call	1f
	add	$0x18, %rsp
1:	ret
	END

	CODE moved_before_push
	mov	%rdi, %rax
	lea	8(%rdi), %rcx
	push	%rbx
	mov	%rax, %rbx
	pop	%rbx
	ret
	END

	CODE part_written
	mov	$1, %dil
	push	%rbx
	pop	%rbx
	ret
	END

	CODE half_written
	mov	$1, %esi
	push	%rbx
	pop	%rbx
	ret
	END

	CODE second_moved
	mov	%rsi, %rax
	xchg	%rsi, %rcx
	push	%rbx
	pop	%rbx
	ret
	END

	CODE strings
	rep stosb
	push	%rbx
	pop	%rbx
	ret
	END

	CODE system_call
	mov	%rdi, %rax
	syscall
	push	%rbx
	pop	%rbx
	ret
	END

	CODE loop_to_place
	test	%rdi, %rdi
1:	je	2f
	sub	$1, %rcx
	jmp	1b
2:	ret
	END

	CODE loop_after_int
	test	%rdi, %rdi
1:	je	2f
	int	$0x80
	jmp	1b
2:	ret
	END

	CODE loop_after_int3
	test	%rdi, %rdi
1:	je	2f
	int3
	jmp	1b
2:	ret
	END

	CODE loop_between
	xor	%eax, %eax
1:	test	%rcx, %rcx
	je	2f
	sub	$1, %rcx
	jmp	1b
2:	ret
	END

	CODE loop_to_entry
1:	test	%rcx, %rcx
	je	2f
	sub	$1, %rcx
	jmp	1b
2:	ret
	END

	CODE loop_instruction
	xor	%eax, %eax
1:	test	%rax, %rax
	je	2f
	loop	1b
2:	ret
	END

	CODE switch_table
	test	%rdi, %rdi
	je	1f
	lea	2f(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rax
	add	%rdx, %rax
	jmp	*%rax
1:	ret
2:	.long	0
	END

	CODE cet_table
	endbr64
	test	%rdi, %rdi
	je	1f
	lea	2f(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rax
	add	%rdx, %rax
	notrack jmp *%rax
1:	ret
2:	.long	0
	END

	CODE cet_hook
	endbr64
	test	%rdi, %rdi
	je	1f
	mov	0x1000(%rip), %rax
	jmp	*%rax
1:	ret
	END

	CODE got_tail
	test	%rdi, %rdi
	je	1f
	jmp	*0x1000(%rip)
1:	ret
	END

	CODE frame_first
	sub	$0x18, %rsp
	test	%rdi, %rdi
	je	1f
1:	add	$0x18, %rsp
	ret
	END

	CODE return_overwritten
	mov	%rdi, (%rsp)
	test	%rdi, %rdi
	je	1f
1:	ret
	END

	CODE frame_pointer_left
	leave
	test	%rdi, %rdi
	je	1f
1:	ret
	END

	CODE stops
	test	%rdi, %rdi
	ud2
	je	1f
1:	ret
	END

	CODE undecoded
	test	%rdi, %rdi
	je	1f
	.byte	0x06 /* no instruction in 64-bit mode */
1:	ret
	END

	CODE red_zone
	mov	%rdi, -8(%rsp)
	{disp8} nopl 0(%rax,%rax)
	push	%rbx
	pop	%rbx
	ret
	END

	CODE hinted
	test	%rdi, %rdi
	ds je 1f
	push	%rbx
	pop	%rbx
1:	ret
	END

	CODE sixteen_bit
	test	%rdi, %rdi
	data16 je 1f
	push	%rbx
	pop	%rbx
1:	ret
	END

	CODE sixteen_bit_later
	test	%rdi, %rdi
	je	1f
	data16 jne 1f
	push	%rbx
	pop	%rbx
1:	ret
	END

	CODE refused_entry
	cs nopl	0x0(%rax, %rax, 1)
	xor	%eax, %eax
	ret
	END

	/* The instruction after the entry also runs again. */
	CODE refused_loop
	cs nopl	0x0(%rax, %rax, 1)
1:	dec	%eax
	jne	1b
	ret
	END

	CODE refused_all
	lock incl	(%rdi)
	cs ret
	END

	CODE exchange_r8
	xchg	%r8d, %eax
	push	%rbx
	pop	%rbx
	ret
	END

	CODE pushes_memory
	push	(%rdi)
	push	%rbx
	pop	%rbx
	pop	%rbx
	ret
	END

	CODE store_value_lost
	test	%rax, %rax
	je	1f
	mov	%rax, (%rbx)
	xor	%eax, %eax
	jmp	1f
	nop
1:	ret
	END

	CODE store_then_jump
	mov	%rcx, (%rbx)
	xor	%eax, %eax
	jmp	1f
1:	ret
	END

	CODE store_then_push
	mov	%rdx, (%rbp)
	xor	%eax, %eax
	pop	%rbx
	push	%rax
	pop	%rax
	ret
	END

	CODE store_base_lost
	mov	%rdx, (%rbp)
	xor	%eax, %eax
	pop	%rbx
	pop	%rbp
	push	%rax
	ret
	END

	CODE store_joined
	test	%rdi, %rdi
	je	1f
	mov	%rcx, (%rbx)
	xor	%eax, %eax
1:	jmp	2f
2:	ret
	END

	CODE form_nop
	nop
	END

	CODE form_nop2
	xchg	%ax, %ax
	END

	CODE form_pause
	pause
	END

	CODE form_nop3
	nopl	(%rax)
	END

	CODE form_nop4
	{disp8} nopl	0(%rax)
	END

	CODE form_nop6
	{disp8} nopw	0(%rax,%rax)
	END

	CODE form_nop7
	{disp32} nopl	0(%rax)
	END

	CODE form_nop8
	{disp32} nopl	0(%rax,%rax)
	END

	CODE form_nop9
	{disp32} nopw	0(%rax,%rax)
	END

	CODE form_endbr64
	endbr64
	END

	CODE form_jne
	jne	. + 2
	END

	CODE form_jne_32_bits
	{disp32} jne	. + 6
	END

	CODE form_data16_jne
	data16 jne . + 3
	END

	CODE form_hinted_jne
	ds jne . + 3
	END

	CODE form_jmp
	jmp	. + 2
	END

	CODE form_bnd_jmp
	.byte	0xf2 /* bnd, which binutils 2.44 does not know any more */
	jmp	. + 2
	END

	CODE form_jmp_32_bits
	{disp32} jmp	. + 6
	END

	CODE form_call
	call	. + 5
	END

	CODE form_indirect_jmp
	jmp	*%rax
	END

	CODE form_loop
	loop	. + 2
	END

	CODE form_jrcxz
	jrcxz	. + 2
	END

	CODE form_push
	push	%rbp
	END

	CODE form_push_r12
	push	%r12
	END

	CODE form_rex_push
	rex.W push %rbp
	END

	CODE form_data16_push
	push	%bp
	END

	CODE form_push_memory
	push	(%rsp)
	END

	CODE form_push_constant
	push	$1
	END

	CODE form_ret
	ret
	END

	CODE form_vzeroupper
	vzeroupper
	END

	CODE form_cut_off
	.byte 0x0f /* cut off */
	END

	CODE form_undecoded
	.byte 0x06 /* no instruction in 64-bit mode */
	END

/* At 0x1000: to 0x503, 0x600, 0x701, and just past a span. */
	CODE jumps_elsewhere
	jmp	. - 0x1000 + 0x503
	jne	. - 0x1005 + 0x600
	call	. - 0x100b + 0x701
	jmp	. - 0x1010 + 0x804
	END
#endif
