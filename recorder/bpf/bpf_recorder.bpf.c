/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records allocations and releases. At each hit a program writes the perf sample, byte for byte as
 * in the recording, into the ring of its CPU. That costs a fifth of a uprobe event, whose arguments
 * the kernel fetches and writes to perf's ring.
 *
 * The programs are attached by uprobe_multi links to the named processes, as sessions where entry
 * and return share a cookie if the kernel has these, and by inherited perf events of uprobe events
 * to their children (fork_follow.h). Without links (@by_events), perf events of uprobe events
 * attach them to all.
 *
 * A process that takes a ring past the limit is stopped before it returns to user space
 * (backpressure.h). A sample that has no room even then is counted.
 */
#include "recorder/bpf/target_lifetime.bpf.h"
#include "recorder/bpf/dlopen_watch.bpf.h"
#include "recorder/bpf/filter.bpf.h"
#include "recorder/bpf/samples.bpf.h"
#include "recorder/bpf/syscalls.bpf.h"
#include "recorder/bpf/call_counts.bpf.h"

/* include/linux/pid_types.h */
enum pid_type { PIDTYPE_PID, PIDTYPE_TGID };

#define CLONE_THREAD   0x00010000 /* uapi/linux/sched.h */
#define ENTRY_RECORDED (~0ULL)	  /* the cookie of a session whose entry has a sample of its own */

struct bpf_site sites[BPF_MAX_SITES];

#include "recorder/bpf/calls.bpf.h"

/* There are no links: each process has perf events of its own. */
const volatile bool by_events = false;

/*
 * A return is recorded if its task has noted that the entry was. Otherwise, without sessions, each
 * return is.
 */
#define tracks_calls (has_filter || in_windows)

/* Linux 6.13 to 6.19; only linked_call() needs it, which other kernels do not load. */
extern __u64 *bpf_session_cookie(void) __attribute__((section(".ksyms"), weak));

/* Linux 6.13. Where the kernel does not have it, the verifier removes the call. */
const volatile bool can_signal_tasks = false;
extern int bpf_send_signal_task(struct task_struct *task, int sig, enum pid_type type, __u64 value)
	__attribute__((section(".ksyms"), weak));

/*
 * The register at @offset of struct pt_regs. The verifier does not permit direct access to a
 * context at a variable offset.
 */
ALWAYS_INLINE unsigned long long register_at(struct pt_regs *regs, unsigned int offset)
{
	unsigned long long value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (char *)regs + (offset & 0xff));
	return value;
}

ALWAYS_INLINE void read_args(struct pt_regs *regs, const struct bpf_site *site,
			     unsigned long long *args)
{
	args[0] = PT_REGS_PARM1(regs);
	args[1] = PT_REGS_PARM2(regs);
	args[2] = PT_REGS_PARM3(regs);
	if (site->first_arg) {
		args[0] = args[1];
		args[1] = args[2];
		args[2] = PT_REGS_PARM4(regs);
	}
	if (site->kind == BPF_SITE_STORE) {
		args[0] = register_at(regs, site->registers[0]);
		args[1] = register_at(regs, site->registers[1]);
	}
}

/*
 * Writes the entry's own sample. At a store the caller is not known. @hides_block: with a filter,
 * the sample of a realloc() whose old block was not recorded has NULL instead of it.
 */
static __attribute__((noinline)) int record_entry(struct pt_regs *regs, unsigned int index,
						  bool hides_block)
{
	const struct bpf_site *site = &sites[index & (BPF_MAX_SITES - 1)];
	const struct bpf_event *event = &site->events[BPF_EVENT_ENTRY];
	struct sample sample;
	unsigned int nr_args = site->nr_args;

	sample.fields[0] = function_at(regs, index);
	read_args(regs, site, sample.fields + 1);
	if (hides_block && site->kind == BPF_SITE_FUNCTION && site->block_arg == 0)
		sample.fields[1] = 0;
	sample.caller = 0;
	if (site->kind == BPF_SITE_STORE) {
		record_here(&sample, event, 3, regs);
		return 0;
	}
	sample.caller = caller_at(regs, site);
	switch (nr_args) {
	case 1:
		sample.fields[2] = sample.caller;
		break;
	case 2:
		sample.fields[3] = sample.caller;
		break;
	case 3:
		sample.fields[4] = sample.caller;
		break;
	}
	record_here(&sample, event, 2 + nr_args, regs);
	return 0;
}

