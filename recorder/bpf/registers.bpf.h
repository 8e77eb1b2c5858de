/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What depends on the architecture: registers in perf's order, and the caller's address. */
#ifndef LEAKTOOLS_RECORDER_REGISTERS_BPF_H
#define LEAKTOOLS_RECORDER_REGISTERS_BPF_H

#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "recorder/bpf/targets.bpf.h"
#include "recorder/bpf/bpf_recorder_shared.h"

#include <stdbool.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Linux 6.2. Where the kernel does not have it, the verifier removes the call. */
const volatile bool can_cast = false;
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id)
	__attribute__((section(".ksyms"), weak));

/*
 * The current task, to be read only: reads of bad addresses give 0. The verifier searches the
 * kernel's types by name at each read of a pointer through bpf_get_current_task_btf(), which takes
 * it milliseconds.
 */
ALWAYS_INLINE const struct task_struct *task_to_read(void)
{
	if (!can_cast)
		return bpf_get_current_task_btf();
	return bpf_rdonly_cast(bpf_get_current_task_btf(),
			       bpf_core_type_id_kernel(struct task_struct));
}

#if defined(__TARGET_ARCH_x86)
#define NR_REGISTERS 20

/* The registers of a sample. */
#define kept_registers pt_regs
#define KEPT_IP(regs)  PT_REGS_IP(regs)
#define KEPT_SP(regs)  PT_REGS_SP(regs)
#define KEPT_FP(regs)  PT_REGS_FP(regs)

/* The bits of a return address on the stack that are the address. */
ALWAYS_INLINE unsigned long long code_address_mask(void)
{
	return ~0ULL;
}

/* In the order of enum perf_event_x86_regs, without the segment registers DS to GS. */
ALWAYS_INLINE void copy_registers(unsigned long long *to, const struct pt_regs *regs)
{
	to[0] = regs->rax;
	to[1] = regs->rbx;
	to[2] = regs->rcx;
	to[3] = regs->rdx;
	to[4] = regs->rsi;
	to[5] = regs->rdi;
	to[6] = regs->rbp;
	to[7] = regs->rsp;
	to[8] = regs->rip;
	to[9] = regs->eflags;
	to[10] = regs->cs;
	to[11] = regs->ss;
	to[12] = regs->r8;
	to[13] = regs->r9;
	to[14] = regs->r10;
	to[15] = regs->r11;
	to[16] = regs->r12;
	to[17] = regs->r13;
	to[18] = regs->r14;
	to[19] = regs->r15;
}

/* RECORD_CALL_REGS_MASK: what unwinding needs at a function's entry or after its return. */
#define NR_CALL_REGISTERS 8

ALWAYS_INLINE void copy_call_registers(unsigned long long *to, const struct pt_regs *regs)
{
	to[0] = regs->rbx;
	to[1] = regs->rbp;
	to[2] = regs->rsp;
	to[3] = regs->rip;
	to[4] = regs->r12;
	to[5] = regs->r13;
	to[6] = regs->r14;
	to[7] = regs->r15;
}

/* Each register is read once, from the context itself, as the verifier demands. */
#define REGISTER_CASE(number, name)                                                                \
	case number:                                                                               \
		value = regs->name;                                                                \
		asm volatile("" : "+r"(value));                                                    \
		break

/* A register by its number in instructions, as points have it (points.bpf.h). */
ALWAYS_INLINE unsigned long long numbered_register(const struct pt_regs *regs, unsigned int number)
{
	unsigned long long value = 0;

	switch (number) {
		REGISTER_CASE(0, rax);
		REGISTER_CASE(1, rcx);
		REGISTER_CASE(2, rdx);
		REGISTER_CASE(3, rbx);
		REGISTER_CASE(5, rbp);
		REGISTER_CASE(6, rsi);
		REGISTER_CASE(7, rdi);
		REGISTER_CASE(8, r8);
		REGISTER_CASE(9, r9);
		REGISTER_CASE(10, r10);
		REGISTER_CASE(11, r11);
		REGISTER_CASE(12, r12);
		REGISTER_CASE(13, r13);
		REGISTER_CASE(14, r14);
		REGISTER_CASE(15, r15);
	}
	return value;
}

/*
 * A register's value after the return: @saved says which word of @frame holds it, 0: it is
 * unchanged, and @now is its value.
 */
ALWAYS_INLINE unsigned long long restored(unsigned long long now, unsigned char saved,
					  const unsigned long long *frame)
{
	/* Keeps the compiler from selecting between the two addresses. */
	asm volatile("" : "+r"(now));
	return saved ? frame[(saved - 1) & (BPF_FRAME_WORDS - 1)] : now;
}

