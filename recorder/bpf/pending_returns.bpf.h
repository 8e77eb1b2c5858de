/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Restores return addresses in stacks. A return probe replaces the return address on the stack by
 * the kernel's trampoline (prepare_uretprobe(), kernel/events/uprobes.c). Where one probed function
 * calls another, the outer one's trampoline would end a stack that is taken at the inner one's
 * return. The kernel keeps the original addresses, also for probes of others. A function that was
 * left by a jump stays pending, perhaps until other frames are in its place. So a word is restored
 * only if it holds the trampoline's address.
 */
#ifndef LEAKTOOLS_RECORDER_PENDING_RETURNS_BPF_H
#define LEAKTOOLS_RECORDER_PENDING_RETURNS_BPF_H

#include "recorder/bpf/targets.bpf.h"
#include "recorder/bpf/registers.bpf.h"

#define MAX_PENDING_RETURNS 16 /* nested calls of probed functions */

struct return_instance {
	unsigned long func;  /* the function that will return */
	unsigned long stack; /* the address of the return address */
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
} __attribute__((preserve_access_index));

struct uprobe_task {
	struct return_instance *return_instances;
	unsigned long vaddr;
} __attribute__((preserve_access_index));

struct uprobe_dispatch_data {
	unsigned long bp_addr;
} __attribute__((preserve_access_index));

ALWAYS_INLINE struct return_instance *pending_returns(void)
{
	struct uprobe_task *utask = task_to_read()->utask;

	return utask ? utask->return_instances : 0;
}

/*
 * The address of the probe of the function that returns. Before Linux 6.7, bpf_get_func_ip() knows
 * it at links only. uretprobe_dispatcher() has it at hand (kernel/trace/trace_uprobe.c, Linux 6.1).
 */
static __attribute__((noinline)) unsigned long long returning_function(struct pt_regs *regs)
{
	unsigned long long ip = bpf_get_func_ip(regs);
	struct uprobe_task *utask = ip ? 0 : task_to_read()->utask;

	return utask ? BPF_CORE_READ((struct uprobe_dispatch_data *)utask->vaddr, bp_addr) : ip;
}

/*
 * What stands in the place of a return address: uprobe_get_trampoline_vaddr(),
 * kernel/events/uprobes.c (Linux 6.18).
 */
ALWAYS_INLINE unsigned long long trampoline(void)
{
	struct mm_struct *mm = task_to_read()->mm;
	struct xol_area *area = mm ? mm->uprobes_state.xol_area : 0;

	return area ? area->vaddr : 0;
}

/*
 * The innermost active function with a return probe, or 0. A function that was left by a jump is
 * still pending, but its frame is below the stack pointer.
 */
ALWAYS_INLINE unsigned long long pending_function(unsigned long long sp)
{
	struct return_instance *pending = pending_returns();

	for (int i = 0; i < MAX_PENDING_RETURNS && pending; i++) {
		if (pending->stack >= sp)
			return pending->func;
		pending = pending->next;
	}
	return 0;
}

/* The original of the return address @found at @at on the stack. */
__attribute__((noinline)) unsigned long long true_return(unsigned long long found,
							 unsigned long long at)
{
	struct return_instance *pending = pending_returns();

	if (!pending || found != trampoline())
		return found;
	for (int i = 0; i < MAX_PENDING_RETURNS && pending; i++) {
		if (pending->stack == at)
			found = pending->orig_ret_vaddr;
		pending = pending->next;
	}
	return found;
}

/*
 * How many words below @pending->stack the return address may be. x86-64's call instruction has put
 * it there. On AArch64 that is the stack pointer at the function's entry, and the function itself
 * saves the address, which may be signed by then, in its frame: compilers put it at the bottom.
 */
#if defined(__TARGET_ARCH_arm64)
#define NEAREST_WORD  1
#define FARTHEST_WORD 48
#else
#define NEAREST_WORD  0
#define FARTHEST_WORD 0
#endif

/*
 * Restores the return addresses in @dump, @bytes of the stack from @sp on. The verifier knows that
 * @bytes is at most @max_bytes, a constant to it.
 */
ALWAYS_INLINE void restore_returns(char *dump, unsigned long long sp, unsigned int bytes,
				   unsigned int max_bytes, struct return_instance *pending)
{
	unsigned long long last = bytes, replaced = trampoline(), mask = code_address_mask();

	/* The verifier (Linux 6.18.15) keeps the bound only if this register is compared first. */
	asm volatile("" : "+r"(last));
	if (last < 8)
		return;
	asm volatile("%0 += -8" : "+r"(last));
	for (int i = 0; i < MAX_PENDING_RETURNS && pending; i++) {
		for (int word = NEAREST_WORD; word <= FARTHEST_WORD; word++) {
			unsigned long long offset = pending->stack - sp - word * 8;

			/* Linux 6.1 learns a bound from a constant only. */
			asm volatile("" : "+r"(offset));
			if (offset >= max_bytes || offset > last ||
			    (*(unsigned long long *)(dump + offset) & mask) != replaced)
				continue;
			*(unsigned long long *)(dump + offset) = pending->orig_ret_vaddr;
			break;
		}
		pending = pending->next;
	}
}

#endif
