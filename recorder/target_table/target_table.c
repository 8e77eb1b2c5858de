/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/target_table/target_table.h"

#include "common/clock.h"
#include "common/scope.h"
#include "common/proc/process_stat.h"
#include "common/proc/process_status.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>

struct target *target_table_next(struct target_table *table, const struct target *after)
{
	size_t i = after ? (size_t)(after - table->targets) + 1 : 0;

	while (i < TARGET_TABLE_SIZE) {
		if (!table->groups[i / TARGET_GROUP_SIZE])
			i = (i / TARGET_GROUP_SIZE + 1) * TARGET_GROUP_SIZE;
		else if (target_is_process(table->targets[i].tgid))
			return &table->targets[i];
		else
			i++;
	}
	return NULL;
}

bool target_table_add_process(struct target_table *table, pid_t pid, bool linked)
{
	struct target *target = target_table_add(table, (unsigned int)pid);
	struct process_stat status;

	if (!target)
		return false;
	if (table->blind && process_stat_read(pid, &status) == 0)
		target_set_start_time(target, status.start_time_ticks);
	if (linked)
		target->linked = 1;
	return true;
}

void target_set_linked(struct target *target, bool linked)
{
	__atomic_store_n(&target->linked, linked, __ATOMIC_SEQ_CST);
}

void target_set_role(struct target *target, enum target_role role)
{
	target->role = role;
}

void target_set_start_time(struct target *target, uint64_t ticks)
{
	target->start_time_ticks = ticks;
}

void target_table_set_limit(struct target_table *table, uint64_t limit_bytes)
{
	table->limit_bytes = limit_bytes;
}

void target_table_prefer_fillers(struct target_table *table, uint64_t ring_bytes)
{
	table->step_shift = (unsigned int)__builtin_ctzll(ring_bytes / TARGET_STEPS_IN_RING);
	table->filler_steps = TARGET_MIN_FILLER_STEPS;
	table->limit_others_bytes = table->limit_bytes + (ring_bytes - table->limit_bytes) / 2;
	table->window_ns = clock_now_ns();
}

void target_table_set_blind(struct target_table *table)
{
	table->blind = 1;
}

void target_table_set_own_groups(struct target_table *table, pid_t session, pid_t group)
{
	table->own_session = (unsigned int)session;
	table->own_group = (unsigned int)group;
}

void target_table_close(struct target_table *table)
{
	table->closed = 1;
}

void target_table_forbid_stops(struct target_table *table)
{
	table->forbidden = 1;
}

void target_table_pause(struct target_table *table, bool is_paused)
{
	__atomic_store_n(&table->paused, is_paused, __ATOMIC_SEQ_CST);
}

void target_table_note_watchdog(struct target_table *table, uint64_t now_ns)
{
	__atomic_store_n(&table->watchdog_ns, now_ns, __ATOMIC_SEQ_CST);
}

/* --- Stops --- */

/*
 * True if the process @tgid is still that of @target; @unknown if that cannot be read. Programs
 * remove an entry before the id can be used again. Without them, only the start time tells.
 */
static bool is_same_process(const struct target_table *table, const struct target *target,
			    unsigned long long tgid, bool unknown)
{
	struct process_stat status;
	int err;

	if (target->tgid != tgid)
		return false;
	if (!table->blind)
		return true;
	err = process_stat_read((pid_t)tgid, &status);
	if (err && err != -ESRCH)
		return unknown;
	return !err && status.start_time_ticks == target->start_time_ticks;
}

/*
 * Sends @number to the process @tgid of @target, but to no later process of that id: the descriptor
 * is opened before the look, and never becomes another process's. There may be no descriptor left
 * for either. A process must not stay stopped for that. Returns 0, also if the process is gone, or
 * a negative errno.
 */
static int send_signal(const struct target_table *table, const struct target *target,
		       unsigned long long tgid, int number)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, (pid_t)tgid, 0);
	bool is_gone = fd < 0 && errno == ESRCH;
	long failed;

	if (is_gone || !is_same_process(table, target, tgid, number == SIGCONT))
		return 0;
	failed = fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, number, NULL, 0)
			 : kill((pid_t)tgid, number);
	return failed && errno != ESRCH ? -errno : 0;
}

void target_table_stop(struct target_table *table, struct target *target)
{
	target->stopped_ns = clock_now_ns();
	target->stopped = TARGET_STOPPED;
	table->any_stopped = 1;
	if (send_signal(table, target, target->tgid, SIGSTOP))
		target->stopped = TARGET_RUNS;
}

