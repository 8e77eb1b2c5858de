/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/session_start.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/proc/process_namespace.h"
#include "common/proc/process_stat.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "recorder/backpressure/exempt_processes.h"
#include "recorder/events/attach.h"
#include "recorder/output/perf_features.h"
#include "recorder/output/synthesize.h"
#include "recorder/session/privileges.h"
#include "recorder/session/session_signals.h"
#include "recorder/targets/system_wide.h"

#include <errno.h>
#include <inttypes.h>
#include <perf/evlist.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * How many files fork_follow and context_breakers may open. The limit has to be raised now: the
 * right to do so is dropped.
 */
#define FOLLOW_FDS 65536

/* Up to 340 MiB. */
#define MAX_HELD_BLOCKS ((size_t)4 << 20)

/* The longest pause between samples of memory: with a live parser, and in what --keep keeps. */
#define LIVE_MEMORY_NS	    UINT64_C(60000000000)
#define KEPT_MEMORY_SAMPLES 24

/* Links the recording programs to the processes. */
static int attach_programs(struct session *session, const struct probe_set *const *sets,
			   size_t nr_sets)
{
	int err = bpf_recorder_plan(session->recorder, sets, nr_sets, &session->options->config,
				    &session->events);

	record_events_raise_fd_limit(FOLLOW_FDS);
	fork_follow_init(&session->fork_follow, session->recorder, session->backpressure);
	/* Each window has links of its own. */
	if (!err && session->options->budget)
		windows_init(&session->windows, session->recorder, session->options->budget);
	for (size_t i = 0; i < session->nr_pids && !err && !session->options->budget; i++) {
		err = session_check_signals(session);
		if (!err)
			err = bpf_recorder_link(session->recorder, session->pids[i]);
	}
	/* One link covers all processes, also their children. */
	if (!err && session_is_system_wide(session))
		err = bpf_recorder_link_all(session->recorder);
	dlopen_watch_init(&session->dlopen_watch, session->recorder, session->backpressure,
			  session->search, &session->leases);
	session->dlopen_watch.operators = session->options->mismatch;
	if (session->options->budget)
		session->dlopen_watch.share = session->options->budget / 10;
	return err;
}

static int watch_clones(struct session *session)
{
	const struct clone_watch watch = backpressure_clone_watch(session->backpressure);

	return context_breakers_watch(&session->events.breakers, &watch);
}

/* Without those that had changed, and those that the kernel did not let us probe. */
static size_t nr_recorded_files(const struct session *session)
{
	size_t nr_left_out = session->nr_changed + session->events.nr_left_out;

	if (session->recorder)
		nr_left_out += session->recorder->nr_unlinked;
	return session->probes.nr_files + session->own_probes.nr_files - nr_left_out;
}

static void report_start(const struct session *session)
{
	char name[PROCESS_NAME_MAX];

	if (session_is_system_wide(session)) {
		system_wide_report_start(session->options->cgroup, session->nr_found,
					 nr_recorded_files(session));
		return;
	}
	process_namespace_format_name(session->pids[0], name);
	if (session->options->command)
		diag_note("recording %s, %s", session->options->command[0], name);
	else if (session->nr_pids == 1)
		diag_note("recording %s; Ctrl-C ends it", name);
	else
		diag_note("recording %zu processes; Ctrl-C ends it", session->nr_pids);
}

/*
 * Rejects a process that has got the id of one that ended during set-up. Call it when programs and
 * events are attached: they stay with the process that had the id then.
 */
static int check_identities(const struct session *session)
{
	struct process_stat status;

	for (size_t i = 0; i < session->nr_pids && session->start_ticks; i++) {
		if (process_stat_read(session->pids[i], &status) ||
		    status.start_time_ticks == session->start_ticks[i])
			continue;
		diag_error("cannot attach: process %d has ended, and another one has its id now; "
			   "look for the right process, and start leakrec again",
			   (int)session->pids[i]);
		return -ESRCH;
	}
	return 0;
}

/*
 * Adds the processes to the target table. Done before the events are opened: backpressure then
 * knows the children that inherit some.
 */
