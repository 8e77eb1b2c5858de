/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/analysis.h"

#include "common/diag.h"
#include "parser/analysis/counted_calls.h"
#include "parser/analysis/sample_stacks.h"
#include "parser/windows/observed_time.h"

#include <errno.h>
#include <string.h>

/* Returned by callbacks: enough was read. */
#define ENOUGH_READ 1

/* A single window with this share of the recording is all of it. */
#define OBSERVED_ALL 0.99
/* In a recording in windows, the doubt of a reader that does not know them. */
#define WINDOWS_DOUBT UINT32_MAX

/* perf record reads all rings in less time. */
#define MAX_OVERLAP_NS UINT64_C(1000000000)

/* Most files with allocating functions are known by then. Naming takes a millisecond. */
#define BEGIN_NAMING_AT 4096 /* operations */

static bool may_miss(const void *context, uint64_t from_ns, uint64_t to_ns)
{
	const struct analysis *analysis = context;

	return analysis->lost_any_time || analysis->unguarded_tasks ||
	       observed_time_has_gap(heap_tracker_observed(analysis->heaps), from_ns, to_ns) ||
	       loss_windows_overlap(analysis->loss_windows, from_ns, to_ns);
}

int analysis_init(struct analysis *analysis, const struct stack_store_options *options,
		  const struct heap_observer *observer)
{
	const struct heap_losses losses = {analysis, may_miss};
	int err;

	*analysis = (struct analysis){0};
	err = stack_store_create(options, &analysis->stacks);
	if (!err)
		err = heap_tracker_create(observer, &analysis->heaps);
	if (!err) {
		analysis->loss_windows = loss_windows_create();
		analysis->memory = memory_usage_create();
		analysis->reach = reach_create();
		err = analysis->loss_windows && analysis->memory && analysis->reach ? 0 : -ENOMEM;
		heap_tracker_set_losses(analysis->heaps, &losses);
	}
	if (err)
		diag_error("cannot analyse the recording: %s", strerror(-err));
	return err;
}

static enum loss_ring ring_of(const struct perf_event_desc *event)
{
	return perf_event_is_operation(event) ? LOSS_RING_PROBES : LOSS_RING_OTHERS;
}

/* Notes a record that is not a sample. */
static void note_record(struct analysis *analysis, const struct perf_origin *origin)
{
	loss_windows_note(analysis->loss_windows, LOSS_RING_OTHERS, origin->cpu, origin->time_ns);
}

static bool is_enough(const struct analysis *analysis, const struct perf_origin *origin)
{
	return (analysis->until_ns && analysis->start_ns && origin->time_ns > analysis->start_ns &&
		origin->time_ns - analysis->start_ns > analysis->until_ns) ||
	       (analysis->until_sequence && origin->sequence > analysis->until_sequence);
}

/*
 * The same for an exec or a fork that follows the last operation: it may end blocks of that
 * operation, or tell of an exit (process_ends.h).
 */
static bool ends_before(const struct analysis *analysis, const struct perf_origin *origin)
{
	return is_enough(analysis, origin) ||
	       (analysis->until_sequence && origin->sequence == analysis->until_sequence);
}

static int pass_ticks(struct analysis *analysis, uint64_t time_ns)
{
	struct analysis_ticks *ticks = &analysis->ticks;
	uint64_t nr, end_ns = analysis->end_ns;
	int err;

	if (!analysis->start_ns || time_ns <= analysis->start_ns)
		return 0;
	nr = (time_ns - analysis->start_ns) / ticks->every_ns;
	if (nr <= ticks->nr)
		return 0;
	ticks->nr = nr;
	ticks->at_ns = nr * ticks->every_ns;
	analysis->end_ns = analysis->start_ns + ticks->at_ns;
	err = ticks->on_tick(ticks->context);
	if (err)
		return err;
	ticks->at_ns = 0;
	analysis->end_ns = end_ns;
	return 0;
}

/* The recording goes on until @time_ns at least. */
static inline int pass_time(struct analysis *analysis, uint64_t time_ns)
{
	return analysis->ticks.every_ns ? pass_ticks(analysis, time_ns) : 0;
}

static int on_mark(struct analysis *analysis, const struct perf_sample *sample)
{
	const struct perf_event_desc *event = sample->event;
	const struct interval_mark mark = {sample->mark_number,
					   event->is_probe_mark ? sample->mark_text : NULL};
	int err;

	/* leakrec's own marks do not pass through a ring. */
	if (event->is_probe_mark)
		loss_windows_note(analysis->loss_windows, LOSS_RING_PROBES, sample->origin.cpu,
				  sample->origin.time_ns);
	if (!analysis->intervals)
		return 0;
	err = heap_tracker_settle_exits(analysis->heaps);
	intervals_mark(analysis->intervals, sample->origin.time_ns, &mark);
	return err;
}

