/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of a task between two probes.
 *
 * bpf_task_storage_get() fails for a task that has preempted another one inside of that function on
 * the same CPU: bpf_task_storage_trylock(), kernel/bpf/bpf_task_storage.c (Linux 5.15 to 6.18).
 * From then on, such a task has its state in a table, which is slower.
 */
#ifndef LEAKTOOLS_RECORDER_TASK_STATE_BPF_H
#define LEAKTOOLS_RECORDER_TASK_STATE_BPF_H

#include "recorder/bpf/backup_programs.bpf.h"
#include "recorder/bpf/registers.bpf.h"
#include "recorder/bpf/windows.bpf.h"

#define MAX_SPARE_STATES 16384

struct task_state {
	/* At a point in an allocation function (points.bpf.h): the call's frame, that is
	 * where its return address is, or 0, and what it asks for. */
	unsigned long long frame, bytes;
	/* With @tracks_calls: the calls that the task is in, a bit each, the innermost lowest:
	 * recorded? With sessions, only that of the last call that stores its block. */
	unsigned long long open_calls;
	/* The block that a call takes and gives back if it fails, or 0, and the stack pointer at
	 * the call's entry. Not with sessions. */
	unsigned long long taken, taken_sp;
	unsigned int window; /* in which all this was noted */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} task_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_SPARE_STATES);
	__type(key, unsigned long long); /* bpf_get_current_pid_tgid() */
	__type(value, struct task_state);
} spare_states SEC(".maps");

unsigned int has_spare_states;

static __attribute__((noinline)) struct task_state *spare_state(bool create)
{
	unsigned long long id = bpf_get_current_pid_tgid();
	struct task_state none = {};

	if (create) {
		bpf_map_update_elem(&spare_states, &id, &none, BPF_NOEXIST);
		has_spare_states = 1;
	}
	return bpf_map_lookup_elem(&spare_states, &id);
}

/*
 * A task that ends hits no probe any more. Its place goes to others, and one that gets its id must
 * not find its state.
 */
ALWAYS_INLINE int forget_own_state(void)
{
	unsigned long long id = bpf_get_current_pid_tgid();

	if (has_spare_states)
		bpf_map_delete_elem(&spare_states, &id);
	return 0;
}

PROGRAM_WITH_BACKUPS("tp_btf/sched_process_exit", forget_state, (struct task_struct * task),
		     forget_own_state, ())

/* A thread that execs gets the id of the first one. */
ALWAYS_INLINE void forget_state_before_exec(unsigned int tgid, unsigned int old_tid)
{
	unsigned long long id = (unsigned long long)tgid << 32 | old_tid;

	if (has_spare_states)
		bpf_map_delete_elem(&spare_states, &id);
}

/* The state of the current task, or NULL if there is no memory for it. */
ALWAYS_INLINE struct task_state *state_of_task(void)
{
	struct task_state *state = has_spare_states ? spare_state(false) : 0;

	if (!state)
		state = bpf_task_storage_get(&task_states, bpf_get_current_task_btf(), 0,
					     BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state)
		state = spare_state(true);
	if (in_windows && state && state->window != window.nr)
		*state = (struct task_state){.window = window.nr};
	return state;
}

#endif