static int add_targets(struct session *session)
{
	size_t nr = 0;

	for (size_t i = 0; i < session->nr_pids && session->backpressure; i++)
		nr += !backpressure_add_target(session->backpressure, session->pids[i],
					       session->recorder != NULL);
	session->nr_without_entry = nr;
	if (!nr)
		return 0;
	/* There, what is not in the table gets no probes. */
	if (session->options->budget ||
	    (session->recorder && session->recorder->by == RECORD_BY_SINGLE)) {
		diag_error("cannot record so many processes: the table has no room for %zu of "
			   "them; name fewer, or record %s",
			   nr,
			   session->options->budget ? "without --budget" : "with --perf-events");
		return -E2BIG;
	}
	diag_warn(
		"%zu process%s no room in the table: %s", nr, quantity_word(nr, " has", "es have"),
		session->recorder
			? "their children and later files are not recorded, and they are not stopped"
			: "they are not stopped, so their events may be lost");
	return 0;
}

/*
 * Takes leases on all files. Among those of all processes, some may have changed meanwhile; but
 * something must be left.
 */
static int take_leases(struct session *session)
{
	struct probe_set *const sets[] = {&session->probes, &session->own_probes};
	size_t *nr_given_up = session_is_system_wide(session) ? &session->nr_changed : NULL;
	size_t nr_files = 0;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sets) && !err; i++) {
		err = file_leases_take_all(&session->leases, sets[i], nr_given_up);
		nr_files += sets[i]->nr_files;
	}
	if (err || !session->nr_changed || session->nr_changed < nr_files)
		return err;
	diag_error("cannot record: no other file is left; try again");
	return -ESTALE;
}

/* Attaches programs or perf events to the processes. They record nothing yet. */
static int attach(struct session *session)
{
	const struct session_options *options = session->options;
	const struct probe_set *sets[] = {&session->probes, &session->own_probes};
	int err = take_leases(session);

	if (err)
		return err;
	err = add_targets(session);
	if (err)
		return err;
	err = exempt_processes_exempt(session->backpressure, options->output, session->pids,
				      options->nr_pids ? session->nr_pids : 0);
	if (err)
		return err;
	err = attach_events(&session->events, sets, session->recorder ? 0 : ARRAY_SIZE(sets),
			    &options->config, session->pids, session->nr_pids);
	if (err)
		return err;
	if (session->recorder)
		err = attach_programs(session, sets, ARRAY_SIZE(sets));
	else if (session->backpressure)
		err = backpressure_attach(session->backpressure, &session->events);
	if (!err && session->events.breakers.are_needed)
		err = watch_clones(session);
	return err ? err : check_identities(session);
}

static int prepare_unwinder(struct session *session)
{
	const struct record_config *config = &session->options->config;
	int err;

	if (!session->unwinder)
		return 0;
	err = live_unwinder_set_events(session->unwinder, &session->events);
	if (!err && session->recorder)
		live_unwinder_set_stack_bases(session->unwinder,
					      bpf_recorder_stack_bases(session->recorder),
					      record_config_dump_bytes(config, true));
	return err;
}

#define SIZES_BYTES 64 /* --size=MIN..MAX */

/*
 * The tool's command line with "--" before the command, so that readers know where the tool's own
 * options end. They do not know abbreviated options: those by which only a part is recorded are
 * written in full once more. The caller frees it. NULL: out of memory.
 */
static char **command_line(const struct session_options *options, char sizes[SIZES_BYTES],
			   int *ret_argc)
{
	static char end[] = "--", filter[] = "--filter=...", narrow[] = "--narrow=...";
	size_t nr = (size_t)options->argc;
	size_t nr_before = options->command ? (size_t)(options->command - options->argv) : nr;
	size_t nr_own = nr_before;
	char **words = calloc(nr + 4, sizeof(*words));

	if (!words)
		return NULL;
	memcpy(words, options->argv, nr_own * sizeof(*words));
	if (strcmp(words[nr_own - 1], end) == 0)
		nr_own--;
	if (options->config.nr_filters)
		words[nr_own++] = filter;
	if (options->config.at_calls)
		words[nr_own++] = narrow;
	if (options->config.has_sizes) {
		snprintf(sizes, SIZES_BYTES, "--size=%" PRIu64 "..%" PRIu64,
			 options->config.sizes.min_bytes, options->config.sizes.max_bytes);
		words[nr_own++] = sizes;
	}
	if (options->command) {
		words[nr_own++] = end;
		memcpy(words + nr_own, options->command, (nr - nr_before) * sizeof(*words));
	}
	*ret_argc = (int)(nr - nr_before + nr_own);
	return words;
}

/*
 * True if a process may hold blocks of an allocator whose heap leakscan cannot read. Late files are
 * not known yet.
 */