/* An allocation takes the stack of its return. */
static bool needs_stack(const struct perf_event_desc *event)
{
	if (event->syscall)
		return event->is_syscall_exit ? event->syscall->gives : event->syscall->takes;
	return probe_point_is_return(event->point) || event->schema->effect == RESOURCE_AT_ENTRY ||
	       event->schema->effect == HEAP_RELEASE || event->schema->effect == HEAP_REALLOC;
}

/*
 * True if the sample's stack has all frames, and no open call of its thread returns to one of them:
 * longjmp() has left these calls.
 */
static bool is_outside_open_calls(const struct analysis *analysis, const struct perf_sample *sample,
				  uint32_t stack_id)
{
	size_t nr = stack_store_nr_frames(analysis->stacks, stack_id);
	struct stack_frame frame = {0};
	uint64_t inner = 0;

	if (!heap_tracker_has_open_calls(analysis->heaps, sample->origin.tid) ||
	    (!sample->has_dump && !analysis->input.command.unwinds) || nr < 2)
		return false;
	for (size_t i = 0; i < nr; i++, inner = frame.address)
		if (stack_store_frame(analysis->stacks, stack_id, i, &frame) ||
		    heap_tracker_has_frame(analysis->heaps, sample->origin.tid, inner,
					   frame.address))
			return false;
	return frame.address > STACK_LAST_MARK;
}

static int on_syscall(struct analysis *analysis, const struct perf_sample *sample)
{
	const struct perf_event_desc *event = sample->event;
	enum mapping_owner owner = MAPPING_OWNER_UNKNOWN;
	uint32_t stack_id = STACK_NONE;
	int err = 0;

	if (sample->has_dump || needs_stack(event))
		err = sample_stacks_add_syscall(analysis->stacks, sample,
						&analysis->incomplete_chains, &stack_id);
	if (err)
		return err;
	analysis->has_mappings |= (event->syscall->groups & SYSCALL_MAPPINGS) != 0;
	if (analysis->ranks_own_mappings)
		owner = MAPPING_IS_RANKED;
	else if (event->is_syscall_exit && event->syscall->gives &&
		 (event->syscall->groups & SYSCALL_MAPPINGS))
		err = mapping_owners_find(&analysis->mapping_owners, analysis->stacks, stack_id,
					  &owner);
	if (!err && owner == MAPPING_IS_PROGRAMS &&
	    is_outside_open_calls(analysis, sample, stack_id))
		owner = MAPPING_IS_SURELY_PROGRAMS;
	return err ? err : heap_tracker_syscall(analysis->heaps, sample, stack_id, owner);
}

static void begin(struct analysis *analysis, uint64_t time_ns)
{
	if (analysis->start_ns)
		return;
	analysis->start_ns = time_ns;
	if (analysis->intervals)
		intervals_begin(analysis->intervals, time_ns);
}

/* leakrec recorded at @time_ns. */
static void set_known_end(struct analysis *analysis, uint64_t time_ns)
{
	if (time_ns > analysis->known_end_ns)
		analysis->known_end_ns = time_ns;
	if (analysis->known_end_ns > analysis->end_ns)
		analysis->end_ns = analysis->known_end_ns;
	heap_tracker_time(analysis->heaps, time_ns);
}

/* The current file begins at @time_ns, and follows the one before without a gap. */
static void follow_file(struct analysis *analysis, uint64_t time_ns)
{
	analysis->file.start_ns = time_ns;
	if (analysis->input.command.has_sizes)
		heap_tracker_limit_sizes(analysis->heaps, &analysis->input.command.sizes);
}

/* The current file begins with an operation at @time_ns. Returns 0 or -EXDEV (reported). */
static int begin_file(struct analysis *analysis, uint64_t time_ns)
{
	uint64_t pause_ns = time_ns > analysis->end_ns ? time_ns - analysis->end_ns : 0;
	uint64_t before_ns = analysis->file.start_before_ns;

	follow_file(analysis, time_ns);
	if (!before_ns)
		return 0;
	/* Consecutive files may overlap by the contents of the rings. */
	if (time_ns < before_ns && before_ns - time_ns > MAX_OVERLAP_NS) {
		diag_error("%s begins before the file before it: give the files in the order in "
			   "which they were recorded",
			   analysis->file.path);
		return -EXDEV;
	}
	if (pause_ns <= analysis->file.longest_pause_ns)
		return 0;
	loss_windows_add_gap(analysis->loss_windows, analysis->end_ns, time_ns - 1);
	analysis->nr_gaps++;
	if (pause_ns > analysis->longest_gap_ns)
		analysis->longest_gap_ns = pause_ns;
	return 0;
}

