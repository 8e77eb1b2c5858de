/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Backpressure stops the recorded processes for a moment rather than lose events: when a ring holds
 * more than a limit, the processes are stopped, the rings are drained, and the processes continue.
 *
 * Where BPF is permitted, the kernel stops a process itself, at the hit that takes a ring past the
 * limit. The programs that record see how full their rings are (bpf_recorder.bpf.c). For rings of
 * perf events, backpressure has programs of its own (backpressure.bpf.c). They count each record
 * with its largest possible size, and the recorder tells them after each round what it has
 * consumed, so they overestimate. Without BPF, the recorder stops the processes when a round brings
 * more than the limit, which can be too late.
 *
 * If all processes are recorded, those that fill the rings are stopped, and others hardly ever
 * (target_table_shared.h). A warning says so if that goes on for long.
 *
 * Only stops by backpressure are undone, soon, and also when the recorder is stopped or killed
 * (watchdog.h). A process that must not be stopped loses events instead, and these are counted: see
 * exempt.h, exempt_processes.h. Ctrl-Z continues all targets before the recorder stops.
 */
#ifndef LEAKTOOLS_RECORDER_BACKPRESSURE_H
#define LEAKTOOLS_RECORDER_BACKPRESSURE_H

#include "common/perf_disk.h"
#include "recorder/target_table/target_table.h"
#include "recorder/events/record_events.h"

#include <stdbool.h>
#include <stdint.h>

struct backpressure;

/*
 * Prepares backpressure and starts its watchdog; call it before the events are opened. @shared is
 * the table of the recording programs (bpf_recorder.h). With NULL perf events record, and
 * backpressure loads programs of its own; it warns if BPF is not available, or if the rings are too
 * small. *@ret may be NULL: nothing will be stopped. Returns 0 or a negative errno, reported.
 */
int backpressure_create(const struct record_config *config, struct target_table *shared,
			struct backpressure **ret);

/*
 * Continues all targets, ends the watchdog, frees backpressure; NULL is fine. Call it after the
 * events are closed.
 */
void backpressure_destroy(struct backpressure *backpressure);

/*
 * Adds a process that is recorded from now on. @linked: by links. Returns false if there is no room
 * for it: it is never stopped, and programs do not know it.
 */
bool backpressure_add_target(struct backpressure *backpressure, pid_t pid, bool linked);

/*
 * Handles a FORK or EXIT record: without BPF, backpressure adds or removes the child. It does not
 * add a child that has another parent by now: another process may have got the id.
 */
void backpressure_handle_task(struct backpressure *backpressure, const struct perf_disk_task *task);

/* True if all processes are recorded, or all of a cgroup. */
bool backpressure_is_system_wide(const struct backpressure *backpressure);

/* Sets the role of @pid for its lifetime. Does nothing if processes are named and @pid is not. */
void backpressure_set_role(struct backpressure *backpressure, pid_t pid, enum target_role role);

/* Attaches the programs to the probes' events. Returns 0 or a negative errno, reported. */
int backpressure_attach(struct backpressure *backpressure, const struct record_events *events);

/* Call it before the events are enabled: from now on, rings fill up. */
void backpressure_begin(struct backpressure *backpressure);

/* Closes the programs' events on the probes of @file, which gives up its other events, too. */
void backpressure_remove_file(struct backpressure *backpressure, const struct record_events *events,
			      const struct probe_file *file);

/* Continues all targets and stops none from now on. */
void backpressure_release(struct backpressure *backpressure);

/*
 * Call these around each round. What was produced before the round began is consumed when it ends,
 * and the stopped targets continue. @most_drained_bytes is what the fullest ring held.
 */
void backpressure_begin_round(struct backpressure *backpressure);
void backpressure_end_round(struct backpressure *backpressure, uint64_t most_drained_bytes);

/* Within a round, when the rings were drained: continues targets that wait for nothing else. */
void backpressure_continue_ready(struct backpressure *backpressure);

/* The watchdog hits no probe, so events that only carry a program may be opened for it. */
pid_t backpressure_watchdog_pid(const struct backpressure *backpressure);

/* The programs that stop processes before they create tasks; empty if there are none. */
struct clone_watch backpressure_clone_watch(const struct backpressure *backpressure);

/* The target table, which the programs and the watchdog share. */
struct target_table *backpressure_table(const struct backpressure *backpressure);

/* True if the recorder has stopped targets: the rings have to be drained again at once. */
bool backpressure_wants_round(const struct backpressure *backpressure);

/* How many processes continued before their set-up was done, after the longest stop. */
uint64_t backpressure_nr_set_up_late(const struct backpressure *backpressure);

/* True if events may be missing that no count shows: target_table.missed. */
bool backpressure_may_miss(const struct backpressure *backpressure);

/* How often targets were stopped, and for how long. */
uint64_t backpressure_nr_pauses(const struct backpressure *backpressure);
uint64_t backpressure_paused_ns(const struct backpressure *backpressure);

#endif
