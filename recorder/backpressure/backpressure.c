/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/backpressure/backpressure.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/scope.h"
#include "backpressure.skel.h"
#include "common/proc/process_status.h"
#include "common/proc/process_view.h"
#include "recorder/processes/exempt.h"
#include "recorder/target_table/target_table.h"
#include "recorder/backpressure/watchdog.h"
#include "recorder/programs/private_stack.h"
#include "recorder/processes/tasks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

/* Upper bounds of a sample's parts, in bytes. */
#define PLAIN_SAMPLE_BYTES 128
#define REGS_BYTES	   (8 + 8 * 32)
/* With fewer, the quarter of a ring behind the limit would not hold what is under way. */
#define MIN_SAMPLES_IN_RING 16
#define MAX_CALLCHAIN	    127 /* kernel.perf_event_max_stack's default */

struct gate {
	struct backpressure_bpf *bpf; /* NULL: the recorder stops the targets itself */
	struct gate_shared *shared;
	struct guard guard;
	int *fds; /* events of the guard's, which carry the programs */
	size_t nr_fds;
	bool is_ours; /* @shared: the recorder is the one who stops */
	bool is_everywhere;
	bool told_overdue, told_missed;
	unsigned int nr_suspensions_told;
	bool watches_clones;		  /* context_breakers.bpf.h */
	uint64_t snapshot[GATE_MAX_CPUS]; /* produced when the round began */
	bool wants_round;
	uint64_t nr_pauses, paused_ns;
};

static int libbpf_silent(enum libbpf_print_level level, const char *format, va_list args)
{
	/* A kernel that permits no BPF is told in one line of ours. */
	return 0;
}

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

int gate_set_cgroup(int map_fd, int cgroup_fd)
{
	const uint32_t key = 0;

	return bpf_map_update_elem(map_fd, &key, &cgroup_fd, BPF_ANY);
}

/* Before loading: of the programs at clone(), those that are wanted. */
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
	bpf->bss->breakers.own_group = (unsigned long long)getpgrp();
	return backpressure_bpf__attach(bpf);
}

/* Loads the programs; leaves @gate->bpf NULL where the kernel does not permit it. */
static void load_programs(struct gate *gate, const struct record_config *config, bool at_clone)
{
	/* The programs see the processes' ids as the first namespace has them. */
	if (!process_view_is_first())
		return;
	libbpf_set_print(libbpf_silent);
	gate->bpf = backpressure_bpf__open();
	if (!gate->bpf)
		return;
	choose_clone_programs(gate->bpf, at_clone);
	gate->bpf->rodata->plain_bytes = PLAIN_SAMPLE_BYTES;
	gate->bpf->rodata->stack_bytes = stack_sample_bytes(config, false);
	gate->bpf->rodata->everywhere = config->scope != RECORD_PROCESSES;
	gate->bpf->rodata->in_cgroup = config->scope == RECORD_CGROUP;
	if (backpressure_bpf__load(gate->bpf) || !uprobe_programs_are_safe(gate->bpf->obj) ||
	    attach_programs(gate->bpf) ||
	    (config->scope == RECORD_CGROUP &&
	     gate_set_cgroup(bpf_map__fd(gate->bpf->maps.recorded_cgroup), config->cgroup_fd))) {
		backpressure_bpf__destroy(gate->bpf);
		gate->bpf = NULL;
	}
}

static bool wants_clone_programs(const struct record_config *config)
{
	return config->scope == RECORD_PROCESSES && record_events_swap_contexts();
}

