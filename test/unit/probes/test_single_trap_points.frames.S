/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of test_single_trap_points.c whose frames matter. */
#if defined(__x86_64__)
#include "test/support/code_cases.inc"

	.text

	CODE spilled
	push	%rbx
	mov	%rdi, %rbx
	sub	$16, %rsp
	call	spilled_helper
	test	%rdx, %rdx
	je	1f
	mov	%rax, 8(%rsp)
	call	spilled_helper
	mov	8(%rsp), %rax
1:	add	$16, %rsp
	pop	%rbx
	ret
	END_FUNCTION
spilled_helper:
	ret
	END_CODE

	CODE spilled_and_changed
	push	%rbx
	mov	%rdi, %rbx
	sub	$16, %rsp
	call	spilled_and_changed_helper
	test	%rdx, %rdx
	je	1f
	mov	%rax, 8(%rsp)
	movb	$0, 15(%rsp)
	mov	8(%rsp), %rax
1:	add	$16, %rsp
	pop	%rbx
	ret
	END_FUNCTION
spilled_and_changed_helper:
	ret
	END_CODE

	CODE spilled_somewhere
	push	%rbx
	mov	%rdi, %rbx
	sub	$16, %rsp
	call	spilled_somewhere_helper
	test	%rdx, %rdx
	je	1f
	mov	%rax, 8(%rsp)
	mov	%rcx, (%rsp,%rdx,8)
	mov	8(%rsp), %rax
1:	add	$16, %rsp
	pop	%rbx
	ret
	END_FUNCTION
spilled_somewhere_helper:
	ret
	END_CODE

	CODE spilled_below
	push	%rbx
	mov	%rdi, %rbx
	call	spilled_below_helper
	test	%rdx, %rdx
	je	1f
	mov	%rax, -8(%rsp)
	call	spilled_below_helper
	mov	-8(%rsp), %rax
1:	pop	%rbx
	ret
	END_FUNCTION
spilled_below_helper:
	ret
	END_CODE

	CODE aligned_stack
	push	%rbp
	mov	%rsp, %rbp
	and	$-16, %rsp
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	leave
	ret
	END

	CODE variable_stack
	push	%rbp
	mov	%rsp, %rbp
	sub	%rdi, %rsp
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	leave
	ret
	END

	CODE address_of_stack
	push	%rbx
	mov	%rdi, %rbx
	sub	$16, %rsp
	lea	8(%rsp), %rsi
	call	address_of_stack_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	add	$16, %rsp
	pop	%rbx
	ret
	END_FUNCTION
address_of_stack_helper:
	ret
	END_CODE

	CODE stack_pointer_copied
	mov	%rsp, %rdx
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rdx)
1:	ret
	END

	CODE frame_address_pushed
	push	%rbp
	mov	%rsp, %rbp
	mov	(%rsi), %rax
	push	%rbp
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	leave
	ret
	END

	CODE return_address_written
	mov	(%rsi), %rax
	mov	%rdx, (%rsp)
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	ret
	END

	CODE stack_lost
	push	%rbx
	mov	%rdi, %rbx
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	add	$8, %rsp
1:	pop	%rbx
	ret
	END

	CODE unbalanced
	mov	(%rsi), %rax
	push	%rdx
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	ret
	END

	CODE not_restored
	mov	%rdi, %rbx
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	ret
	END

	CODE restored_wrongly
	push	%rbx
	push	%rbp
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	pop	%rbx
	pop	%rbp
	ret
	END

	CODE frame_pointer
	push	%rbp
	mov	%rsp, %rbp
	push	%rbx
	sub	$24, %rsp
	mov	%rdi, %rbx
	call	frame_pointer_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	mov	-8(%rbp), %rbx
	leave
	ret
	END_FUNCTION
frame_pointer_helper:
	ret
	END_CODE

	CODE frame_pointer_popped
	push	%rbp
	mov	%rsp, %rbp
	push	%r12
	push	%rbx
	mov	%rdi, %rbx
	mov	%rsi, %r12
	call	frame_pointer_popped_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	lea	-16(%rbp), %rsp
	pop	%rbx
	pop	%r12
	pop	%rbp
	ret
	END_FUNCTION
frame_pointer_popped_helper:
	ret
	END_CODE

	CODE signed_bytes
	mov	%rdi, %r10
	add	$-128, %rsp
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	sub	$-128, %rsp
	test	%rdx, %rdx
	je	2f
	movq	$0, 8(%rax)
2:	ret
	END

	CODE deep_frame
	push	%rbx
	mov	%rdi, %rbx
	sub	$240, %rsp
	call	deep_frame_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	add	$240, %rsp
	pop	%rbx
	ret
	END_FUNCTION
deep_frame_helper:
	ret
	END_CODE

	CODE enter
	enter	$16, $0
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	leave
	ret
	END

	CODE returns_and_pops
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	ret	$8
	END

	CODE saved_below
	mov	%rbx, -8(%rsp)
	mov	%rdi, %rbx
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	mov	-8(%rsp), %rbx
	ret
	END

	CODE stack_pointer_added
	add	%rsp, %rdx
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rdx)
1:	ret
	END
#endif