bool target_table_has_stopped(struct target_table *table)
{
	for (struct target *target = NULL; (target = target_table_next(table, target));)
		if (target->stopped == TARGET_STOPPED)
			return true;
	return false;
}

/*
 * True if a debugger has attached to @target. The debugger then continues it: our SIGCONT would
 * undo the debugger's stop. Programs do not mark targets whose tracer has seized them (strace):
 * such a tracer waits for SIGCONT (ptrace(2)).
 */
static bool is_debugged(const struct target_table *table, struct target *target)
{
	pid_t pid = (pid_t)target->tgid;

	if (!table->blind && !target->debugged)
		return false;
	if (process_status_tracer(pid) > 0)
		return true;
	/* A debugger may have attached before the mark was cleared. So look again. */
	__atomic_store_n(&target->debugged, 0, __ATOMIC_SEQ_CST);
	if (process_status_tracer(pid) <= 0)
		return false;
	target->debugged = 1;
	return true;
}

/*
 * Which of the stops that a process may handle wait for @target to be continued, as a mask. The
 * kernel discards them when it is (prepare_signal(), kernel/signal.c, Linux 6.18). One that comes
 * during the look is seen by a second one.
 */
static uint64_t waiting_stops(const struct target_table *table, struct target *target, pid_t pid)
{
	bool looks = __atomic_exchange_n(&target->tty_stops, 0, __ATOMIC_SEQ_CST) || table->blind;
	struct process_status status = {0};

	for (int i = 0; i < 2 && looks; i++) {
		if (process_status_read(pid, &status))
			return 0;
		looks = __atomic_exchange_n(&target->tty_stops, 0, __ATOMIC_SEQ_CST);
	}
	return status.pending_signals;
}

/* Returns 0 or a negative errno. */
static int send_continue(const struct target_table *table, struct target *target,
			 unsigned long long tgid)
{
	static const int stops[] = {SIGTSTP, SIGTTIN, SIGTTOU};
	uint64_t waiting = waiting_stops(table, target, (pid_t)tgid);
	int err = send_signal(table, target, tgid, SIGCONT);

	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(stops); i++)
		if (waiting & 1ULL << (stops[i] - 1))
			send_signal(table, target, tgid, stops[i]);
	return 0;
}

/*
 * SIGCONT is not permitted: programs stop processes without asking for rights. @stopped is the mark
 * that it had.
 */
static void keep_mark(struct target_table *table, struct target *target, unsigned long long tgid,
		      unsigned long long stopped)
{
	target_table_forbid_stops(table);
	if (target->tgid != tgid)
		return;
	target->stopped = stopped == TARGET_STUCK_TOLD ? TARGET_STUCK_TOLD : TARGET_STUCK;
	table->any_stopped = 1;
}

/* Continues @target if it is marked as stopped. */
static void continue_target(struct target_table *table, struct target *target)
{
	unsigned long long tgid = target->tgid, stopped = target->stopped, now_ns = clock_now_ns();

	if ((!stopped && !target->continuing) || !target_is_process(tgid))
		return;
	/*
	 * The mark is cleared first: a stop after this marks the target again. A recorder that is
	 * killed before it sends the signal leaves that to its watchdog.
	 */
	__atomic_store_n(&target->continuing, 1, __ATOMIC_SEQ_CST);
	if (stopped == TARGET_STOPPED && !target->set_up && now_ns > target->stopped_ns)
		target->paused_ns += now_ns - target->stopped_ns;
	target->set_up = 0;
	__atomic_store_n(&target->stopped, TARGET_RUNS, __ATOMIC_SEQ_CST);
	if (!target->job_stopped) {
		if (send_continue(table, target, tgid))
			keep_mark(table, target, tgid, stopped);
	} else if (target->kept == TARGET_NOT_KEPT) {
		target->kept = TARGET_KEPT;
		__atomic_store_n(&table->any_kept, 1, __ATOMIC_SEQ_CST);
	}
	__atomic_store_n(&target->continuing, 0, __ATOMIC_SEQ_CST);
}

/*
 * Continues the stopped targets that are linked, or those that are not. *@first_ns: when the first
 * of them was stopped, or 0.
 */