/*
 * With a filter, notes the block that a call returned; @old is the block that the call took.
 * Returns false if there is no room for the note.
 */
ALWAYS_INLINE bool note_returned(const struct bpf_site *site, unsigned long long ret,
				 unsigned long long old)
{
	if (!has_filter || site->kind == BPF_SITE_INT_FUNCTION)
		return true;
	/* A realloc() that failed has left its old block allocated. */
	return ret ? note_block(ret) : !old || note_block(old);
}

/*
 * True if the process is recorded by perf events: it inherited them if it hits their uprobes.
 * Linked processes are recorded by their links, so they are skipped here.
 */
ALWAYS_INLINE bool is_followed(void)
{
	unsigned int tgid = bpf_get_current_pid_tgid() >> 32;
	struct target *target = find_target(tgid);

	if (!target)
		target = add_target(tgid);
	return recording && !(target && target->linked);
}

#include "recorder/bpf/exits.bpf.h"

/* Notes what a call with record_return()'s @cookie gives. On its own it saves stack there. */
static __attribute__((noinline)) bool note_return(struct pt_regs *regs, unsigned int index,
						  unsigned long long cookie)
{
	const struct bpf_site *site = &sites[index & (BPF_MAX_SITES - 1)];
	bool has_old = cookie != ENTRY_RECORDED && !site->events[BPF_EVENT_CALL].type;

	if (note_returned(site, PT_REGS_RC(regs), has_old ? cookie : 0))
		return true;
	count_lost();
	return false;
}

/*
 * Writes the sample at the return. @cookie is the session's: ENTRY_RECORDED, or the requested bytes
 * + 1 if the call has one sample, or the old block of a realloc().
 */
static __attribute__((noinline)) int record_return(struct pt_regs *regs, unsigned int index,
						   unsigned long long cookie)
{
	const struct bpf_site *site = &sites[index & (BPF_MAX_SITES - 1)];
	const struct bpf_event *event = &site->events[BPF_EVENT_CALL];
	bool is_one = event->type && cookie != ENTRY_RECORDED;
	unsigned long long ret = PT_REGS_RC(regs);
	struct sample sample;

	if (has_filter && !note_return(regs, index, cookie))
		return 0;
	sample.caller = 0;
	sample.fields[0] = by_events ? returning_function(regs) : bpf_get_func_ip(regs);
	sample.fields[1] = PT_REGS_IP(regs);
	if (is_one) {
		sample.fields[2] = cookie - 1;
		sample.fields[3] = ret;
		record_here(&sample, event, 4, regs);
		return 0;
	}
	/* The upper half of the register is undefined. */
	if (site->kind == BPF_SITE_INT_FUNCTION)
		ret = (unsigned long long)(long long)(int)ret;
	sample.fields[2] = ret;
	record_here(&sample, &site->events[BPF_EVENT_RETURN], 3, regs);
	return 0;
}

/*
 * The block that a call takes and gives back if it fails; 0: none. A realloc(@old, 0) returns NULL
 * but does release @old.
 */
ALWAYS_INLINE unsigned long long block_taken(const struct bpf_site *site,
					     const unsigned long long *args, unsigned long long old)
{
	return old && wanted_bytes(site, args) ? old : 0;
}

/*
 * Notes at an entry that is no session's whether the call is recorded, and the block that it takes
 * and gives back if it fails.
 */
ALWAYS_INLINE void push_call(struct pt_regs *regs, bool is_recorded, unsigned long long taken)
{
	struct task_state *state = state_of_task();

	if (!state) {
		/* At its return nothing would show that it was recorded. */
		if (is_recorded)
			count_lost();
		return;
	}
	state->open_calls = state->open_calls << 1 | is_recorded;
	if (taken) {
		state->taken = taken;
		state->taken_sp = PT_REGS_SP(regs);
	}
}

/*
 * Removes the note of the call that ends. Returns false if the call was not recorded, else true and
 * the cookie for record_return().
 */
ALWAYS_INLINE bool pop_call(struct pt_regs *regs, unsigned long long *ret_cookie)
{
	struct task_state *state = state_of_task();
	bool is_recorded = state && state->open_calls & 1;

	if (!state)
		return false;
	state->open_calls >>= 1;
	/* The return has popped the return address, or there was none on the stack. */
	if (state->taken && PT_REGS_SP(regs) - state->taken_sp <= 8) {
		*ret_cookie = state->taken;
		state->taken = 0;
	}
	return is_recorded;
}

