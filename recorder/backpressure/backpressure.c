/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/backpressure/backpressure.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/interrupted.h"
#include "common/scope.h"
#include "recorder/bpf/backpressure_shared.h"
#include "backpressure.skel.h"
#include "common/proc/process_stat.h"
#include "common/proc/process_namespace.h"
#include "recorder/events/event_attr.h"
#include "recorder/events/event_removal.h"
#include "recorder/processes/exempt.h"
#include "recorder/backpressure/suspension.h"
#include "recorder/backpressure/watchdog.h"
#include "recorder/target_table/target_table.h"
#include "recorder/loading/backup_programs.h"
#include "recorder/loading/bpf_setup.h"
#include "recorder/loading/private_stack.h"
#include "recorder/processes/tasks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* Upper bounds of a sample's parts, in bytes. */
#define PLAIN_SAMPLE_BYTES 128
#define MARK_SAMPLE_BYTES  (PLAIN_SAMPLE_BYTES + EVENT_ATTR_TEXT_STACK_BYTES)
#define REGS_BYTES	   (8 + 8 * 32)
/*
 * With fewer, the samples that are written after the limit is reached overflow the last quarter of
 * the ring.
 */
#define MIN_SAMPLES_IN_RING 16
#define MAX_CALLCHAIN	    127 /* kernel.perf_event_max_stack's default */

/* An event that carries a program. */
struct program_event {
	int fd;
	uint64_t config; /* of the recording's event on the same probe */
};

struct backpressure {
	struct backpressure_bpf *bpf; /* NULL: the recorder stops the targets itself */
	struct target_table *table;
	struct watchdog watchdog;
	struct program_event *events; /* opened for the watchdog */
	size_t nr_events;
	bool is_own_table; /* there are no programs: the recorder stops the targets */
	bool is_system_wide;
	uint64_t limit_bytes; /* target_table_set_limit()'s */
	bool told_overdue, told_late, told_missed, told_no_room, told_strained, told_killed;
	unsigned int nr_suspensions_told;
	bool watches_clones;			  /* context_breakers.bpf.h */
	uint64_t snapshot[BACKPRESSURE_MAX_CPUS]; /* produced bytes when the round began */
	bool wants_round;
	uint64_t nr_pauses, paused_ns;
};

static uint32_t stack_sample_bytes(const struct record_config *config, bool by_programs)
{
	switch (config->call_graph) {
	case CALL_GRAPH_FP:
		return PLAIN_SAMPLE_BYTES + 8 * (MAX_CALLCHAIN + 2);
	case CALL_GRAPH_DWARF:
		return PLAIN_SAMPLE_BYTES + REGS_BYTES + 24 +
		       record_config_dump_bytes(config, by_programs);
	default:
		return PLAIN_SAMPLE_BYTES;
	}
}

/* Chooses before loading whether the programs at clone() are loaded. */
static void choose_clone_programs(struct backpressure_bpf *bpf, bool wanted)
{
	bpf_program__set_autoload(bpf->progs.before_clone, wanted);
	bpf_program__set_autoload(bpf->progs.after_clone, wanted);
	bpf_map__set_autocreate(bpf->maps.breaker_requests, wanted);
	bpf_map__set_autocreate(bpf->maps.breaker_states, wanted);
}

static int attach_programs(struct backpressure_bpf *bpf)
{
	bpf->bss->breakers.attached_ns = clock_now_ns();
	return backpressure_bpf__attach(bpf);
}