/* Where the gate's table is: programs' memory, or our own. */
static int place_table(struct gate *gate, const struct record_config *config,
		       struct gate_shared *shared, bool holds)
{
	if (shared) {
		gate->shared = shared;
		return 0;
	}
	gate->watches_clones = wants_clone_programs(config);
	load_programs(gate, config, gate->watches_clones);
	if (!gate->bpf && gate->watches_clones) {
		gate->watches_clones = false;
		load_programs(gate, config, false);
	}
	if (gate->bpf) {
		gate->shared = &gate->bpf->bss->shared;
		return 0;
	}
	if (config->scope != RECORD_PROCESSES) {
		diag_error("cannot record all processes: that takes the right to load BPF "
			   "programs; run it as root, or name the processes with -p");
		return -EPERM;
	}
	if (!holds)
		return -EOPNOTSUPP;
	diag_warn("no BPF here: the recorder itself holds the processes back, and may be late");
	gate->shared = mmap(NULL, sizeof(*gate->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (gate->shared == MAP_FAILED) {
		gate->shared = NULL;
		return -ENOMEM;
	}
	gate->is_ours = true;
	gate->shared->blind = 1;
	return 0;
}

/* --- Ctrl-Z --- */

/* Of the gate that there is, for the signal handler. */
static struct gate_shared *suspended_table;
static volatile sig_atomic_t nr_suspensions;

static void continue_everybody(struct gate_shared *shared)
{
	shared->any_stopped = 1;
	guard_continue_targets(shared, true);
	/* Programs that were under way may have stopped somebody since: they end first. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	shared->any_stopped = 1;
	guard_continue_targets(shared, true);
}

/*
 * Ctrl-Z stops the recorder, not whom it records: who is held goes on, and nobody is held before
 * `fg`. A handler, because the recorder may be waiting for anything.
 */
static void on_suspend(int number)
{
	struct sigaction action = {.sa_handler = SIG_DFL}, ours;
	int saved_errno = errno;
	sigset_t set, before;

	__atomic_store_n(&suspended_table->paused, 1, __ATOMIC_SEQ_CST);
	continue_everybody(suspended_table);
	sigaction(number, &action, &ours);
	raise(number);
	sigemptyset(&set);
	sigaddset(&set, number);
	/* Stops here, unless there is no shell to continue it. */
	sigprocmask(SIG_UNBLOCK, &set, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	sigaction(number, &ours, NULL);
	nr_suspensions++;
	__atomic_store_n(&suspended_table->paused, 0, __ATOMIC_SEQ_CST);
	errno = saved_errno;
}

static void watch_suspension(struct gate_shared *shared)
{
	static const int numbers[] = {SIGTSTP, SIGTTIN};
	struct sigaction action = {.sa_handler = on_suspend, .sa_flags = SA_RESTART}, before;
	sigset_t set;

	suspended_table = shared;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	/* What a recorder in the background says is to be read there: `stty tostop` or not. */
	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void unwatch_suspension(void)
{
	static const int numbers[] = {SIGTSTP, SIGTTIN};
	struct sigaction before;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == on_suspend)
			signal(numbers[i], SIG_DFL);
	suspended_table = NULL;
}

/* --- Life --- */

int gate_create(const struct record_config *config, struct gate_shared *shared, struct gate **ret)
{
	uint64_t ring_bytes = (uint64_t)config->ring_pages * (uint64_t)getpagesize();
	uint32_t sample_bytes = stack_sample_bytes(config, shared != NULL);
	bool is_too_small = ring_bytes < MIN_SAMPLES_IN_RING * (uint64_t)sample_bytes;
	bool holds = config->on_overload == OVERLOAD_HOLD;
	struct gate *gate;
	int err;

	*ret = NULL;
	if (is_too_small && holds)
		diag_warn("rings of %u pages are too small to hold processes back in time: events "
			  "may be lost; give a larger -m",
			  config->ring_pages);
	/*
	 * Whoever records through links stops processes that fork, too; and of all processes, the
	 * programs know who is meant.
	 */
	holds = holds && (shared || !is_too_small);
	if (!shared && !holds && config->scope == RECORD_PROCESSES && !wants_clone_programs(config))
		return 0;
	gate = calloc(1, sizeof(*gate));
	if (!gate)
		return -ENOMEM;
	gate->is_everywhere = config->scope != RECORD_PROCESSES;
	err = place_table(gate, config, shared, holds);
	if (err == -EOPNOTSUPP) {
		gate_destroy(gate);
		return 0;
	}
	if (!err) {
		/* Programs that see the ring itself need less of a margin than those that guess. */
		gate->shared->limit_bytes = shared ? ring_bytes / 2 : ring_bytes / 4 * 3;
		if (!holds)
			gate->shared->limit_bytes = 0;
		err = guard_start(&gate->guard, gate->shared);
		if (err)
			diag_error("cannot start the guard of stopped processes: %s",
				   strerror(-err));
	}
	if (err) {
		gate_destroy(gate);
		return err;
	}
	watch_suspension(gate->shared);
	*ret = gate;
	return 0;
}

void gate_destroy(struct gate *gate)
{
	if (!gate)
		return;
	if (gate->shared) {
		gate->shared->closed = 1;
		continue_everybody(gate->shared);
		unwatch_suspension();
	}
	for (size_t i = 0; i < gate->nr_fds; i++)
		close(gate->fds[i]);
	free(gate->fds);
	guard_stop(&gate->guard, gate->shared);
	if (gate->bpf)
		backpressure_bpf__destroy(gate->bpf);
	else if (gate->is_ours)
		munmap(gate->shared, sizeof(*gate->shared));
	free(gate);
}

void gate_add_target(struct gate *gate, pid_t pid, bool linked)
{
	struct gate_target *target = gate_table_add(gate->shared, (unsigned int)pid);

	if (target && linked)
		target->linked = 1;
}

void gate_set_role(struct gate *gate, pid_t pid, enum gate_role role)
{
	/* Where processes are named, the table has no others. */
	struct gate_target *target = gate->is_everywhere
					     ? gate_table_add(gate->shared, (unsigned int)pid)
					     : gate_table_find(gate->shared, (unsigned int)pid);

	if (target)
		target->role = role;
}

bool gate_is_everywhere(const struct gate *gate)
{
	return gate->is_everywhere;
}

/* True if the process has begun after @time_ns: the one that had its id then has ended. */
static bool has_begun_after(const struct process_status *status, uint64_t time_ns)
{
	uint64_t tick_ns = 1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec boot;

	/* Since boot, with the time that the machine was suspended. */
	clock_gettime(CLOCK_BOOTTIME, &boot);
	time_ns += (uint64_t)boot.tv_sec * 1000000000ULL + (uint64_t)boot.tv_nsec - clock_now_ns();
	return status->start_time_ticks * tick_ns > time_ns;
}

void gate_follow(struct gate *gate, const struct perf_disk_task *task)
{
	struct process_status status;
	int err;

	/* Programs see for themselves, and before the id can be another process's. */
	if (!gate->is_ours)
		return;
	err = process_status_read((pid_t)task->pid, &status);
	if (task->header.type == PERF_RECORD_EXIT) {
		/* Its parent may wait for it much later, or never. */
		if (err == -ESRCH || (!err && (process_status_is_dead(&status) ||
					       has_begun_after(&status, task->time_ns))))
			gate_table_remove(gate->shared, task->pid);
	} else if (!err && task->pid != task->ppid && status.parent == (pid_t)task->ppid) {
		gate_table_add(gate->shared, task->pid);
	}
}

pid_t gate_guard_pid(const struct gate *gate)
{
	return gate->guard.pid;
}

struct clone_watch gate_clone_watch(const struct gate *gate)
{
	if (!gate || !gate->watches_clones)
		return (struct clone_watch){.requests_fd = -1};
	return (struct clone_watch){
		.requests_fd = bpf_map__fd(gate->bpf->maps.breaker_requests),
		.shared = &gate->bpf->bss->breakers,
		.gate = gate->shared,
	};
}

struct gate_shared *gate_table(const struct gate *gate)
{
	return gate->shared;
}

static const struct bpf_program *program_for(const struct gate *gate,
					     const struct record_event *event)
{
	if (event->is_syscall)
		return event->has_stack ? gate->bpf->progs.gate_syscall_stack
					: gate->bpf->progs.gate_syscall_plain;
	return event->has_stack ? gate->bpf->progs.gate_stack : gate->bpf->progs.gate_plain;
}

/*
 * Not on an event that is inherited: it would detach the program when its task ends
 * (perf_event_free_bpf_prog(), Linux 6.18).
 */
static int attach_program(struct gate *gate, const struct record_event *event)
{
	const struct bpf_program *program = program_for(gate, event);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = event->attr.config,
		.sample_period = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, task_for_programs(gate->guard.pid), -1,
			      -1, PERF_FLAG_FD_CLOEXEC);
	int *fds = fd < 0 ? NULL : reallocarray(gate->fds, gate->nr_fds + 1, sizeof(*fds));

	if (fds) {
		gate->fds = fds;
		gate->fds[gate->nr_fds++] = fd;
	}
	if (!fds || ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(program)) < 0) {
		int err = errno;

		diag_error("cannot put the gate before %s: %s; --on-overload drop does without",
			   event->name, strerror(err));
		if (fd >= 0 && !fds)
			close(fd);
		return -err;
	}
	return 0;
}

int gate_attach(struct gate *gate, const struct record_events *events)
{
	int err = 0;

	/* Where all are recorded, the programs also tell who is meant. */
	if (gate->bpf && !gate->bpf->rodata->everywhere && !gate->shared->limit_bytes)
		return 0;
	for (size_t i = 0; gate->bpf && i < events->probes.nr_events && !err; i++)
		err = attach_program(gate, &events->probes.events[i]);
	return err;
}

static void continue_targets(struct gate *gate, bool all)
{
	uint64_t longest_ns = guard_continue_targets(gate->shared, all);

	gate->paused_ns += longest_ns;
	gate->nr_pauses += longest_ns > 0;
}

void gate_open(struct gate *gate)
{
	gate->shared->closed = 1;
	gate->shared->any_stopped = 1;
	continue_targets(gate, true);
}

/* What the gate could not do, and what that means for the recording. */
static void report_limits(struct gate *gate)
{
	if (gate->shared->overdue && !gate->told_overdue) {
		gate->told_overdue = true;
		diag_warn("what is recorded cannot be written in time: processes that were held "
			  "for a second went on; what found no room is lost, and counted");
	}
	if (gate->shared->missed && !gate->told_missed) {
		gate->told_missed = true;
		diag_warn("a process went on before what it forked or mapped was set up for "
			  "recording: the first calls there may be missed");
	}
	if ((unsigned int)nr_suspensions != gate->nr_suspensions_told) {
		gate->nr_suspensions_told = (unsigned int)nr_suspensions;
		diag_note("recording goes on; what found no room meanwhile is lost, and counted");
	}
}

void gate_begin_round(struct gate *gate)
{
	/* Programs that record see the rings themselves. */
	for (size_t i = 0; gate->bpf && i < GATE_MAX_CPUS; i++)
		gate->snapshot[i] =
			__atomic_load_n(&gate->shared->cpus[i].produced, __ATOMIC_ACQUIRE);
}

/* The gate without BPF. */
static void stop_targets(struct gate *gate)
{
	for (size_t i = 0; i < GATE_MAX_TARGETS; i++) {
		struct gate_target *target = &gate->shared->targets[i];
		bool is_stopped;

		/* What somebody else has stopped is not ours to continue. */
		if (!gate_is_process(target->tgid) || target->role != GATE_RECORDED ||
		    exempt_why((pid_t)target->tgid, gate->shared->own_session, &is_stopped) ||
		    is_stopped)
			continue;
		target->stopped_ns = clock_now_ns();
		target->stopped = 1;
		gate->shared->any_stopped = 1;
		kill((pid_t)target->tgid, SIGSTOP);
	}
}

void gate_end_round(struct gate *gate, uint64_t most_drained_bytes)
{
	for (size_t i = 0; gate->bpf && i < GATE_MAX_CPUS; i++)
		if (gate->shared->cpus[i].consumed != gate->snapshot[i])
			__atomic_store_n(&gate->shared->cpus[i].consumed, gate->snapshot[i],
					 __ATOMIC_RELEASE);
	if (gate->is_ours && !gate->wants_round && !gate->shared->closed &&
	    !gate->shared->overdue && most_drained_bytes > gate->shared->limit_bytes) {
		stop_targets(gate);
		gate->wants_round = true;
		return;
	}
	gate->wants_round = false;
	continue_targets(gate, false);
	report_limits(gate);
	if (gate->shared->set_up_overdue)
		__atomic_store_n(&gate->shared->set_up_overdue, 0, __ATOMIC_SEQ_CST);
	if (gate->shared->overdue)
		__atomic_store_n(&gate->shared->overdue, 0, __ATOMIC_SEQ_CST);
}

bool gate_wants_round(const struct gate *gate)
{
	return gate->wants_round;
}

uint64_t gate_nr_pauses(const struct gate *gate)
{
	return gate->nr_pauses;
}

uint64_t gate_paused_ns(const struct gate *gate)
{
	return gate->paused_ns;
}