static bool has_other_allocator(const struct probe_set *set)
{
	for (size_t i = 0; i < set->nr_files; i++)
		if (!set->files[i].has_size_word && !set->files[i].has_resources)
			return true;
	return false;
}

/*
 * Has the blocks noted that a scan, looks between windows or later segments will need. Returns 0 or
 * a negative errno.
 */
static int note_held_blocks(struct session *session)
{
	const struct record_group *probes = &session->events.probes;
	int err;

	bool for_scan = session->options->scan && (has_other_allocator(&session->probes) ||
						   has_other_allocator(&session->own_probes));

	if (!for_scan && !session->options->budget && !session->segments)
		return 0;
	err = held_blocks_create(session->segments ? segments_max_blocks(session->segments)
						   : MAX_HELD_BLOCKS,
				 &session->held);
	if (!err && (session->segments || (session->options->budget && !session->options->scan)))
		err = held_blocks_keep_stacks(session->held);
	for (size_t i = 0; i < probes->nr_events && !err; i++) {
		const struct record_event *event = &probes->events[i];
		_cleanup_free_ char *format = NULL;

		if (event->attr.type != PERF_TYPE_TRACEPOINT)
			continue;
		format = perf_features_event_format(event);
		err = format ? held_blocks_add_event(session->held, (uint16_t)event->attr.config,
						     event->name, format)
			     : -errno;
	}
	return err;
}

static int begin_output(struct session *session)
{
	const struct session_options *options = session->options;
	_cleanup_free_ char **words = NULL;
	char sizes[SIZES_BYTES];
	int nr_words = 0;
	int err = marks_describe(&session->events, &options->config);

	if (!err)
		err = own_samples_describe(&session->events, &options->config, OWN_RECORDING);
	if (!err)
		err = own_samples_describe(&session->events, &options->config, OWN_MEMORY);
	if (!err && options->scan)
		err = own_samples_describe(&session->events, &options->config, OWN_REACH);
	if (!err && options->scan)
		err = own_samples_describe(&session->events, &options->config, OWN_HOLDER);
	if (!err && options->budget)
		err = own_samples_describe(&session->events, &options->config, OWN_WINDOW);
	if (!err && options->budget)
		err = own_samples_describe(&session->events, &options->config, OWN_LOOK);
	if (!err && options->budget)
		err = own_samples_describe(&session->events, &options->config, OWN_CALLS);
	if (!err && options->scan)
		err = own_samples_describe(&session->events, &options->config, OWN_UNSEEN);
	if (!err)
		err = note_held_blocks(session);
	if (!err && session->segments)
		err = segments_describe(&session->events, &options->config);
	if (!err) {
		words = command_line(options, sizes, &nr_words);
		err = words ? 0 : -ENOMEM;
	}
	if (err == -ENOMEM)
		diag_error("cannot begin the recording: out of memory");
	if (err)
		return err;
	if (session->segments)
		segments_watch(session->segments, session->writer);
	/* The threads that write get the ordinary priority. */
	privileges_restore_priority(session->priority_before);
	if (session->segments)
		err = segments_start(session->segments, session->held);
	if (!err)
		err = perf_writer_begin(session->writer, &session->events, nr_words, words);
	privileges_raise_priority();
	return err;
}

/*
 * Writes records of what exists already, from /proc. The side events record what happens from now
 * on.
 */
static int synthesize_processes(struct session *session)
{
	bool with_data = record_config_keeps_dumps(&session->options->config);
	int err;

	err = record_events_enable(&session->events.side);
	if (!err && session_is_system_wide(session)) {
		/* All processes, not just those in the cgroup: others may enter it later. */
		err = process_list_add_all(&session->all_processes);
		session->pids = session->all_processes.pids;
		session->nr_pids = session->all_processes.nr;
	}
	for (size_t i = 0; i < session->nr_pids && !err; i++) {
		err = session_check_signals(session);
		if (!err)
			err = synthesize_process(session->writer, session->pids[i], with_data,
						 &session->build_ids, session->unwinder);
	}
	return err;
}

/*
 * Time passes for the live parser with what is recorded: it writes no state while nothing is. And
 * what is kept of a recording needs some samples.
 */
static uint64_t longest_memory_pause_ns(const struct session_options *options)
{
	uint64_t longest_ns = options->keep.age_ns / KEPT_MEMORY_SAMPLES;

	if (options->live_parser && (!longest_ns || longest_ns > LIVE_MEMORY_NS))
		longest_ns = LIVE_MEMORY_NS;
	return longest_ns;
}