/* The return of a call that has no session. */
ALWAYS_INLINE int at_return(struct pt_regs *regs, unsigned int index)
{
	unsigned long long cookie = ENTRY_RECORDED;

	if (!tracks_calls || pop_call(regs, &cookie))
		record_return(regs, index, cookie);
	return 0;
}

/*
 * With a filter, notes whether the call that begins is recorded. It stores its block through a
 * pointer, so its BPF_SITE_STORE needs to know.
 */
ALWAYS_INLINE void note_last_call(bool is_recorded)
{
	struct task_state *state = state_of_task();

	if (state)
		state->open_calls = is_recorded;
	else
		count_lost();
}

/*
 * Runs at the entry and the return of functions of linked processes. Returns 1 at the entry if the
 * return is of no interest.
 */
SEC("kprobe")
int linked_call(struct pt_regs *regs)
{
	unsigned int index = bpf_get_attach_cookie(regs) & (BPF_MAX_SITES - 1);
	const struct bpf_site *site = &sites[index];
	unsigned long long args[BPF_MAX_ARGS], *cookie = bpf_session_cookie(), old;
	bool matches;

	KEEP_TASK_STACK(regs, at_sessions);
	count_hit(false);
	if (!records_ends())
		return 1;
	/*
	 * The cookie is 0 at the entry only. Reading it costs less than asking for the kind of hit.
	 */
	if (*cookie)
		return record_return(regs, index, *cookie);
	if (!records_calls() || !is_wanted(site))
		return 1;
	read_args(regs, site, args);
	matches = entry_matches(site, args, everywhere || site->is_late, &old);
	if (has_filter && site->kind == BPF_SITE_INT_FUNCTION)
		note_last_call(matches);
	if (!matches)
		return 1;
	*cookie = site->events[BPF_EVENT_CALL].type && !site->may_be_inner
			  ? wanted_bytes(site, args) + 1
			  : ENTRY_RECORDED;
	/*
	 * Only absurd sizes, which no allocator grants, are told apart wrongly here. Their calls
	 * get two samples.
	 */
	if (*cookie && *cookie != ENTRY_RECORDED)
		return 0;
	*cookie = block_taken(site, args, old);
	if (!*cookie)
		*cookie = ENTRY_RECORDED;
	return record_entry(regs, index, has_filter && !old);
}

/* With a filter: true if the call that stores @block is recorded. Notes the block then. */
ALWAYS_INLINE bool store_matches(unsigned long long block)
{
	struct task_state *state = state_of_task();

	if (state && !(state->open_calls & 1))
		return false;
	if (state && note_block(block))
		return true;
	count_lost();
	return false;
}

/* A function's entry, or a store in it. @is_followed: the process is not a linked one. */
ALWAYS_INLINE int at_entry(struct pt_regs *regs, unsigned int index, bool is_followed)
{
	const struct bpf_site *site = &sites[index & (BPF_MAX_SITES - 1)];
	unsigned long long args[BPF_MAX_ARGS] = {0}, old = 0;
	bool matches = true;

	if (has_filter) {
		read_args(regs, site, args);
		if (site->kind == BPF_SITE_STORE)
			matches = store_matches(args[1]);
		else
			matches = entry_matches(site, args,
						is_followed || everywhere || site->is_late, &old);
	}
	/* With sessions, only followed processes get here with such a site. */
	if (tracks_calls && site->kind != BPF_SITE_STORE && site->kind != BPF_SITE_RELEASE &&
	    !site->has_exits)
		push_call(regs, matches, block_taken(site, args, old));
	if (site->has_exits && !note_call(regs, index, block_taken(site, args, old), matches))
		return 0;
	if (!matches)
		return 0;
	return record_entry(regs, index, has_filter && !old);
}

#include "recorder/bpf/points.bpf.h"

/* Without links: true if the process is not a named one. */
ALWAYS_INLINE bool is_child(void)
{
	struct target *target = by_events ? current_target() : 0;

	return target && !target->linked;
}

/*
 * Runs at each site of linked processes that has no program of its own. One program for all kinds
 * of sites is one to verify and one link for each file. Without links, it runs at each site of all
 * processes, and returns 0 so that the kernel writes no sample of its own.
 */
