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
 * Only what the gate stopped is continued, also when the recorder is stopped or killed, and soon
 * (watchdog.h). Who is not to be stopped loses events instead, and these are counted: exempt.h,
 * exempt_processes.h. Ctrl-Z lets everybody go on before the recorder stops.
 */
#ifndef LEAKTOOLS_RECORDER_BACKPRESSURE_H
#define LEAKTOOLS_RECORDER_BACKPRESSURE_H

#include "common/perf_disk.h"
#include "recorder/target_table/target_table_shared.h"
#include "recorder/events/record_events.h"

#include <stdbool.h>
#include <stdint.h>

struct gate;

/*
 * Prepares the gate and starts its guard; before the events are opened. @shared is the table of the
 * programs that record (bpf_recorder.h), or NULL: then perf events do, the gate brings programs
 * of its own, and says so where BPF is not to be had. Where the rings are too small for a gate it
 * says so, too. *@ret may be NULL: nobody will be stopped. Returns 0 or a negative errno, reported.
 */
int gate_create(const struct record_config *config, struct gate_shared *shared, struct gate **ret);

/* Continues all targets, ends the guard, frees the gate; NULL is fine. After the events are closed.
 */
void gate_destroy(struct gate *gate);

/* A process that is recorded from now on. @linked: by links. */
void gate_add_target(struct gate *gate, pid_t pid, bool linked);

/*
 * A FORK or EXIT record: a child that the gate without BPF is to know, or is to forget. (A process
 * that is not its parent's any more may be another of the same number.)
 */
void gate_follow(struct gate *gate, const struct perf_disk_task *task);

/* True if all processes are recorded, or a cgroup's. */
bool gate_is_everywhere(const struct gate *gate);

/* What @pid is, as long as it lives; where processes are named, of those. */
void gate_set_role(struct gate *gate, pid_t pid, enum gate_role role);

/* Puts the gate before the probes' events. Returns 0 or a negative errno, reported. */
int gate_attach(struct gate *gate, const struct record_events *events);

/* Stops nobody any more, and continues those who are. */
void gate_open(struct gate *gate);

/*
 * Around each round of draining: what was produced before it began is consumed when it ends, and
 * who was stopped goes on. @most_drained_bytes is what the fullest ring held.
 */
void gate_begin_round(struct gate *gate);
void gate_end_round(struct gate *gate, uint64_t most_drained_bytes);

/* Programs of a RECORD_CGROUP find the cgroup in this map of theirs. 0 or a negative errno. */
int gate_set_cgroup(int map_fd, int cgroup_fd);

/* The guard, which hits no probe: events that only carry a program are opened for it. */
pid_t gate_guard_pid(const struct gate *gate);

/* The programs that hold processes before they create tasks; nothing where there are none. */
struct clone_watch gate_clone_watch(const struct gate *gate);

/* The table of processes. */
struct gate_shared *gate_table(const struct gate *gate);

/* True if targets were stopped for the round to come (by the recorder): then the rings are to be
 * drained again. */
bool gate_wants_round(const struct gate *gate);

/* How often targets were stopped, and for how long. */
uint64_t gate_nr_pauses(const struct gate *gate);
uint64_t gate_paused_ns(const struct gate *gate);

#endif
