/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The code of test_code_jumps.c. */
#if defined(__x86_64__)
	.text

/* Each place is a span of its own. */
	.globl	place_of_call, place_of_jcc, place_of_immediate, place_without_frame, place_in_data
place_of_call:		nop
place_of_jcc:		nop
place_of_immediate:	nop
place_without_frame:	nop
place_in_data:		nop

	.macro	DISTANCE_TO place
	.long	\place - (. + 4)
	.endm

/* movabs with bytes of a call. */
	.macro	MOVE_LIKE_CALL place
	.byte	0x48, 0xb8, 0xe8
	DISTANCE_TO \place
	.byte	0, 0, 0
	.endm

real_jumps:
	.cfi_startproc
	xor	%eax, %eax
	.byte	0xe8
	DISTANCE_TO place_of_call
	.byte	0x0f, 0x84
	DISTANCE_TO place_of_jcc
	ret
	.cfi_endproc

no_jumps:
	.cfi_startproc
	MOVE_LIKE_CALL place_of_immediate
	ret
	.cfi_endproc

no_frame:
	MOVE_LIKE_CALL place_without_frame
	ret

/* The bytes after the jump are no instruction. */
with_data:
	.cfi_startproc
	MOVE_LIKE_CALL place_in_data
	ret
	.byte	0x06
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
#endif