SEC("kprobe")
int linked_site(struct pt_regs *regs)
{
	unsigned long long cookie = bpf_get_attach_cookie(regs);
	unsigned int index = cookie & (BPF_MAX_SITES - 1);
	const struct bpf_site *site = &sites[index];

	KEEP_TASK_STACK(regs, at_links);
	count_hit(cookie & BPF_AT_EXIT);
	if (cookie & BPF_AT_EXIT)
		return records_ends() ? record_exits(regs) : 0;
	if (site->kind == BPF_SITE_POINT && !site->has_block) {
		if (!everywhere || is_in_scope())
			note_asked(regs, site);
		return 0;
	}
	if (!records_ends() || (site->kind != BPF_SITE_RESOURCE && !is_wanted(site)))
		return 0;
	if (cookie & BPF_AT_RETURN)
		return at_return(regs, index);
	if (!records_calls())
		return 0;
	if (site->kind == BPF_SITE_POINT)
		return record_point(regs, index);
	if (site->kind == BPF_SITE_RESOURCE)
		return record_resource_entry(regs, index);
	if (site->kind == BPF_SITE_MARK)
		return write_mark(regs, &site->events[BPF_EVENT_ENTRY], index);
	return at_entry(regs, index, has_filter && is_child());
}

/*
 * Runs at each site of followed processes. Like all programs on perf events it returns 0, so that
 * the kernel writes no sample of its own.
 */
SEC("kprobe")
int followed_site(struct pt_regs *regs)
{
	unsigned long long cookie = bpf_get_attach_cookie(regs);
	unsigned int index = cookie & (BPF_MAX_SITES - 1);
	const struct bpf_site *site = &sites[index];

	KEEP_TASK_STACK(regs, at_events);
	if (site->kind == BPF_SITE_POINT && !site->has_block)
		note_asked(regs, site);
	else if (!is_followed())
		return 0;
	else if (cookie & BPF_AT_EXIT)
		record_exits(regs);
	else if (site->kind == BPF_SITE_POINT)
		record_point(regs, index);
	else if (site->kind == BPF_SITE_RESOURCE)
		record_resource_entry(regs, index);
	else if (site->kind == BPF_SITE_MARK)
		write_mark(regs, &site->events[BPF_EVENT_ENTRY], index);
	else if (cookie & BPF_AT_RETURN)
		at_return(regs, index);
	else
		at_entry(regs, index, true);
	return 0;
}

/*
 * True if the child lacks events that its creator has by now, because these were opened during the
 * fork. Events of another tool that are not inherited look the same: the child is then stopped
 * needlessly.
 */
ALWAYS_INLINE bool was_overtaken(struct task_struct *child)
{
	struct task_struct *creator = (struct task_struct *)bpf_get_current_task();

	return BPF_CORE_READ(child, perf_event_ctxp, nr_events) <
	       BPF_CORE_READ(creator, perf_event_ctxp, nr_events);
}

/*
 * True if the current process and its children may be stopped while events are opened for them. A
 * child of a shell at a terminal is excluded: it is about to become a job.
 */
ALWAYS_INLINE bool may_hold_fork(struct target *target)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return may_hold_for_set_up() && target->role == TARGET_RECORDED && !is_exempt(task) &&
	       !(BPF_CORE_READ(task, signal, leader) && BPF_CORE_READ(task, signal, tty));
}

#include "recorder/bpf/carriers.bpf.h"

/* True if the breakpoints in @target are neither inherited nor those of all processes. */
ALWAYS_INLINE bool has_own_breakpoints(const struct target *target)
{
	return target->linked || (by_events && !everywhere);
}

/*
 * When a linked process forks for the first time, stops the child before it runs, until it has
 * events, and the parent has events for the next child to inherit (fork_follow.h). Stops the
 * parent, too, and first: if it ended, the kernel would send SIGHUP to the stopped orphan. Where no
 * child inherits events, without links or of a parent with many threads, this happens at each fork.
 */