static void continue_some(struct target_table *table, bool all, unsigned int linked,
			  uint64_t *first_ns)
{
	for (struct target *target = NULL; (target = target_table_next(table, target));) {
		uint64_t since_ns = 0;

		if (target->linked != linked)
			continue;
		if (target->stopped == TARGET_STOPPED && !target->set_up)
			since_ns = target->stopped_ns;
		if ((!all && target_waits(target)) ||
		    (target->stopped && is_debugged(table, target))) {
			table->any_stopped = 1;
			continue;
		}
		continue_target(table, target);
		if (since_ns && (!*first_ns || since_ns < *first_ns))
			*first_ns = since_ns;
	}
}

static uint64_t continue_targets(struct target_table *table, bool all)
{
	uint64_t first_ns = 0, now_ns = clock_now_ns();

	if (!__atomic_exchange_n(&table->any_stopped, 0, __ATOMIC_SEQ_CST))
		return 0;
	/*
	 * Continue children first: when a parent exits, the kernel sends SIGHUP to its stopped
	 * orphans.
	 */
	continue_some(table, all, 0, &first_ns);
	continue_some(table, all, 1, &first_ns);
	return first_ns && first_ns < now_ns ? now_ns - first_ns : 0;
}

uint64_t target_table_continue_ready(struct target_table *table)
{
	return continue_targets(table, false);
}

uint64_t target_table_continue_all(struct target_table *table)
{
	table->any_stopped = 1;
	return continue_targets(table, true);
}

bool target_table_consume_kept(struct target_table *table)
{
	return table->any_kept && __atomic_exchange_n(&table->any_kept, 0, __ATOMIC_SEQ_CST);
}

pid_t target_table_next_kept(struct target_table *table, bool forgets)
{
	for (struct target *target = NULL; (target = target_table_next(table, target));) {
		if (target->kept != TARGET_KEPT)
			continue;
		target->kept = forgets ? TARGET_NOT_KEPT : TARGET_KEPT_TOLD;
		return (pid_t)target->tgid;
	}
	return 0;
}

pid_t target_table_next_stuck(struct target_table *table)
{
	/* Nothing else would end the walk early. */
	if (!table->forbidden || !table->any_stopped)
		return 0;
	for (struct target *target = NULL; (target = target_table_next(table, target));) {
		if (target->stopped != TARGET_STUCK)
			continue;
		target->stopped = TARGET_STUCK_TOLD;
		return (pid_t)target->tgid;
	}
	return 0;
}

/* How long a stop of @target may last. */
static uint64_t stop_limit_ns(const struct target_table *table, const struct target *target)
{
	if (target->set_up)
		return TARGET_MAX_SET_UP_NS;
	if (target_is_filler(table, target))
		return TARGET_MAX_STOP_NS;
	return target->paused_ns < TARGET_MAX_OTHER_STOP_NS
		       ? TARGET_MAX_OTHER_STOP_NS - target->paused_ns
		       : 0;
}

void target_table_continue_overdue(struct target_table *table, uint64_t until_ns)
{
	for (struct target *target = NULL; (target = target_table_next(table, target));) {
		bool set_up = target->set_up;
		uint64_t limit_ns = stop_limit_ns(table, target);

		if (target->stopped != TARGET_STOPPED || until_ns < target->stopped_ns + limit_ns ||
		    is_debugged(table, target))
			continue;
		/* Set this before it continues: it may be stopped again at once. */
		if (set_up || limit_ns == TARGET_MAX_STOP_NS)
			__atomic_store_n(set_up ? &table->set_up_overdue : &table->overdue, 1,
					 __ATOMIC_SEQ_CST);
		if (set_up) {
			table->missed = 1;
			table->nr_set_up_late++;
		}
		continue_target(table, target);
	}
}

void target_table_end_overdue(struct target_table *table)
{
	/* Write only if needed: programs on all CPUs read this cache line. */
	if (table->set_up_overdue)
		__atomic_store_n(&table->set_up_overdue, 0, __ATOMIC_SEQ_CST);
	if (table->overdue)
		__atomic_store_n(&table->overdue, 0, __ATOMIC_SEQ_CST);
}

/* --- Fillers --- */

/* Returns true if @target has been stopped for much of each of the last windows. */
static bool begin_window(const struct target_table *table, struct target *target)
{
	bool is_strained = target->paused_ns >= (target_is_filler(table, target)
							 ? TARGET_STRAINED_STOP_NS
							 : TARGET_MAX_OTHER_STOP_NS / 2);

	target->strained_windows = is_strained ? target->strained_windows + 1 : 0;
	target->paused_ns = 0;
	target->steps_begin = target->steps_mid;
	target->steps_mid = target->steps;
	return target->strained_windows >= TARGET_STRAINED_WINDOWS;
}