/* Loads the programs; leaves @backpressure->bpf NULL where the kernel does not permit it. */
static void load_programs(struct backpressure *backpressure, const struct record_config *config,
			  bool at_clone)
{
	/* The programs see process ids of the initial PID namespace. */
	if (!process_namespace_is_initial())
		return;
	bpf_setup_silence_libbpf();
	backpressure->bpf = backpressure_bpf__open();
	if (!backpressure->bpf)
		return;
	choose_clone_programs(backpressure->bpf, at_clone);
	backup_programs_choose(backpressure->bpf->obj, tracepoints_are_preemptible(), false);
	backpressure->bpf->rodata->plain_bytes = PLAIN_SAMPLE_BYTES;
	backpressure->bpf->rodata->stack_bytes = stack_sample_bytes(config, false);
	backpressure->bpf->rodata->mark_bytes = MARK_SAMPLE_BYTES;
	backpressure->bpf->rodata->everywhere = config->scope != RECORD_PROCESSES;
	backpressure->bpf->rodata->in_cgroup = config->scope == RECORD_CGROUP;
	if (backpressure_bpf__load(backpressure->bpf) ||
	    !uprobe_programs_are_safe(backpressure->bpf->obj) ||
	    attach_programs(backpressure->bpf) ||
	    (config->scope == RECORD_CGROUP &&
	     bpf_setup_set_cgroup(bpf_map__fd(backpressure->bpf->maps.recorded_cgroup),
				  config->cgroup_fd))) {
		backpressure_bpf__destroy(backpressure->bpf);
		backpressure->bpf = NULL;
	}
}

static bool wants_clone_programs(const struct record_config *config)
{
	return config->scope == RECORD_PROCESSES && event_attr_contexts_swap();
}

/* Finds the target table: in the programs' memory, or in our own. */
static int place_table(struct backpressure *backpressure, const struct record_config *config,
		       struct target_table *shared, bool holds)
{
	if (shared) {
		backpressure->table = shared;
		return 0;
	}
	backpressure->watches_clones = wants_clone_programs(config);
	load_programs(backpressure, config, backpressure->watches_clones);
	if (!backpressure->bpf && backpressure->watches_clones) {
		backpressure->watches_clones = false;
		load_programs(backpressure, config, false);
	}
	if (backpressure->bpf) {
		backpressure->table = &backpressure->bpf->bss->shared;
		return 0;
	}
	if (config->scope != RECORD_PROCESSES) {
		diag_error("cannot record all processes: BPF programs cannot be loaded%s, or "
			   "name the processes with -p",
			   diag_rights_hint(EPERM));
		return -EPERM;
	}
	if (!holds)
		return -EOPNOTSUPP;
	diag_warn("BPF is not available: overload control may lose events");
	backpressure->table = mmap(NULL, sizeof(*backpressure->table), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (backpressure->table == MAP_FAILED) {
		backpressure->table = NULL;
		return -ENOMEM;
	}
	backpressure->is_own_table = true;
	target_table_set_blind(backpressure->table);
	return 0;
}

/* --- Life --- */

int backpressure_create(const struct record_config *config, struct target_table *shared,
			struct backpressure **ret)
{
	uint64_t ring_bytes = (uint64_t)config->ring_pages * (uint64_t)getpagesize();
	uint32_t sample_bytes = stack_sample_bytes(config, shared != NULL);
	bool is_too_small = ring_bytes < MIN_SAMPLES_IN_RING * (uint64_t)sample_bytes;
	bool wants = config->on_overload == OVERLOAD_HOLD;
	bool may_continue = watchdog_may_continue(wants || (shared && !config->in_windows));
	bool holds = wants && may_continue;
	struct backpressure *backpressure;
	int err;

