/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target table, as user space uses it: which processes are recorded, and stopping and
 * continuing them. Only this module writes the table's fields in user space; others read them.
 *
 * The recorder and the watchdog may both continue targets at the same time, and programs may stop
 * one meanwhile. Each step below is safe against that.
 */
#ifndef LEAKTOOLS_RECORDER_TARGET_TABLE_H
#define LEAKTOOLS_RECORDER_TARGET_TABLE_H

#include "recorder/target_table/target_search.h"

#include <stdint.h>
#include <sys/types.h>

/* Returns the process's entry after @after (NULL: the first one), or NULL. */
struct target *target_table_next(struct target_table *table, const struct target *after);

/* Adds a process. @linked: it is recorded through links. Returns false if there is no room. */
bool target_table_add_process(struct target_table *table, pid_t pid, bool linked);

/*
 * In windows: the open one has its links. The exec of another thread, or another process in the
 * entry, undoes it.
 */
void target_set_linked(struct target *target, bool linked);

void target_set_role(struct target *target, enum target_role role);

/* Only needed in a blind table, see below. In clock ticks since boot. */
void target_set_start_time(struct target *target, uint64_t ticks);

/* --- Whether targets may be stopped --- */

/* Targets are stopped when a ring holds more than @limit_bytes; 0: never. */
void target_table_set_limit(struct target_table *table, uint64_t limit_bytes);

/* From now on, targets that fill the rings, of @ring_bytes each, are stopped before others. */
void target_table_prefer_fillers(struct target_table *table, uint64_t ring_bytes);

/* Decides who fills the rings. The watchdog calls it several times in a window. */
void target_table_find_fillers(struct target_table *table, uint64_t now_ns);

/*
 * No BPF program watches the targets: debuggers, and whether an id has become another process's,
 * have to be looked up in /proc.
 */
void target_table_set_blind(struct target_table *table);

/*
 * The recorder's own session and process group. Processes of @session are never stopped (0: none
 * are spared). @group cannot be orphaned while something is stopped, because the recorder is in it.
 */
void target_table_set_own_groups(struct target_table *table, pid_t session, pid_t group);

/* Nothing is stopped from now on. */
void target_table_close(struct target_table *table);

/* The same, but targets go on being recorded: it may not be permitted to continue them. */
void target_table_forbid_stops(struct target_table *table);

/* The same until it is called with false. Safe in signal handlers. */
void target_table_pause(struct target_table *table, bool is_paused);

/* The watchdog's sign of life. */
void target_table_note_watchdog(struct target_table *table, uint64_t now_ns);

/* --- Stops --- */

/* Stops a target, as programs do where there are any. Nothing is sent to a later process of its id.
 */
void target_table_stop(struct target_table *table, struct target *target);

/* True if a target is marked as stopped, and it may be possible to continue it. */
bool target_table_has_stopped(struct target_table *table);

/*
 * Continues the stopped targets that do not wait for set-up work. Returns how long the longest stop
 * was, in ns, of those because of a full ring.
 */
uint64_t target_table_continue_ready(struct target_table *table);

/* The same for all stopped targets. Safe in signal handlers. */
uint64_t target_table_continue_all(struct target_table *table);

/*
 * True if there may be targets that were not continued because another process has stopped them,
 * too: call target_table_next_kept() until it returns 0.
 */
bool target_table_consume_kept(struct target_table *table);
/*
 * Returns the process id of such a target, each time another one's; 0: none is left. A target is
 * returned once for all time, or with @forgets once for each time that it was not continued.
 */
pid_t target_table_next_kept(struct target_table *table, bool forgets);

/*
 * The process id of a target that stays stopped because SIGCONT is not permitted, each time another
 * one's; 0: none is left. Nothing is stopped any more when there is one.
 */
pid_t target_table_next_stuck(struct target_table *table);

/* Continues the targets whose stop would last too long if it went on until @until_ns. */
void target_table_continue_overdue(struct target_table *table, uint64_t until_ns);

/* The rings are drained and set-up work is done: targets may be stopped again after that. */
void target_table_end_overdue(struct target_table *table);

/* --- Set-up work --- */

/* Begins to open the events of @target. Returns false if it does not wait for any. */
bool target_begin_opening(struct target *target);

/*
 * The events are open, and if @is_followed the process need not wait at later forks. When it waits
 * for nothing else, target_table_continue_ready() continues it. Nothing happens if it has come to
 * wait for more events meanwhile, or if the entry has become another process's.
 */
void target_table_end_opening(struct target_table *table, struct target *target, bool is_followed);

/* A signal came before the events were open: @target still waits for them. */
void target_table_put_off_opening(struct target_table *table, struct target *target);

/*
 * Notes that the thread @tid gets the events of @target. Before they are opened: it may end
 * meanwhile. Returns false if it has them already, or if there is no room.
 */
bool target_add_carrier(struct target *target, pid_t tid);

/* All its events are open. Returns false if the programs have seen it end. */
bool target_confirm_carrier(struct target *target, pid_t tid);
void target_remove_carrier(struct target *target, pid_t tid);

/* The thread id of the @nth carrier, confirmed or not; 0: none. */
pid_t target_carrier(const struct target *target, size_t nth);

/* True if it has a confirmed one. */
bool target_has_carrier(const struct target *target);

/* True if a target may have mapped a file that awaits inspection. */
bool target_table_has_mapped(const struct target_table *table);

/* The same, and forgets it: the caller inspects the files, or postpones that. */
bool target_table_consume_mapped(struct target_table *table);
void target_table_postpone_inspection(struct target_table *table);

/* Events that should have been recorded may be missing, and no count shows it. */
void target_table_note_missed(struct target_table *table);

/*
 * Call these around the inspection of the file that @target has mapped. If it maps another file
 * meanwhile, the mark is set again. @is_done: false if the inspection has to be repeated.
 */
void target_table_begin_inspection(struct target *target);
void target_table_end_inspection(struct target_table *table, struct target *target, bool is_done);

#endif