void target_table_find_fillers(struct target_table *table, uint64_t now_ns)
{
	bool is_over = now_ns >= table->window_ns + TARGET_WINDOW_NS, is_strained = false;
	uint64_t nr = 0, sum = 0, most = 0, steps;
	unsigned int most_tgid = 0;

	if (!table->limit_others_bytes)
		return;
	for (struct target *target = NULL; (target = target_table_next(table, target));) {
		if (is_over && begin_window(table, target))
			is_strained = true;
		steps = target->steps - target->steps_begin;
		sum += steps;
		nr += steps > 0;
		if (steps > most) {
			most = steps;
			most_tgid = (unsigned int)target->tgid;
		}
	}
	if (is_over)
		table->window_ns = now_ns;
	if (is_strained)
		table->strained_tgid = most_tgid;
	/* A filler has filled at least half of what a process has on average. */
	steps = nr ? sum / nr / 2 : 0;
	table->filler_steps = steps > TARGET_MIN_FILLER_STEPS ? steps : TARGET_MIN_FILLER_STEPS;
}

/* --- Set-up work --- */

/* Programs change the same words. */
static bool exchange(unsigned int *word, unsigned int from, unsigned int to)
{
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

bool target_begin_opening(struct target *target)
{
	return exchange(&target->forks, TARGET_FORKS_WANTED, TARGET_FORKS_OPENING);
}

void target_table_end_opening(struct target_table *table, struct target *target, bool is_followed)
{
	exchange(&target->forks, TARGET_FORKS_OPENING,
		 is_followed ? TARGET_FORKS_FOLLOWED : TARGET_FORKS_UNSEEN);
	__atomic_store_n(&table->any_stopped, 1, __ATOMIC_SEQ_CST);
}

void target_table_put_off_opening(struct target_table *table, struct target *target)
{
	exchange(&target->forks, TARGET_FORKS_OPENING, TARGET_FORKS_WANTED);
	__atomic_store_n(&table->any_stopped, 1, __ATOMIC_SEQ_CST);
}

pid_t target_carrier(const struct target *target, size_t nth)
{
	return (pid_t)(target->carriers[nth] & ~TARGET_CARRIER_OPENING);
}

bool target_add_carrier(struct target *target, pid_t tid)
{
	for (size_t i = 0; i < TARGET_MAX_CARRIERS; i++)
		if (target_carrier(target, i) == tid)
			return false;
	for (size_t i = 0; i < TARGET_MAX_CARRIERS; i++)
		if (exchange(&target->carriers[i], 0, (unsigned int)tid | TARGET_CARRIER_OPENING))
			return true;
	return false;
}

bool target_confirm_carrier(struct target *target, pid_t tid)
{
	unsigned int opening = (unsigned int)tid | TARGET_CARRIER_OPENING;

	for (size_t i = 0; i < TARGET_MAX_CARRIERS; i++)
		if (exchange(&target->carriers[i], opening, (unsigned int)tid))
			return true;
	return false;
}

void target_remove_carrier(struct target *target, pid_t tid)
{
	for (size_t i = 0; i < TARGET_MAX_CARRIERS; i++) {
		exchange(&target->carriers[i], (unsigned int)tid, 0);
		exchange(&target->carriers[i], (unsigned int)tid | TARGET_CARRIER_OPENING, 0);
	}
}

bool target_has_carrier(const struct target *target)
{
	for (size_t i = 0; i < TARGET_MAX_CARRIERS; i++)
		if (target->carriers[i] && !(target->carriers[i] & TARGET_CARRIER_OPENING))
			return true;
	return false;
}

bool target_table_has_mapped(const struct target_table *table)
{
	return table->any_mapped;
}

bool target_table_consume_mapped(struct target_table *table)
{
	return __atomic_exchange_n(&table->any_mapped, 0, __ATOMIC_SEQ_CST);
}

void target_table_postpone_inspection(struct target_table *table)
{
	table->any_mapped = 1;
}

void target_table_note_missed(struct target_table *table)
{
	if (!table->missed)
		table->missed = 1;
}

void target_table_begin_inspection(struct target *target)
{
	target->looked_at = 1;
	__atomic_store_n(&target->has_mapped, 0, __ATOMIC_SEQ_CST);
}

void target_table_end_inspection(struct target_table *table, struct target *target, bool is_done)
{
	if (!is_done) {
		target->has_mapped = 1;
		target->looked_at = 0;
		table->any_mapped = 1;
		return;
	}
	target->looked_at = 0;
	/* It is continued at the end of the round. */
	table->any_stopped = 1;
}