	*ret = NULL;
	if (is_too_small && holds)
		diag_warn("rings of %u pages are too small to stop processes in time: events may "
			  "be lost; give a larger -m",
			  config->ring_pages);
	/* Recording programs also stop processes for set-up work, with rings of any size. */
	holds = holds && (shared || !is_too_small);
	if (!shared && !holds && config->scope == RECORD_PROCESSES && !wants_clone_programs(config))
		return 0;
	backpressure = calloc(1, sizeof(*backpressure));
	if (!backpressure)
		return -ENOMEM;
	backpressure->is_system_wide = config->scope != RECORD_PROCESSES;
	err = place_table(backpressure, config, shared, holds);
	if (err == -EOPNOTSUPP) {
		backpressure_destroy(backpressure);
		return 0;
	}
	if (!err) {
		/* The recording programs know how full the ring is; the others overestimate it. */
		uint64_t limit_bytes = shared ? ring_bytes / 2 : ring_bytes / 4 * 3;

		/* A window closes before a ring is full. */
		if (!may_continue || config->in_windows)
			target_table_forbid_stops(backpressure->table);
		backpressure->limit_bytes = holds ? limit_bytes : 0;
		target_table_set_limit(backpressure->table, backpressure->limit_bytes);
		if (holds && backpressure->is_system_wide)
			target_table_prefer_fillers(backpressure->table, ring_bytes);
		/* Programs on perf events run before these are enabled, and know no ring. */
		if (backpressure->bpf)
			target_table_set_limit(backpressure->table, 0);
		err = watchdog_start(&backpressure->watchdog, backpressure->table);
		if (err)
			diag_error("cannot start the watchdog: %s", strerror(-err));
	}
	if (err) {
		backpressure_destroy(backpressure);
		return err;
	}
	suspension_watch(backpressure->table);
	*ret = backpressure;
	return 0;
}

void backpressure_destroy(struct backpressure *backpressure)
{
	if (!backpressure)
		return;
	if (backpressure->table) {
		target_table_close(backpressure->table);
		suspension_let_go(backpressure->table);
		suspension_unwatch();
	}
	for (size_t i = 0; i < backpressure->nr_events; i++)
		close(backpressure->events[i].fd);
	free(backpressure->events);
	watchdog_stop(&backpressure->watchdog, backpressure->table);
	if (backpressure->bpf)
		backpressure_bpf__destroy(backpressure->bpf);
	else if (backpressure->is_own_table)
		munmap(backpressure->table, sizeof(*backpressure->table));
	free(backpressure);
}

bool backpressure_add_target(struct backpressure *backpressure, pid_t pid, bool linked)
{
	return target_table_add_process(backpressure->table, pid, linked);
}

void backpressure_set_role(struct backpressure *backpressure, pid_t pid, enum target_role role)
{
	/* If processes are named, the table has no others, and none is added. */
	struct target *target = backpressure->is_system_wide
					? target_table_add(backpressure->table, (unsigned int)pid)
					: target_table_find(backpressure->table, (unsigned int)pid);

	if (target)
		target_set_role(target, role);
}

bool backpressure_is_system_wide(const struct backpressure *backpressure)
{
	return backpressure->is_system_wide;
}

void backpressure_handle_task(struct backpressure *backpressure, const struct perf_disk_task *task)
{
	struct target_table *table = backpressure->table;
	struct process_stat status;
	struct target *target;
	int err;

	/* The programs follow forks and exits themselves, before an id can be reused. */
	if (!backpressure->is_own_table)
		return;
	err = process_stat_read((pid_t)task->pid, &status);
	if (task->header.type == PERF_RECORD_EXIT) {
		target = target_table_find(table, task->pid);
		/* The parent may wait for the dead process much later, or never. */
		if (target && (err == -ESRCH ||
			       (!err && (process_stat_is_dead(&status) ||
					 status.start_time_ticks != target->start_time_ticks))))
			target_table_remove(table, task->pid);
	} else if (!err && task->pid != task->ppid && status.parent == (pid_t)task->ppid) {
		target = target_table_add(table, task->pid);
		if (target)
			target_set_start_time(target, status.start_time_ticks);
	}
}

pid_t backpressure_watchdog_pid(const struct backpressure *backpressure)
{
	return backpressure->watchdog.pid;
}

struct clone_watch backpressure_clone_watch(const struct backpressure *backpressure)
{
	if (!backpressure || !backpressure->watches_clones)
		return (struct clone_watch){.requests_fd = -1};
	return (struct clone_watch){
		.requests_fd = bpf_map__fd(backpressure->bpf->maps.breaker_requests),
		.shared = &backpressure->bpf->bss->breakers,
		.targets = backpressure->table,
	};
}

struct target_table *backpressure_table(const struct backpressure *backpressure)
{
	return backpressure->table;
}

static const struct bpf_program *program_for(const struct backpressure *backpressure,
					     const struct record_event *event)
{
	if (event->is_syscall)
		return event->has_stack ? backpressure->bpf->progs.backpressure_syscall_stack
					: backpressure->bpf->progs.backpressure_syscall_plain;
	if (event->mark)
		return backpressure->bpf->progs.backpressure_mark;
	return event->has_stack ? backpressure->bpf->progs.backpressure_stack
				: backpressure->bpf->progs.backpressure_plain;
}

/*
 * The event must not be inherited: it would detach the program when its task ends
 * (perf_event_free_bpf_prog(), Linux 6.18).
 */
static int attach_program(struct backpressure *backpressure, const struct record_event *event)
{
	const struct bpf_program *program = program_for(backpressure, event);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = event->attr.config,
		.sample_period = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr,
			      task_for_programs(backpressure->watchdog.pid), -1, -1,
			      PERF_FLAG_FD_CLOEXEC);
	struct program_event *events =
		fd < 0 ? NULL
		       : reallocarray(backpressure->events, backpressure->nr_events + 1,
				      sizeof(*events));

