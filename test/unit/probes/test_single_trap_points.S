/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of test_single_trap_points.c, but for those whose frames matter. */
#if defined(__x86_64__)
#include "test/support/code_cases.inc"

	.text

	CODE two_paths
	push	%rbx
	mov	%rdi, %rbx
	mov	(%rsi), %rax
	test	%rax, %rax
	je	2f
	mov	(%rax), %rcx
	test	%rcx, %rcx
	je	1f
	mov	%rcx, 8(%rdx)
1:	pop	%rbx
	ret
2:	mov	%rbx, %rdi
	call	two_paths_helper
	jmp	1b
	END_FUNCTION
two_paths_helper:
	ret
	END_CODE

	CODE size_before_block
	sub	$8, %rsp
	call	size_before_block_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	add	$8, %rsp
	ret
	END_FUNCTION
size_before_block_helper:
	ret
	END_CODE

	CODE failing_path
	push	%rbx
	mov	%rdi, %rbx
	test	%rdi, %rdi
	js	2f
	call	failing_path_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	pop	%rbx
	ret
2:	xor	%eax, %eax
	pop	%rbx
	ret
	END_FUNCTION
failing_path_helper:
	ret
	END_CODE

	CODE failing_jump
	push	%rbx
	mov	%rdi, %rbx
	test	%rdi, %rdi
	js	2f
	call	failing_jump_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	pop	%rbx
	ret
2:	movl	$12, (%rsi)
	jmp	3f
3:	xor	%eax, %eax
	pop	%rbx
	ret
	END_FUNCTION
failing_jump_helper:
	ret
	END_CODE

	CODE other_than_null
	push	%rbx
	mov	%rdi, %rbx
	test	%rdi, %rdi
	js	2f
	call	other_than_null_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	pop	%rbx
	ret
2:	mov	$16, %eax
	pop	%rbx
	ret
	END_FUNCTION
other_than_null_helper:
	ret
	END_CODE

	CODE retried
	mov	(%rsi), %rax
1:	lock cmpxchg %rcx, (%rsi)
	jne	1b
	ret
	END

	CODE retried_before
	mov	(%rsi), %rax
1:	lock cmpxchg %rcx, (%rsi)
	jne	1b
	test	%rax, %rax
	je	2f
	movq	$0, 8(%rax)
2:	ret
	END

	CODE size_overwritten
	sub	$8, %rsp
	mov	(%rsi), %rdi
	call	size_overwritten_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	add	$8, %rsp
	ret
	END_FUNCTION
size_overwritten_helper:
	ret
	END_CODE

	CODE size_half_written
	sub	$8, %rsp
	mov	%edi, %edi
	call	size_half_written_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	add	$8, %rsp
	ret
	END_FUNCTION
size_half_written_helper:
	ret
	END_CODE

	CODE size_moved
	mov	%rdi, %r10
	mov	(%rsi), %rax
	test	%rdx, %rdx
	mov	$1, %edi
	je	1f
	movq	$0, (%rax)
1:	ret
	END

	CODE size_lost_in_call
	sub	$8, %rsp
	mov	%rdi, %r10
	xor	%edi, %edi
	call	size_lost_in_call_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	add	$8, %rsp
	ret
	END_FUNCTION
size_lost_in_call_helper:
	ret
	END_CODE

	CODE size_lost_in_system_call
	mov	%rdi, %rcx
	xor	%edi, %edi
	syscall
	test	%rax, %rax
	je	1f
	movq	$0, 8(%rax)
1:	ret
	END

	CODE never_returns
	push	%rbx
	mov	%rdi, %rbx
	call	never_returns_helper
	test	$15, %al
	jne	1f
	pop	%rbx
	ret
1:	mov	$1, %edi
	call	never_returns_die
	xor	%eax, %eax
	pop	%rbx
	ret
	END_FUNCTION
never_returns_helper:
	ret
never_returns_die:
	and	$1, %edi
	je	1f
never_returns_dead:
	hlt
	jmp	never_returns_dead
1:	ret
	END_CODE

	CODE may_return
	push	%rbx
	mov	%rdi, %rbx
	call	may_return_helper
	test	$15, %al
	jne	1f
	pop	%rbx
	ret
1:	mov	$2, %edi
	call	may_return_die
	xor	%eax, %eax
	pop	%rbx
	ret
	END_FUNCTION
may_return_helper:
	ret
may_return_die:
	and	$1, %edi
	je	1f
may_return_dead:
	hlt
	jmp	may_return_dead
1:	ret
	END_CODE

	CODE jump_to_table
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	jmp	*%rdx
1:	ret
	END

	CODE jump_to_pointer
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	jmp	*0(%rip)
1:	ret
	END

	CODE tail_call
	mov	(%rsi), %rax
	test	%rax, %rax
	je	tail_call_helper
	movq	$0, (%rax)
	ret
	END_FUNCTION