/* Samples the processes' memory as it is where the recording begins. */
static int begin_memory(struct session *session)
{
	const struct record_config *config = &session->options->config;
	struct process_list members = {0};
	const pid_t *pids = session->pids;
	size_t nr = session->nr_pids;
	int err = 0;

	session->memory.longest_ns = longest_memory_pause_ns(session->options);
	if (config->scope == RECORD_CGROUP) {
		err = process_list_add_cgroup(&members, config->cgroup_fd);
		pids = members.pids;
		nr = members.nr;
	}
	for (size_t i = 0; i < nr && !err; i++)
		memory_samples_add(&session->memory, pids[i]);
	process_list_deinit(&members);
	return err ? err : memory_samples_write(&session->memory, session->writer);
}

/*
 * Lets the events flow. The start is noted last: samples from before it are dropped
 * (ring_reader.c).
 */
static int enable(struct session *session)
{
	int err;

	if (session->backpressure)
		backpressure_begin(session->backpressure);
	err = record_events_enable(&session->events.probes);
	if (err)
		return err;
	for (size_t i = 0; i < session->nr_pids && session->recorder; i++) {
		dlopen_watch_know_process(&session->dlopen_watch, session->pids[i]);
		if (!session->options->budget)
			fork_follow_know_process(&session->fork_follow, session->pids[i]);
	}
	if (session->recorder) {
		bpf_recorder_start(session->recorder);
		/* The first thread of a process may have ended since that was linked. */
		fork_follow_serve(&session->fork_follow);
	}
	session->start_ns = clock_now_ns();
	marks_start(&session->marks, session->start_ns, session_end_ns(session),
		    session_is_system_wide(session) ? getpid() : session->pids[0]);
	if (session->options->status)
		live_status_set(&session->options->status->start_ns, session->start_ns);
	err = session_write_bound(session, session->start_ns, false);
	if (!err && session->segments)
		err = segments_begin(session->segments, session->marks.pid, session->start_ns);
	if (!err && session->options->budget)
		err = windows_start(
			&session->windows,
			&(struct windows_of){
				.writer = session->writer,
				.held = session->held,
				.keeps_held = session->options->scan,
				.pid = session->marks.pid,
				.watchdog = backpressure_watchdog_pid(session->backpressure),
				.live_parser = session->options->live_parser,
			});
	return err ? err : begin_memory(session);
}

static bool has_marks(const struct record_group *group)
{
	for (size_t i = 0; i < group->nr_events; i++)
		if (group->events[i].mark)
			return true;
	return false;
}

/*
 * Raises limits while that is permitted, then drops all capabilities but those that recording
 * needs: to continue stopped processes, to open events at
 * first forks, and to read the code of processes for unwinding and for new allocators, and the
 * texts of their marks.
 */
static void limit_rights(const struct session *session)
{
	bool opens_events = session->recorder || session->events.breakers.are_needed;

	if (session->events.breakers.are_needed)
		record_events_raise_fd_limit(FOLLOW_FDS);
	privileges_drop(&(struct privileges_kept){
		.kill = session->backpressure != NULL,
		.perfmon = opens_events,
		.read_code = session->unwinder || session->recorder ||
			     has_marks(&session->events.probes),
		.read_ends = flight_watches_ends(&session->flight),
	});
}

static int start_flight(struct session *session)
{
	const struct session_options *options = session->options;
	const struct flight_of of = {
		.segments = session->segments,
		.limits = &options->keep,
		.memory = &session->memory,
		.when = options->when,
		.nr_when = options->nr_when,
		.signal_fd = session->heap_scan.signal_fd,
		.cgroup_fd = options->config.cgroup_fd,
		.pid = session->pids[0],
	};

	return flight_start(&session->flight, &of);
}

int session_start(struct session *session)
{
	static int (*const steps[])(struct session *) = {
		attach, prepare_unwinder, begin_output, synthesize_processes, enable,
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(steps) && !err; i++)
		err = steps[i](session);
	if (err)
		return err;
	launch_release(&session->command);
	if (session->options->scan)
		err = heap_scan_prepare(&session->heap_scan, session->pids, session->nr_pids,
					session->priority_before,
					session->options->scan_pause_limit_ns, session->held);
	if (err)
		return err;
	if (session->options->keep.in_memory)
		err = start_flight(session);
	if (err)
		return err;
	limit_rights(session);
	privileges_ease_priority(session->priority_before);
	report_start(session);
	if (session->options->manager)
		service_manager_set_ready(session->options->manager);
	return 0;
}
