/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of test_code_returns.c. */
#if defined(__x86_64__)
#include "test/support/code_cases.inc"

	.text

	CODE ret
	ret
	END

	CODE hlt
	hlt
	END

	CODE ud2
	ud2
	END

	CODE jmp_to_itself
1:	jmp	1b
	END

	CODE int3
	int3
	ret
	END

	CODE syscall
	syscall
	ret
	END

	CODE indirect_jmp
	jmp	*%rax
	END

	CODE plt_jmp
	jmp	*0(%rip)
	END

	CODE no_instruction
	.byte	0x06
	END

	CODE end_of_segment
	nop
	END

	CODE jmp_out_of_segment
	jmp	. + 0x1005
	END

	CODE prefixed_jmp
1:	data16 jmp	1b
	END

	CODE calls_hlt
	call	1f
	ret
1:	hlt
	END

	CODE calls_ret
	call	1f
	ret
1:	ret
	END

	CODE indirect_call_hlt
	call	*%rax
	hlt
	END

	CODE indirect_call_ret
	call	*%rax
	ret
	END

	CODE calls_itself
1:	call	1b
	ret
	END

	CODE by_argument
	and	$1, %edi
	mov	%edi, %ebx
	call	2f
	test	%ebx, %ebx
	jne	1f
	ret
1:	hlt
2:	ret
	END

	CODE by_lost_register
	and	$1, %edi
	mov	%edi, %ecx
	call	2f
	test	%ecx, %ecx
	jne	1f
	ret
1:	hlt
2:	ret
	END

	CODE by_either
	test	%edi, %edi
	je	1f
	mov	$1, %edi
1:	test	%edi, %edi
	jne	2f
	ret
2:	hlt
	END
#endif
