/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Holds the recorded processes back rather than lose an event: past a limit in a ring they are
 * stopped, the rings are drained, and they go on.
 *
 * Where BPF is permitted, the kernel stops them itself, at the hit that takes a ring past the
 * limit. The programs that record see how full their rings are (bpf_recorder.bpf.c). For rings of
 * perf events, programs count each record with its greatest possible size and are told with each
 * round what has been consumed, so they err on the safe side (backpressure.bpf.c). Elsewhere the
 * recorder stops the processes when a round brings more than the limit, which can be too late.
 *
 * Only what backpressure stopped is continued, also when the recorder is stopped or killed, and
 * soon (watchdog.h). Who is not to be stopped loses events instead, and these are counted:
 * exempt.h, exempt_processes.h. Ctrl-Z lets everybody go on before the recorder stops.
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
 * Prepares backpressure and starts its watchdog; before the events are opened. @shared is the table
 * of the programs that record (bpf_recorder.h), or NULL: then perf events do, backpressure brings
 * programs of its own, and says so where BPF is not to be had. Where the rings are too small for
 * backpressure it says so, too. *@ret may be NULL: nobody will be stopped. Returns 0 or a negative
 * errno, reported.
 */
int backpressure_create(const struct record_config *config, struct target_table *shared,
			struct backpressure **ret);

/* Continues all targets, ends the watchdog, frees backpressure; NULL is fine. After the events are
 * closed.
 */
void backpressure_destroy(struct backpressure *backpressure);

/* A process that is recorded from now on. @linked: by links. */
void backpressure_add_target(struct backpressure *backpressure, pid_t pid, bool linked);

/*
 * A FORK or EXIT record: a child that backpressure without BPF is to know, or is to forget. (A
 * process that is not its parent's any more may be another of the same number.)
 */
void backpressure_handle_task(struct backpressure *backpressure, const struct perf_disk_task *task);

/* True if all processes are recorded, or a cgroup's. */
bool backpressure_is_system_wide(const struct backpressure *backpressure);

/* What @pid is, as long as it lives; where processes are named, of those. */
void backpressure_set_role(struct backpressure *backpressure, pid_t pid, enum target_role role);

/* Puts backpressure before the probes' events. Returns 0 or a negative errno, reported. */
int backpressure_attach(struct backpressure *backpressure, const struct record_events *events);

/* Stops nobody any more, and continues those who are. */
void backpressure_release(struct backpressure *backpressure);

/*
 * Around each round of draining: what was produced before it began is consumed when it ends, and
 * who was stopped goes on. @most_drained_bytes is what the fullest ring held.
 */
void backpressure_begin_round(struct backpressure *backpressure);
void backpressure_end_round(struct backpressure *backpressure, uint64_t most_drained_bytes);

/* The watchdog, which hits no probe: events that only carry a program are opened for it. */
pid_t backpressure_watchdog_pid(const struct backpressure *backpressure);

/* The programs that hold processes before they create tasks; nothing where there are none. */
struct clone_watch backpressure_clone_watch(const struct backpressure *backpressure);

/* The target table, which the programs and the watchdog share. */
struct target_table *backpressure_table(const struct backpressure *backpressure);

/* True if targets were stopped for the round to come (by the recorder): then the rings are to be
 * drained again. */
bool backpressure_wants_round(const struct backpressure *backpressure);

/* How many processes continued before their set-up was done, after the longest stop. */
uint64_t backpressure_nr_set_up_late(const struct backpressure *backpressure);

/* How often targets were stopped, and for how long. */
uint64_t backpressure_nr_pauses(const struct backpressure *backpressure);
uint64_t backpressure_paused_ns(const struct backpressure *backpressure);

#endif