/* @saved: of struct bpf_site. */
ALWAYS_INLINE void restore_registers(struct pt_regs *to, const struct pt_regs *regs,
				     const unsigned char *saved, const unsigned long long *frame)
{
	to->rbx = restored(regs->rbx, saved[0], frame);
	to->rbp = restored(regs->rbp, saved[1], frame);
	to->r12 = restored(regs->r12, saved[2], frame);
	to->r13 = restored(regs->r13, saved[3], frame);
	to->r14 = restored(regs->r14, saved[4], frame);
	to->r15 = restored(regs->r15, saved[5], frame);
}

/* Reads each register once, as copy_registers() does. */
ALWAYS_INLINE void copy_context(struct pt_regs *to, const struct pt_regs *regs)
{
	to->r15 = regs->r15;
	to->r14 = regs->r14;
	to->r13 = regs->r13;
	to->r12 = regs->r12;
	to->rbp = regs->rbp;
	to->rbx = regs->rbx;
	to->r11 = regs->r11;
	to->r10 = regs->r10;
	to->r9 = regs->r9;
	to->r8 = regs->r8;
	to->rax = regs->rax;
	to->rcx = regs->rcx;
	to->rdx = regs->rdx;
	to->rsi = regs->rsi;
	to->rdi = regs->rdi;
	to->orig_rax = regs->orig_rax;
	to->cs = regs->cs;
	to->eflags = regs->eflags;
	to->ss = regs->ss;
	to->rsp = regs->rsp;
	to->rip = regs->rip;
}

/* Of these, those that copy_call_registers() takes. */
ALWAYS_INLINE void copy_call_context(struct pt_regs *to, const struct pt_regs *regs)
{
	to->rbx = regs->rbx;
	to->rbp = regs->rbp;
	to->rsp = regs->rsp;
	to->rip = regs->rip;
	to->r12 = regs->r12;
	to->r13 = regs->r13;
	to->r14 = regs->r14;
	to->r15 = regs->r15;
}

/* Sets rip and rsp. */
ALWAYS_INLINE void set_return(struct pt_regs *regs, unsigned long long ip, unsigned long long sp)
{
	regs->rip = ip;
	regs->rsp = sp;
}

/* Of the current task. */
ALWAYS_INLINE unsigned long long thread_pointer(const struct task_struct *task)
{
	return task->thread.fsbase;
}

/* The caller's address at a function's entry. */
ALWAYS_INLINE unsigned long long caller_at_entry(struct pt_regs *regs)
{
	unsigned long long caller = 0;

	bpf_probe_read_user(&caller, sizeof(caller), (void *)PT_REGS_SP(regs));
	return caller;
}

/*
 * What the wrapper of a system call has saved on the stack, by the code after its syscall
 * instruction: cmp $-4095,%rax or $-4096; jae or ja; pops; ret. Returns the number of pops, plus
 * 256 times the number, from 1, of the one that restores the frame pointer. Other code counts as
 * without pops. The function is global, so that the verifier checks the loop once for each program.
 */
__attribute__((noinline)) unsigned int pops_of_wrapper(unsigned long long ip)
{
	unsigned long long test = 0, code = 0;
	unsigned int nr = 0, of_fp = 0, jump;

	bpf_probe_read_user(&test, sizeof(test), (void *)ip);
	if ((test & 0xfffffffeffffULL) != 0xfffff0003d48ULL)
		return 0;
	jump = test >> 48; /* with an offset of one byte or of four */
	if ((jump & 0xfb) == 0x73)
		ip += 8;
	else if ((jump & 0xfbff) == 0x830f)
		ip += 12;
	else
		return 0;
	bpf_probe_read_user(&code, sizeof(code), (void *)ip);
	for (int i = 0; i < 8; i++, code >>= 8) {
		unsigned int byte = code & 0xff;

		if (byte == 0xc3)
			return nr + 256 * of_fp;
		if (byte == 0x41 && (code & 0xf800) == 0x5800) { /* pop %r8 to %r15 */
			nr++;
			code >>= 8;
			continue;
		}
		if ((byte & 0xf8) != 0x58)
			return 0;
		nr++;
		if (byte == 0x5d)
			of_fp = nr;
	}
	return 0;
}

/*
 * Returns the address of the caller of a system call's wrapper, and restores the caller's frame
 * pointer in @regs, where a system call has just returned. glibc 2.41's mmap holds its flags in
 * %rbp (MMAP_PREPARE, sysdeps/unix/sysv/linux/x86_64/64/mmap_internal.h). Not inlined: there is no
 * room for more on the stack of the program that calls it.
 */
static __attribute__((noinline)) unsigned long long leave_wrapper(struct kept_registers *regs)
{
	unsigned int pops = pops_of_wrapper(regs->rip), of_fp = pops >> 8;
	unsigned long long caller = 0, fp;

	if (of_fp &&
	    bpf_probe_read_user(&fp, sizeof(fp), (void *)(regs->rsp + 8ULL * (of_fp - 1))) == 0)
		regs->rbp = fp;
	bpf_probe_read_user(&caller, sizeof(caller), (void *)(regs->rsp + 8ULL * (pops & 0xff)));
	return caller;
}

