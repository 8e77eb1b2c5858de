/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of test_function_exits.c. */
#if defined(__x86_64__)
#include "test/support/code_cases.inc"

	.text

	CODE one_return
	xor	%eax, %eax
	ret
	END

	CODE two
	test	%rdi, %rdi
	je	1f
	ret
1:	xor	%eax, %eax
	ret
	END

	CODE rep_ret
	rep ret
	END

	CODE bytes_of_an_immediate_are_none
	mov	$0xc3c3c3c3, %eax
	ret
	END

	CODE what_nothing_leads_to_is_none
	jmp	1f
	.byte	0xc3, 0xc3
1:	ret
	END

	CODE a_loop
1:	test	%rdi, %rdi
	jne	1b
	ret
	END

	CODE ret_8
	ret	$8
	END

	CODE lret
	lretl
	END

	CODE data16_ret
	data16 ret
	END

	CODE jmp_rax
	jmp	*%rax
	END

	CODE jmp_8_rax
	jmp	*8(%rax)
	END

	CODE jmp_pointer_rip_which_nothing_fills
	jmp	*0x1000(%rip)
	END

	CODE int_returns
	int	$0x80
	ret
	END

	CODE int3_continues
	int3
	ret
	END

	CODE never
	je	1f
	ud2
1:	hlt
	END

	CODE no_instruction
	.byte	0x06
	END

	CODE cut_off
	.byte	0x48, 0x8b /* of a mov */
	END

	CODE out_of_the_code
	jmp	. + 0x105
	END

/* The call is the function's last instruction: it does not return, and the ret is not the function's. */
	CODE a_call_at_the_end
	je	1f
	ret
1:	call	2f
	END_FUNCTION
2:	ret
	END_CODE

/* The jump leads to code of which no bounds are known. */
	CODE beyond_the_symbol
	jmp	1f
	END_FUNCTION
	nop
	nop
1:	ret
	END_CODE

	CODE overlapping
	je	. + 3 /* into the mov */
	mov	$0xc3, %al
	ret
	END

	CODE plain
	test	%rdi, %rdi
	je	2f
1:	push	%rbx
	pop	%rbx
	nop
	nop
	ret
2:	xor	%eax, %eax
	jmp	1b
	ud2
	END

/* Only an exception leads to the second return. Then follows the LSDA. */
	CODE with_pad
	xor	%eax, %eax
	ret
	mov	%ecx, %eax
	ret
	END_FUNCTION
	.byte	0xff, 0xff, 0x01 /* no base, no types, uleb128 */
	.byte	8 /* bytes of call sites */
	.byte	0, 1, 0, 0
	.byte	1, 1, 3, 0 /* the landing pad is at 3 */
	END_CODE
#endif