tail_call_helper:
	ret
	END_CODE

	CODE tail_call_to_death
	mov	(%rsi), %rax
	mov	%rdi, %r10
	mov	$1, %edi
	test	%rax, %rax
	js	tail_call_to_death_die
	ret
	END_FUNCTION
tail_call_to_death_helper:
	ret
tail_call_to_death_die:
	and	$1, %edi
	je	1f
tail_call_to_death_dead:
	hlt
	jmp	tail_call_to_death_dead
1:	ret
	END_CODE

	CODE falls_off
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	ret
1:	movq	$0, (%rax)
	END_FUNCTION
	ret
	END_CODE

	CODE two_returns
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
	ret
1:	ret
	END

	CODE null_is_the_block
	mov	(%rsi), %rax
	test	%rax, %rax
	jne	1f
	xor	%eax, %eax
1:	ret
	END

	CODE null_by_half
	mov	(%rsi), %rax
	test	%eax, %eax
	jne	1f
	xor	%eax, %eax
1:	ret
	END

	CODE null_by_other_flags
	mov	(%rsi), %rax
	test	%rax, %rax
	cmp	%rdx, %rcx
	jne	1f
	xor	%eax, %eax
1:	ret
	END

	CODE null_of_before
	mov	(%rsi), %rax
	test	%rax, %rax
	mov	(%rdx), %rax
	jne	1f
	xor	%eax, %eax
1:	ret
	END

	CODE second_point_follows
	test	%rdx, %rdx
	je	1f
	mov	(%rsi), %rax
	test	%rcx, %rcx
	je	2f
	movq	$0, (%rax)
	test	%r8, %r8
	je	3f
	ret
1:	mov	8(%rsi), %rax
2:	test	%rax, %rax
	je	3f
	movq	$0, 8(%rax)
3:	ret
	END

	CODE breakpoint
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	int3
1:	ret
	END

	CODE old_system_call
	mov	$1, %eax
	int	$0x80
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	ret
	END

	CODE entered_from_elsewhere
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	ret
	END_FUNCTION
	mov	%rdx, %rax
	.byte	0xe9
	.long	1b-.-4
	END_CODE

	CODE overlapping
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f+1
1:	mov	$0x90c3, %edx
	ret
	END

	CODE prefixed_call
	push	%rbx
	mov	%rdi, %rbx
	.byte	0x66
	call	prefixed_call_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	pop	%rbx
	ret
	END_FUNCTION
prefixed_call_helper:
	ret
	END_CODE

	CODE tls_call
	push	%rbx
	mov	%rdi, %rbx
	.byte	0x66, 0x66, 0x48
	call	tls_call_helper
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	pop	%rbx
	ret
	END_FUNCTION
tls_call_helper:
	ret
	END_CODE

	CODE prefixed_jump
	mov	(%rsi), %rax
	test	%rax, %rax
	.byte	0x66
	je	1f
	movq	$0, (%rax)
1:	ret
	END

	CODE prefixed_return
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	.byte	0x66
	ret
	END

	CODE transaction
	mov	(%rsi), %rax
	xbegin	1f
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	ret
	END

	CODE zero_and_unknown_meet
	mov	(%rsi), %rax
	test	%rcx, %rcx
	je	1f
	test	%rax, %rax
	jne	2f
1:	xor	%eax, %eax
2:	ret
	END

	CODE looped
	mov	(%rsi), %rax
1:	sub	$1, %rcx
	jne	1b
	ret
	END

	CODE size_or_other
	mov	%rdi, %r10
	test	%rcx, %rcx
	jne	1f
	mov	%rsi, %r10
1:	xor	%edi, %edi
	mov	(%rdx), %rax
	test	%rax, %rax
	je	2f
	movq	$0, (%rax)
2:	ret
	END

	CODE block_or_other
	test	%rcx, %rcx
	je	1f
	mov	%rdx, %rax
	jmp	2f
1:	mov	%r8, %rax
2:	ret
	END

	CODE either_block
	test	%rcx, %rcx
	je	1f
	mov	%rdx, %rax
	ret
1:	mov	%r8, %rax
	ret
	END

	CODE block_before_move
	test	%rcx, %rcx
	je	1f
	mov	%rdx, %rax
	ret
1:	mov	%rdx, %rax
	ret
	END

	CODE system_call_result
	mov	(%rsi), %rax
	test	%rdx, %rdx
	je	1f
	syscall
1:	ret
	END

	CODE only_stepped
	mov	(%rsi), %rax
	movq	$0, (%rax)
	ret
	END

	CODE two_values
	test	%rdx, %rdx
	mov	(%rsi), %rax
	je	1f
	mov	8(%rsi), %rax
1:	ret
	END

	CODE simple
	mov	(%rsi), %rax
	test	%rax, %rax
	je	1f
	movq	$0, (%rax)
1:	ret
	END
#endif
