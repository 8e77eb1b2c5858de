/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/target_table/target_table.h"

#include "common/clock.h"
#include "common/proc/process_status.h"

#include <signal.h>
#include <stddef.h>

struct target *target_table_next(struct target_table *table, const struct target *after)
{
	size_t i = after ? (size_t)(after - table->targets) + 1 : 0;

	for (; i < TARGET_TABLE_SIZE; i++)
		if (target_is_process(table->targets[i].tgid))
			return &table->targets[i];
	return NULL;
}

void target_table_add_process(struct target_table *table, pid_t pid, bool linked)
{
	struct target *target = target_table_add(table, (unsigned int)pid);

	if (!target)
		target_table_note_missed(table);
	else if (linked)
		target->linked = 1;
}

void target_set_role(struct target *target, enum target_role role)
{
	target->role = role;
}

void target_table_set_limit(struct target_table *table, uint64_t limit_bytes)
{
	table->limit_bytes = limit_bytes;
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

void target_table_pause(struct target_table *table, bool is_paused)
{
	__atomic_store_n(&table->paused, is_paused, __ATOMIC_SEQ_CST);
}

void target_table_note_watchdog(struct target_table *table, uint64_t now_ns)
{
	__atomic_store_n(&table->watchdog_ns, now_ns, __ATOMIC_SEQ_CST);
}

/* --- Stops --- */

void target_table_stop(struct target_table *table, struct target *target)
{
	target->stopped_ns = clock_now_ns();
	target->stopped = 1;
	table->any_stopped = 1;
	kill((pid_t)target->tgid, SIGSTOP);
}

bool target_table_has_stopped(struct target_table *table)
{
	for (struct target *target = NULL; (target = target_table_next(table, target));)
		if (target->stopped)
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

/* Continues @target if it is marked as stopped. */
static void continue_target(struct target *target)
{
	unsigned long long tgid = target->tgid;

	if ((!target->stopped && !target->continuing) || !target_is_process(tgid))
		return;
	/*
	 * The mark is cleared first: a stop after this marks the target again. A recorder that is
	 * killed before it sends the signal leaves that to its watchdog.
	 */
	__atomic_store_n(&target->continuing, 1, __ATOMIC_SEQ_CST);
	target->set_up = 0;
	__atomic_store_n(&target->stopped, 0, __ATOMIC_SEQ_CST);
	if (!target->job_stopped)
		kill((pid_t)tgid, SIGCONT);
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
		if (target->stopped && !target->set_up)
			since_ns = target->stopped_ns;
		if ((!all && target_waits(target)) ||
		    (target->stopped && is_debugged(table, target))) {
			table->any_stopped = 1;
			continue;
		}
		continue_target(target);
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

void target_table_continue_overdue(struct target_table *table, uint64_t until_ns)
{
	for (struct target *target = NULL; (target = target_table_next(table, target));) {
		bool set_up = target->set_up;
		uint64_t limit_ns = set_up ? TARGET_MAX_SET_UP_NS : TARGET_MAX_STOP_NS;

		if (!target->stopped || until_ns < target->stopped_ns + limit_ns ||
		    is_debugged(table, target))
			continue;
		/* Set this before it continues: it may be stopped again at once. */
		__atomic_store_n(set_up ? &table->set_up_overdue : &table->overdue, 1,
				 __ATOMIC_SEQ_CST);
		if (set_up) {
			table->missed = 1;
			table->nr_set_up_late++;
		}
		continue_target(target);
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

/* --- Set-up work --- */

void target_table_let_fork(struct target_table *table, struct target *target, pid_t pid)
{
	if (target->tgid == (unsigned long long)pid)
		target->forks = TARGET_FORKS_FOLLOWED;
	__atomic_store_n(&table->any_stopped, 1, __ATOMIC_SEQ_CST);
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