	if (events) {
		backpressure->events = events;
		events[backpressure->nr_events++] = (struct program_event){fd, attr.config};
	}
	if (!events || ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(program)) < 0) {
		int err = errno;

		diag_error("cannot control overload at %s: %s; try --on-overload drop", event->name,
			   strerror(err));
		if (fd >= 0 && !events)
			close(fd);
		return -err;
	}
	return 0;
}

int backpressure_attach(struct backpressure *backpressure, const struct record_events *events)
{
	int err = 0;

	/* If all processes are recorded, the programs also choose among them. */
	if (backpressure->bpf && !backpressure->bpf->rodata->everywhere &&
	    !backpressure->limit_bytes)
		return 0;
	for (size_t i = 0; backpressure->bpf && i < events->probes.nr_events && !err; i++) {
		if (events->probes.events[i].attr.type != PERF_TYPE_TRACEPOINT)
			continue;
		err = is_interrupted() ? -EINTR
				       : attach_program(backpressure, &events->probes.events[i]);
	}
	return err;
}

void backpressure_begin(struct backpressure *backpressure)
{
	target_table_set_limit(backpressure->table, backpressure->limit_bytes);
}

static void close_event(struct backpressure *backpressure, uint64_t config)
{
	for (size_t i = 0; i < backpressure->nr_events; i++) {
		struct program_event *event = &backpressure->events[i];

		if (event->config != config)
			continue;
		close(event->fd);
		*event = backpressure->events[--backpressure->nr_events];
		return;
	}
}

void backpressure_remove_file(struct backpressure *backpressure, const struct record_events *events,
			      const struct probe_file *file)
{
	for (size_t i = 0; i < events->probes.nr_events; i++)
		if (record_event_is_on(&events->probes.events[i], file))
			close_event(backpressure, events->probes.events[i].attr.config);
}

static void count_pause(struct backpressure *backpressure, uint64_t longest_ns)
{
	backpressure->paused_ns += longest_ns;
	backpressure->nr_pauses += longest_ns > 0;
}

void backpressure_release(struct backpressure *backpressure)
{
	target_table_close(backpressure->table);
	count_pause(backpressure, target_table_continue_all(backpressure->table));
}

