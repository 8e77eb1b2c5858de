/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stops a recorded process before its first clone(), until the recorder has opened a breaker in the
 * perf context of the calling thread. context_breakers.h has the reason.
 *
 * copy_process() (kernel/fork.c, Linux 4.19 to 7.3) returns -ERESTARTNOINTR if a signal is pending,
 * before it creates anything. So a thread that gets SIGSTOP at the entry of kernel_clone()
 * (kernel/fork.c, Linux 5.10 and later) stops, and repeats the call when it is continued.
 */
#ifndef LEAKTOOLS_RECORDER_CONTEXT_BREAKERS_BPF_H
#define LEAKTOOLS_RECORDER_CONTEXT_BREAKERS_BPF_H

#include "recorder/bpf/context_breakers_shared.h"
#include "recorder/bpf/targets.bpf.h"

#include <bpf/bpf_tracing.h>

#define CLONE_THREAD 0x00010000 /* uapi/linux/sched.h */

struct kernel_clone_args {
	unsigned long long flags;
} __attribute__((preserve_access_index));

/* Fields that targets.bpf.h does not declare. libbpf ignores a suffix such as ___age. */
struct task_struct___age {
	unsigned long long start_time;
} __attribute__((preserve_access_index));

struct breaker_shared breakers;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 17);
} breaker_requests SEC(".maps");

/* A thread's last request, and the answer. */
struct breaker_state {
	unsigned long long number; /* 0: none */
	unsigned long long answer; /* as in breaker_shared; 0: none yet */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct breaker_state);
} breaker_states SEC(".maps");

/*
 * True if the current thread needs a breaker of its own before it creates a task. A new thread
 * inherits an event that is enough for forking processes.
 */
static bool needs_breaker(unsigned long long clone_flags)
{
	unsigned long long id = bpf_get_current_pid_tgid();

	return (clone_flags & CLONE_THREAD) || (unsigned int)id == id >> 32;
}

static bool is_initial(void)
{
	struct task_struct___age *task = (struct task_struct___age *)bpf_get_current_task();

	return BPF_CORE_READ(task, start_time) < breakers.attached_ns;
}

static struct breaker_state *state_of_task(unsigned long long flags)
{
	struct breaker_state *state =
		bpf_task_storage_get(&breaker_states, bpf_get_current_task_btf(), 0, flags);
	unsigned long long answer;

	if (!state || !state->number || state->answer)
		return state;
	answer = breakers.answers[state->number & (BREAKER_MAX_ANSWERS - 1)];
	if (answer >> 1 == state->number)
		state->answer = answer;
	return state;
}

/* Asks the recorder for a breaker. */
static bool request_breaker(struct breaker_state *state)
{
	struct breaker_request *request =
		bpf_ringbuf_reserve(&breaker_requests, sizeof(*request), 0);
	unsigned long long id = bpf_get_current_pid_tgid();

	if (!request)
		return false;
	/* A request's number is never 0. */
	state->number = __sync_fetch_and_add(&breakers.nr_requests, 1) + 1;
	*request = (struct breaker_request){state->number, id >> 32, id};
	bpf_ringbuf_submit(request, BPF_RB_FORCE_WAKEUP);
	return true;
}

SEC("fentry/kernel_clone")
int BPF_PROG(before_clone, struct kernel_clone_args *args)
{
	struct breaker_state *state;
	struct target *target;

	if (everywhere || shared.closed || !needs_breaker(args->flags) || !current_target() ||
	    is_initial())
		return 0;
	state = state_of_task(BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state || state->answer)
		return 0;
	target = may_hold_for_set_up() ? target_to_hold() : 0;
	/* Mark before the recorder can answer: its answer continues marked processes. */
	if (target) {
		target->forks = TARGET_FORKS_WANTED;
		hold_for_set_up(target);
	}
	/* The request failed, so the recorder would not continue the process. */
	if (!request_breaker(state) && target)
		target->forks = TARGET_FORKS_FOLLOWED;
	return 0;
}

/* Counts tasks that were created without a breaker, so that no loss goes unnoticed. */
SEC("tp_btf/task_newtask")
int BPF_PROG(after_clone, struct task_struct *task, unsigned long clone_flags)
{
	struct breaker_state *state;

	if (everywhere || shared.closed || !current_target())
		return 0;
	/* A process that is not in the table is never stopped. */
	if (!(clone_flags & CLONE_THREAD) && !add_target(BPF_CORE_READ(task, tgid)))
		__sync_fetch_and_add(&breakers.nr_unguarded, 1);
	if (!needs_breaker(clone_flags) || is_initial())
		return 0;
	state = state_of_task(0);
	if (!state || !state->answer || state->answer & BREAKER_REFUSED)
		__sync_fetch_and_add(&breakers.nr_unguarded, 1);
	return 0;
}

#endif