/* leakrec was recording at that time. Each file of a session has its own bounds. */
static int note_known_time(struct analysis *analysis, const struct perf_origin *origin)
{
	int err = 0;

	if (ends_before(analysis, origin))
		return ENOUGH_READ;
	if (!analysis->file.start_ns)
		err = begin_file(analysis, origin->time_ns);
	if (!err)
		err = pass_time(analysis, origin->time_ns);
	if (err)
		return err;
	begin(analysis, origin->time_ns);
	set_known_end(analysis, origin->time_ns);
	return 0;
}

/* leakrec's recording begins or ends. */
static int on_bound(struct analysis *analysis, const struct perf_sample *sample)
{
	int err = note_known_time(analysis, &sample->origin);

	if (!err && !sample->mark_number)
		memory_usage_begin(analysis->memory);
	return err;
}

/* The sample also shows how long leakrec recorded, if it was killed. */
static int on_memory(struct analysis *analysis, const struct perf_sample *sample)
{
	int err = note_known_time(analysis, &sample->origin);

	return err ? err : memory_usage_add(analysis->memory, sample, analysis->heaps);
}

static int on_reach(struct analysis *analysis, const struct perf_sample *sample)
{
	int err = note_known_time(analysis, &sample->origin);

	if (!err && sample->event->is_unseen)
		return reach_add_unseen(analysis->reach, sample->origin.pid, sample->origin.time_ns,
					sample->mark_text);
	if (!err && sample->event->is_holder)
		return reach_add_holder(analysis->reach, sample);
	return err ? err : reach_add(analysis->reach, sample);
}

/* A segment is missing: nothing is known from its beginning on. */
static int close_window(struct analysis *analysis)
{
	const struct perf_sample close = {.origin.time_ns = analysis->end_ns};

	if (!heap_tracker_observed(analysis->heaps)->is_open)
		return 0;
	return heap_tracker_window(analysis->heaps, &close);
}

/*
 * A segment begins. The first one that is read has the state with which it begins; of the next one,
 * that is known. Between two segments that follow each other, nothing is missing.
 */
static int on_segment(struct analysis *analysis, const struct perf_sample *sample)
{
	uint32_t number = (uint32_t)sample->mark_number, last = analysis->segments.last;
	bool is_first = !last;
	int err = 0;

	if (last && number <= last) {
		diag_error("%s: segment %u comes after segment %u: give the files in the order in "
			   "which they were recorded",
			   analysis->file.path, number, last);
		return -EXDEV;
	}
	if (number == last + 1 && !is_first && !analysis->file.start_ns)
		follow_file(analysis, sample->origin.time_ns);
	else if (!is_first && !analysis->file.start_ns)
		analysis->file.longest_pause_ns = 0;
	if (!is_first && number != last + 1)
		err = close_window(analysis);
	if (!err)
		err = note_known_time(analysis, &sample->origin);
	if (err)
		return err;
	analysis->segments.last = number;
	analysis->segments.takes_state = is_first && number > 1;
	if (!is_first)
		return 0;
	analysis->segments.first = number;
	analysis->segments.started_ns = sample->args[SEGMENT_STARTED];
	analysis->segments.one_of = sample->args[SEGMENT_ONE_OF];
	if (number == 1)
		return 0;
	memory_usage_begin(analysis->memory);
	analysis->segments.lost_before = sample->args[SEGMENT_LOST];
	analysis->segments.without_stack = sample->args[SEGMENT_WITHOUT_STACK];
	analysis->segments.out_of_order = sample->args[SEGMENT_OUT_OF_ORDER];
	/* A release may have been lost then, or leakrec may have met it too early. */
	loss_windows_add(analysis->loss_windows, LOSS_RING_PROBES, UINT32_MAX,
			 sample->origin.time_ns,
			 analysis->segments.lost_before + analysis->segments.out_of_order);
	return 0;
}

/* Blocks from before a segment. */
static int on_held(struct analysis *analysis, const struct perf_sample *sample)
{
	uint32_t stack_id;
	int err;

	if (!analysis->segments.takes_state)
		return 0;
	err = stack_store_add_callchain(analysis->stacks, sample->origin.pid, sample->callchain,
					sample->nr_callchain, &stack_id);
	return err ? err : heap_tracker_carry(analysis->heaps, sample, stack_id);
}