/* The arguments of a system call, at its entry and at its return. */
ALWAYS_INLINE void copy_syscall_args(unsigned long long *to, const struct pt_regs *regs)
{
	to[0] = regs->rdi;
	to[1] = regs->rsi;
	to[2] = regs->rdx;
	to[3] = regs->r10;
	to[4] = regs->r8;
	to[5] = regs->r9;
}

ALWAYS_INLINE long syscall_number(const struct pt_regs *regs)
{
	return (long)regs->orig_rax;
}

/* True in a call of the 32-bit interface, which has other numbers: TS_COMPAT. */
ALWAYS_INLINE bool is_compat_syscall(struct task_struct *task)
{
	return task->thread_info.status & 2;
}
#elif defined(__TARGET_ARCH_arm64)
/*
 * The registers of a sample: those that a call preserves, x19 to x30, then sp and pc
 * (RECORD_CALL_REGS_MASK). All 33 do not fit on a program's stack.
 */
#define FIRST_KEPT    19
#define NR_PRESERVED  12
#define NR_REGISTERS  (NR_PRESERVED + 2)

struct kept_registers {
	unsigned long long preserved[NR_PRESERVED];
	unsigned long long sp, pc;
};

#define KEPT_IP(regs) ((regs)->pc)
#define KEPT_SP(regs) ((regs)->sp)
#define KEPT_FP(regs) ((regs)->preserved[29 - FIRST_KEPT])

/*
 * The bits of a return address on the stack that are the address. It may be signed in those above:
 * ptrauth_user_pac_mask(), arch/arm64/include/asm/pointer_auth.h (Linux 6.1). TASK_SIZE is
 * 2^vabits_actual there.
 */
ALWAYS_INLINE unsigned long long code_address_mask(void)
{
	struct mm_struct *mm = task_to_read()->mm;

	return mm ? mm->task_size - 1 : ~0ULL;
}

ALWAYS_INLINE void copy_registers(unsigned long long *to, const struct kept_registers *regs)
{
#pragma unroll
	for (int i = 0; i < NR_PRESERVED; i++)
		to[i] = regs->preserved[i];
	to[NR_PRESERVED] = regs->sp;
	to[NR_PRESERVED + 1] = regs->pc;
}

#define NR_CALL_REGISTERS     NR_REGISTERS
#define copy_call_registers   copy_registers

ALWAYS_INLINE unsigned long long thread_pointer(const struct task_struct *task)
{
	return task->thread.uw.tp_value;
}

/* The link register. */
ALWAYS_INLINE unsigned long long caller_at_entry(struct pt_regs *regs)
{
	return PT_REGS_RET(regs);
}

/* There are no points: probes/arm64 finds none. */
ALWAYS_INLINE unsigned long long numbered_register(const struct pt_regs *regs, unsigned int number)
{
	return 0;
}

ALWAYS_INLINE void restore_registers(struct kept_registers *to, const struct pt_regs *regs,
				     const unsigned char *saved, const unsigned long long *frame)
{
}

/* Each register is read once, from the context itself, as the verifier demands. */
#define KEEP_REGISTER(number) to->preserved[(number)-FIRST_KEPT] = user->regs[number]

ALWAYS_INLINE void copy_context(struct kept_registers *to, const struct pt_regs *regs)
{
	const struct user_pt_regs *user = (const void *)regs;

	KEEP_REGISTER(19);
	KEEP_REGISTER(20);
	KEEP_REGISTER(21);
	KEEP_REGISTER(22);
	KEEP_REGISTER(23);
	KEEP_REGISTER(24);
	KEEP_REGISTER(25);
	KEEP_REGISTER(26);
	KEEP_REGISTER(27);
	KEEP_REGISTER(28);
	KEEP_REGISTER(29);
	KEEP_REGISTER(30);
	to->sp = user->sp;
	to->pc = user->pc;
}

#define copy_call_context     copy_context

ALWAYS_INLINE void set_return(struct kept_registers *regs, unsigned long long ip,
			      unsigned long long sp)
{
	regs->pc = ip;
	regs->sp = sp;
}

/* The caller of a system call's wrapper, which has no frame: the link register. */
ALWAYS_INLINE unsigned long long leave_wrapper(struct kept_registers *regs)
{
	return regs->preserved[30 - FIRST_KEPT];
}

/* At the return, the first argument's register holds the result. */
ALWAYS_INLINE void copy_syscall_args(unsigned long long *to, const struct pt_regs *regs)
{
	const struct user_pt_regs *user = (const void *)regs;

#pragma unroll
	for (int i = 0; i < 6; i++)
		to[i] = user->regs[i];
}

ALWAYS_INLINE long syscall_number(const struct pt_regs *regs)
{
	return (long)((const struct user_pt_regs *)(const void *)regs)->regs[8];
}

/* 32-bit tasks are not recorded anyway. */
ALWAYS_INLINE bool is_compat_syscall(struct task_struct *task)
{
	return false;
}
#endif

#endif