ALWAYS_INLINE int note_fork(struct task_struct *task, unsigned long clone_flags)
{
	struct target *target = find_target(bpf_get_current_pid_tgid() >> 32), *child;

	if (by_events && !everywhere && target && clone_flags & CLONE_THREAD)
		want_carriers(target, task->pid);
	if (everywhere && !(clone_flags & CLONE_THREAD))
		leave_out_own_child(task);
	if (everywhere || !recording || shared.closed || !target || clone_flags & CLONE_THREAD)
		return 0;
	/* Add the child before its first system call, whether or not its parent lives on. */
	child = add_target(task->tgid);
	/* Without an entry it may not be recorded. */
	if (!child)
		shared.no_room = 1;
	else if (child->fork_noted)
		return 0;
	else
		child->fork_noted = 1;
	__sync_fetch_and_add(&target->nr_forks, 1);
	/* In windows, the child is recorded from the next one on. */
	if (!child || in_windows || !has_own_breakpoints(target))
		return 0;
	if (!by_events && target->forks == TARGET_FORKS_FOLLOWED && !was_overtaken(task))
		return 0;
	child->forks = TARGET_FORKS_WANTED;
	/* While the recorder opens the parent's events, the parent waits for these anyway. */
	if (by_events || target->forks == TARGET_FORKS_UNSEEN)
		target->forks = TARGET_FORKS_WANTED;
	if (may_hold_fork(target) && !is_exempt(task) && hold_for_set_up(target)) {
		/* For child_is_made() or child_begins(). */
		child->set_up = 1;
	} else {
		shared.missed = 1;
		shared.any_stopped = 1;
	}
	wake_recorder();
	return 0;
}

PROGRAM_WITH_BACKUPS("tp_btf/task_newtask", after_fork,
		     (struct task_struct * task, unsigned long clone_flags), note_fork,
		     (task, clone_flags))

/*
 * Stops a child that waits for events, before it is woken: kernel_clone(), kernel/fork.c (Linux
 * 6.18). At the tracepoint of after_fork(), the signal for its parent could prevent a second one:
 * see hold().
 */
ALWAYS_INLINE int hold_child(struct task_struct *task)
{
	struct target *target = recording && task->pid == task->tgid ? find_target(task->tgid) : 0;

	if (!must_be_held(target) || target->stopped)
		return 0;
	target->stopped_ns = bpf_ktime_get_ns();
	if (bpf_send_signal_task(task, SIGSTOP, PIDTYPE_TGID, 0)) {
		target->set_up = 0;
		shared.missed = 1;
		return 0;
	}
	/* After the signal: a target that gets continued must have been stopped. */
	target->stopped = 1;
	shared.any_stopped = 1;
	wake_recorder();
	return 0;
}

PROGRAM_WITH_BACKUPS("tp_btf/sched_process_fork", child_is_made,
		     (struct task_struct * parent, struct task_struct *task), hold_child, (task))

/*
 * Stops a child that waits for events and cannot be sent a signal. A new task calls this
 * function just before it returns to user space for the first time: schedule_tail(),
 * kernel/sched/core.c (Linux 5.15 to 7.3).
 */
ALWAYS_INLINE int hold_before_it_runs(void)
{
	struct target *target = recording ? current_target() : 0;

	if (must_be_held(target) && !hold(target))
		shared.missed = 1;
	return 0;
}

/* The function has no parameter; the macro wants one. */
PROGRAM_WITH_BACKUPS("fentry/calculate_sigpending", child_begins, (void *none), hold_before_it_runs,
		     ())

/*
 * A link identifies its process by the first thread. When another thread execs, it takes the place
 * of the first one, and the kernel does not put the link's breakpoints into the new memory. Events
 * such as those for children put them there. The link then records as before.
 */
ALWAYS_INLINE int note_exec(struct task_struct *task, int old_tid)
{
	struct target *target = find_target(task->tgid);
	unsigned long long exec_id = BPF_CORE_READ(task, self_exec_id);

	if (target && target->exec_id == exec_id)
		return 0;
	if (target) {
		target->exec_id = exec_id;
		__sync_fetch_and_add(&shared.nr_gone, 1);
	}
	forget_code(task->tgid);
	forget_state_before_exec(task->tgid, old_tid);
	/* The next window links it (bpf_window_has_new()). */
	if (in_windows && target && old_tid != task->tgid)
		target->linked = 0;
	if (!target || in_windows || !has_own_breakpoints(target))
		return 0;
	keep_carrier(target, old_tid == task->tgid ? task->tgid : 0);
	if (old_tid == task->tgid)
		return 0;
	target->forks = TARGET_FORKS_WANTED;
	/* Events that are wanted by now are opened before the recording begins. */
	if (recording && !(may_hold_fork(target) && hold_for_set_up(target)))
		shared.missed = 1;
	shared.any_stopped = 1;
	wake_recorder();
	return 0;
}

PROGRAM_WITH_BACKUPS("tp_btf/sched_process_exec", after_exec,
		     (struct task_struct * task, int old_tid), note_exec, (task, old_tid))

#include "recorder/bpf/first_thread.bpf.h"

char LICENSE[] SEC("license") = "GPL";