/* A window, what happened between windows, or a look at a block that outlived one. */
static int on_window(struct analysis *analysis, const struct perf_sample *sample)
{
	int err = note_known_time(analysis, &sample->origin);

	if (!err && sample->event->is_calls)
		return counted_calls_add(&analysis->calls, analysis->stacks, sample,
					 analysis->start_ns);
	if (!err && sample->event->is_look)
		return heap_tracker_look(analysis->heaps, sample);
	return err ? err : heap_tracker_window(analysis->heaps, sample);
}

static int note_operation(struct analysis *analysis, const struct perf_origin *origin)
{
	int err = 0;

	if (!analysis->file.start_ns)
		err = begin_file(analysis, origin->time_ns);
	else if (origin->time_ns > analysis->end_ns &&
		 origin->time_ns - analysis->end_ns > analysis->file.longest_pause_ns)
		analysis->file.longest_pause_ns = origin->time_ns - analysis->end_ns;
	if (!err)
		err = pass_time(analysis, origin->time_ns);
	if (err)
		return err;
	begin(analysis, origin->time_ns);
	if (origin->time_ns > analysis->end_ns)
		analysis->end_ns = origin->time_ns;
	return origin->sequence == BEGIN_NAMING_AT ? stack_store_begin_naming(analysis->stacks) : 0;
}

/* A sample that leakrec itself has written, or one of LEAK_MARK(). */
static int on_own_sample(struct analysis *analysis, const struct perf_sample *sample)
{
	const struct perf_event_desc *event = sample->event;

	if (event->is_doubt && sample->mark_number == WINDOWS_DOUBT)
		return 0;
	if (event->is_doubt) {
		analysis->may_miss = true;
		analysis_note_unguarded(analysis, sample->mark_number);
		return 0;
	}
	if (event->is_bound)
		return on_bound(analysis, sample);
	if (event->is_memory)
		return on_memory(analysis, sample);
	if (event->is_segment)
		return on_segment(analysis, sample);
	if (event->is_held)
		return on_held(analysis, sample);
	if (event->is_reach || event->is_holder)
		return on_reach(analysis, sample);
	if (event->is_window || event->is_look || event->is_calls)
		return on_window(analysis, sample);
	return on_mark(analysis, sample);
}

static int on_sample(void *context, const struct perf_sample *sample)
{
	struct analysis *analysis = context;
	const struct perf_event_desc *event = sample->event;
	uint32_t stack_id = STACK_NONE;
	int err = 0;

	if (event->is_mark)
		return on_own_sample(analysis, sample);
	loss_windows_note(analysis->loss_windows, ring_of(event), sample->origin.cpu,
			  sample->origin.time_ns);
	if (perf_event_is_operation(event) && is_enough(analysis, &sample->origin))
		return ENOUGH_READ;
	if (event->schema && needs_stack(event))
		err = sample_stacks_add_call(analysis->stacks, sample, &analysis->incomplete_chains,
					     &stack_id);
	if (!err && perf_event_is_operation(event))
		err = note_operation(analysis, &sample->origin);
	if (!err && event->syscall)
		return on_syscall(analysis, sample);
	return err ? err : heap_tracker_sample(analysis->heaps, sample, stack_id);
}

static int on_mmap(void *context, const struct perf_mmap_record *record)
{
	struct analysis *analysis = context;

	note_record(analysis, &record->origin);
	return record->executable ? stack_store_map(analysis->stacks, &record->mapping) : 0;
}

static int on_fork(void *context, const struct perf_task_record *record)
{
	struct analysis *analysis = context;
	int err = 0;

	/* perf synthesizes records of all tasks when it begins another file. */
	if (!record->origin.time_ns &&
	    heap_tracker_has_thread(analysis->heaps, record->pid, record->tid))
		return 0;
	note_record(analysis, &record->origin);
	if (record->origin.time_ns && ends_before(analysis, &record->origin))
		return ENOUGH_READ;
	if (record->pid != record->ppid)
		memory_usage_restart(analysis->memory, record->pid);
	if (record->pid != record->ppid)
		err = stack_store_fork(analysis->stacks, record->pid, record->ppid);
	return err ? err : heap_tracker_fork(analysis->heaps, record);
}

