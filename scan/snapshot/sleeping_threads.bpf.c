/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the registers of a process's threads without stopping them (sleeping_threads.h). A program
 * at the task iterator, which runs in the process that reads the iterator's file.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "scan/snapshot/sleeping_threads_shared.h"

#define PF_IO_WORKER   0x00000010 /* include/linux/sched.h */
#define PF_USER_WORKER 0x00004000 /* the same, Linux 6.4 */
#define FXSAVE_BYTES   512

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct seq_file;
struct pid_namespace;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

typedef struct {
	int counter;
} atomic_t;

struct mm_struct {
	atomic_t mm_users;
};

struct signal_struct {
	int nr_threads;
};

union fpregs_state {
	unsigned char image[1];
};

/* Up to Linux 5.15, the state of the floating-point unit is in struct fpu itself. */
struct fpstate {
	unsigned int size;
	union fpregs_state regs;
};

struct fpu {
	struct fpstate *fpstate;
};

struct thread_struct {
	unsigned long fsbase, gsbase;
	struct fpu fpu;
};

struct task_struct {
	int pid, tgid;
	unsigned int on_cpu; /* one byte in Linux 7.3: what is unsigned may have another size */
	unsigned int flags;
	unsigned long nvcsw, nivcsw;
	unsigned long long start_boottime;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct pid *thread_pid;
	struct thread_struct thread;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* One file is read at a time, by one process. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, unsigned int);
	__type(value, struct sleeping_thread);
} record SEC(".maps");

static unsigned int number_for_reader(struct task_struct *task)
{
	struct task_struct *reader = (struct task_struct *)bpf_get_current_task();
	unsigned int level = BPF_CORE_READ(reader, thread_pid, level);
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	char *numbers = (char *)pid + bpf_core_field_offset(struct pid, numbers);
	unsigned int number = 0;

	/* Others are not shown to the reader. */
	if (pid && level <= BPF_CORE_READ(pid, level))
		bpf_probe_read_kernel(&number, sizeof(number),
				      numbers + level * bpf_core_type_size(struct upid) +
					      bpf_core_field_offset(struct upid, nr));
	return number;
}

/*
 * Since Linux 6.16, struct fpu follows struct task_struct (x86_task_fpu(), asm/processor.h). When a
 * thread leaves its CPU, the kernel stores the registers there (switch_fpu(), asm/fpu/sched.h).
 */
static void read_vector(struct task_struct *task, struct sleeping_thread *to)
{
	void *fpu =
		(char *)task + (bpf_core_field_exists(struct thread_struct, fpu)
					? bpf_core_field_offset(struct task_struct, thread) +
						  bpf_core_field_offset(struct thread_struct, fpu)
					: bpf_core_type_size(struct task_struct));
	struct fpstate *state = 0;
	unsigned int size = 0;

	bpf_probe_read_kernel(&state, sizeof(state),
			      (char *)fpu + bpf_core_field_offset(struct fpu, fpstate));
	if (!state || bpf_core_read(&size, sizeof(size), &state->size))
		size = 0;
	to->vector_size = size;
	if (size < FXSAVE_BYTES || size > SLEEPING_VECTOR ||
	    bpf_probe_read_kernel(to->vector, size, &state->regs))
		size = 0;
	to->vector_bytes = size;
}

SEC("iter/task")
int read_thread(struct bpf_iter__task *context)
{
	struct seq_file *seq = context->meta->seq;
	struct task_struct *task = context->task;
	unsigned int zero = 0, bytes;
	struct sleeping_thread *to = bpf_map_lookup_elem(&record, &zero);
	struct mm_struct *mm;
	void *registers;

	if (!task || !to)
		return 0;
	/* on_cpu before the switches: what is counted until it leaves the CPU is then counted. */
	to->on_cpu = task->on_cpu;
	to->nr_switches = task->nvcsw + task->nivcsw;
	to->tid = number_for_reader(task);
	to->tgid = task->tgid;
	to->start_ns = task->start_boottime;
	to->nr_threads = task->signal->nr_threads;
	to->is_kernels = !!(task->flags & (PF_IO_WORKER | PF_USER_WORKER));
	mm = task->mm;
	to->memory = (unsigned long long)mm;
	to->nr_mm_users = mm ? BPF_CORE_READ(mm, mm_users.counter) : 0;
	to->fs_base = task->thread.fsbase;
	to->gs_base = task->thread.gsbase;
	registers = (void *)bpf_task_pt_regs(task);
	bpf_probe_read_kernel(to->general, sizeof(to->general), registers);
	to->vector_size = to->vector_bytes = 0;
	if (!to->is_kernels)
		read_vector(task, to);
	bytes = __builtin_offsetof(struct sleeping_thread, vector) + to->vector_bytes;
	/* Linux 6.1 must see the limit of this very sum. */
	barrier_var(bytes);
	if (bytes <= sizeof(*to))
		bpf_seq_write(seq, to, bytes);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
