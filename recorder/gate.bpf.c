/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The gate: runs at each hit of a probe, before the sample is written, and stops the process when
 * the ring of its CPU may be past the limit. The process stops before it returns to user space,
 * however late the recorder is scheduled.
 */
#include "gate_shared.h"

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define SIGSTOP 19

/* The kernel's, as far as it is read; libbpf finds the offsets in the running kernel's BTF. */
struct task_struct {
	int tgid;
	struct task_struct *real_parent;
} __attribute__((preserve_access_index));

/* Upper bounds of a record, with and without a stack. */
const volatile unsigned int plain_bytes = 0;
const volatile unsigned int stack_bytes = 0;

struct gate_shared shared;

static struct gate_target *find_target(unsigned int tgid)
{
	for (int i = 0; i < GATE_MAX_PROBES; i++) {
		unsigned int slot = (gate_target_slot(tgid) + i) & (GATE_MAX_TARGETS - 1);

		if (shared.targets[slot].tgid == tgid)
			return &shared.targets[slot];
		if (shared.targets[slot].tgid == 0)
			break;
	}
	return 0;
}

static struct gate_target *add_target(unsigned int tgid)
{
	for (int i = 0; i < GATE_MAX_PROBES; i++) {
		struct gate_target *target =
			&shared.targets[(gate_target_slot(tgid) + i) & (GATE_MAX_TARGETS - 1)];
		unsigned long long old = target->tgid;

		if (old == tgid)
			return target;
		if (old <= GATE_REMOVED &&
		    __sync_val_compare_and_swap(&target->tgid, old, (unsigned long long)tgid) ==
			    old) {
			target->stopped = 0;
			return target;
		}
	}
	return 0;
}

/* The recorded process that runs now, or NULL: the probe may be hit by others, too. */
static struct gate_target *current_target(void)
{
	unsigned int tgid = bpf_get_current_pid_tgid() >> 32;
	struct gate_target *target = find_target(tgid);

	if (target)
		return target;
	/* A child's events are inherited from its parent's. */
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	return find_target(BPF_CORE_READ(task, real_parent, tgid)) ? add_target(tgid) : 0;
}

static int gate(unsigned int bytes)
{
	struct gate_cpu *cpu = &shared.cpus[bpf_get_smp_processor_id() & (GATE_MAX_CPUS - 1)];
	struct gate_target *target;
	unsigned long long produced;

	if (shared.closed)
		return 1;
	target = current_target();
	if (!target)
		return 1;
	produced = __sync_fetch_and_add(&cpu->produced, bytes) + bytes;
	if ((long long)(produced - cpu->consumed) <= (long long)shared.limit_bytes)
		return 1;
	/*
	 * A process that is stopped without a mark stays stopped: the mark is set before the
	 * signal, in case that nobody comes to the second, and after it, in case that the recorder
	 * took the first for one of an earlier stop.
	 */
	if (__sync_lock_test_and_set(&target->stopped, 1) == 0)
		target->stopped_ns = bpf_ktime_get_ns();
	bpf_send_signal(SIGSTOP);
	target->stopped = 1;
	shared.any_stopped = 1;
	return 1;
}

SEC("kprobe")
int gate_plain(void *regs)
{
	return gate(plain_bytes);
}

SEC("kprobe")
int gate_stack(void *regs)
{
	return gate(stack_bytes);
}

char LICENSE[] SEC("license") = "GPL";