static int on_exit_task(void *context, const struct perf_task_record *record)
{
	struct analysis *analysis = context;

	int err;

	note_record(analysis, &record->origin);
	err = heap_tracker_exit(analysis->heaps, record);
	/* The first thread's exit is not the process's end. */
	if (!err && heap_tracker_life(analysis->heaps, record->pid, UINT64_MAX).end_ns)
		stack_store_exit(analysis->stacks, record->pid);
	return err;
}

static int on_comm(void *context, const struct perf_comm_record *record)
{
	struct analysis *analysis = context;

	note_record(analysis, &record->origin);
	if (record->exec && ends_before(analysis, &record->origin))
		return ENOUGH_READ;
	if (record->exec) {
		stack_store_exec(analysis->stacks, record->pid);
		memory_usage_restart(analysis->memory, record->pid);
	}
	return heap_tracker_comm(analysis->heaps, record);
}

static int on_lost(void *context, const struct perf_lost_record *record)
{
	struct analysis *analysis = context;

	const struct perf_event_desc *event = record->event;
	uint32_t cpu = UINT32_MAX;

	analysis->lost += record->lost;
	if (!event || !record->origin.time_ns) {
		analysis->lost_any_time += record->lost;
		return 0;
	}
	if (event->attr.sample_type & PERF_SAMPLE_CPU)
		cpu = record->origin.cpu;
	loss_windows_add(analysis->loss_windows, ring_of(event), cpu, record->origin.time_ns,
			 record->lost);
	return 0;
}

static int on_build_id(void *context, const char *path, const uint8_t *build_id, uint8_t size)
{
	struct analysis *analysis = context;

	return stack_store_set_build_id(analysis->stacks, path, build_id, size);
}

static int on_name(void *context, const char *path, uint64_t file_offset, const char *function,
		   uint64_t function_offset)
{
	struct analysis *analysis = context;

	return stack_store_name_place(analysis->stacks, path, file_offset, function,
				      function_offset);
}

struct perf_consumer analysis_consumer(struct analysis *analysis)
{
	return (struct perf_consumer){
		.context = analysis,
		.resources = &analysis->resources,
		.on_sample = on_sample,
		.block_prefetch = heap_tracker_block_prefetch(analysis->heaps),
		.on_mmap = on_mmap,
		.on_fork = on_fork,
		.on_exit = on_exit_task,
		.on_comm = on_comm,
		.on_lost = on_lost,
		.on_build_id = on_build_id,
		.on_name = on_name,
	};
}

int analysis_finish(struct analysis *analysis, int err)
{
	int finish_err = heap_tracker_finish(analysis->heaps);

	/* At an earlier operation, only processes that lived then held anything. */
	if (!finish_err && analysis->until_sequence)
		finish_err = heap_tracker_forget_exited(analysis->heaps);
	analysis->was_enough = err == ENOUGH_READ;
	/* Without leakrec's bounds, the last event before the moment is the end. */
	if (analysis->was_enough && analysis->until_ns && analysis->known_end_ns)
		set_known_end(analysis, analysis->start_ns + analysis->until_ns);
	if (analysis->was_enough)
		err = 0;
	if (err == -ENOMEM || finish_err)
		diag_error("cannot analyse the recording: out of memory");
	return err ? err : finish_err;
}

double analysis_observed_share(const struct analysis *analysis)
{
	const struct observed_time *time = heap_tracker_observed(analysis->heaps);
	uint64_t length_ns =
		analysis->end_ns > analysis->start_ns ? analysis->end_ns - analysis->start_ns : 0;

	if (!time->nr || !length_ns)
		return 1;
	return (double)(observed_time_before(time, analysis->end_ns) -
			observed_time_before(time, analysis->start_ns)) /
	       (double)length_ns;
}

bool analysis_is_in_windows(const struct analysis *analysis)
{
	const struct observed_time *time = heap_tracker_observed(analysis->heaps);

	/* The only window may open a moment after the recording's beginning. */
	return time->nr && (time->nr > 1 || analysis_observed_share(analysis) < OBSERVED_ALL);
}

uint64_t analysis_unwind_failures(const struct analysis *analysis)
{
	return stack_store_unwind_failures(analysis->stacks) + analysis->incomplete_chains;
}

void analysis_deinit(struct analysis *analysis)
{
	heap_tracker_destroy(analysis->heaps);
	stack_store_destroy(analysis->stacks);
	loss_windows_destroy(analysis->loss_windows);
	memory_usage_destroy(analysis->memory);
	reach_destroy(analysis->reach);
	call_counts_deinit(&analysis->calls);
	resource_schemas_deinit(&analysis->resources);
	mapping_owners_deinit(&analysis->mapping_owners);
	*analysis = (struct analysis){0};
}