/* Reports what backpressure could not prevent. */
static void report_limits(struct backpressure *backpressure)
{
	if (backpressure->table->overdue && !backpressure->told_overdue) {
		backpressure->told_overdue = true;
		diag_warn("the output is too slow: processes continued after a stop of one second; "
			  "events without room are lost, and counted");
	}
	if (!backpressure->told_killed && !backpressure->table->forbidden &&
	    watchdog_was_killed(&backpressure->watchdog)) {
		backpressure->told_killed = backpressure->told_late = true;
		diag_warn("the watchdog was killed, so no process is stopped any more; events "
			  "without room are lost, and counted; record anew");
	}
	if (backpressure->table->watchdog_was_late && !backpressure->told_late) {
		backpressure->told_late = true;
		diag_warn("the watchdog did not run for a second, so no process was stopped: the "
			  "machine is too busy; events without room are lost, and counted");
	}
	if (backpressure->table->missed && !backpressure->told_missed) {
		backpressure->told_missed = true;
		diag_warn("a process continued before its child or its new file was set up for "
			  "recording: the first calls there may be missing, and are not counted as "
			  "lost");
	}
	if (backpressure->table->no_room && !backpressure->told_no_room) {
		backpressure->told_no_room = true;
		diag_warn("the table has no room for more processes: later children and later "
			  "files may not be recorded; record fewer processes");
	}
	if (backpressure->table->strained_tgid && !backpressure->told_strained) {
		char name[PROCESS_NAME_MAX];

		backpressure->told_strained = true;
		process_namespace_format_name((pid_t)backpressure->table->strained_tgid, name);
		diag_warn("events have come faster than leakrec can write them for %d seconds: it "
			  "stops the processes that make most of them again and again, above all "
			  "%s; record others (-p), or only some sizes (--size), or lose events "
			  "instead (--on-overload drop)",
			  TARGET_STRAINED_WINDOWS, name);
	}
	if (suspension_count() != backpressure->nr_suspensions_told) {
		backpressure->nr_suspensions_told = suspension_count();
		diag_note("recording goes on; events without room meanwhile are lost, and counted");
	}
}

void backpressure_begin_round(struct backpressure *backpressure)
{
	/* Programs that record know how full the rings are. Others have to be told. */
	for (size_t i = 0; backpressure->bpf && i < BACKPRESSURE_MAX_CPUS; i++)
		backpressure->snapshot[i] = __atomic_load_n(
			&backpressure->bpf->bss->cpus[i].produced, __ATOMIC_ACQUIRE);
}

/* Without programs, the recorder stops the targets. */
static void stop_targets(struct backpressure *backpressure)
{
	struct target_table *table = backpressure->table;

	for (struct target *target = NULL; (target = target_table_next(table, target));) {
		bool is_stopped;

		/* If something else has stopped a process, it is not ours to continue. */
		if (target->role != TARGET_RECORDED ||
		    exempt_why((pid_t)target->tgid, (pid_t)table->own_session, &is_stopped) ||
		    is_stopped)
			continue;
		target_table_stop(table, target);
	}
}

/*
 * Tells the programs how much has been consumed: all that had been produced when the round began.
 */
static void tell_consumed(struct backpressure *backpressure)
{
	for (size_t i = 0; backpressure->bpf && i < BACKPRESSURE_MAX_CPUS; i++) {
		struct backpressure_cpu *cpu = &backpressure->bpf->bss->cpus[i];

		if (cpu->consumed != backpressure->snapshot[i])
			__atomic_store_n(&cpu->consumed, backpressure->snapshot[i],
					 __ATOMIC_RELEASE);
	}
}

void backpressure_continue_ready(struct backpressure *backpressure)
{
	count_pause(backpressure, target_table_continue_ready(backpressure->table));
}

void backpressure_end_round(struct backpressure *backpressure, uint64_t most_drained_bytes)
{
	const struct target_table *table = backpressure->table;

	tell_consumed(backpressure);
	if (backpressure->is_own_table && !backpressure->wants_round && !table->closed &&
	    !table->forbidden && !table->overdue && most_drained_bytes > table->limit_bytes) {
		stop_targets(backpressure);
		backpressure->wants_round = true;
		return;
	}
	backpressure->wants_round = false;
	backpressure_continue_ready(backpressure);
	report_limits(backpressure);
	target_table_end_overdue(backpressure->table);
}

bool backpressure_wants_round(const struct backpressure *backpressure)
{
	return backpressure->wants_round;
}

uint64_t backpressure_nr_set_up_late(const struct backpressure *backpressure)
{
	return backpressure->table->nr_set_up_late;
}

bool backpressure_may_miss(const struct backpressure *backpressure)
{
	return backpressure->table->missed || backpressure->table->no_room;
}

uint64_t backpressure_nr_pauses(const struct backpressure *backpressure)
{
	return backpressure->nr_pauses;
}

uint64_t backpressure_paused_ns(const struct backpressure *backpressure)
{
	return backpressure->paused_ns;
}
