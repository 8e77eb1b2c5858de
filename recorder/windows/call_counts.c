/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/windows/call_counts.h"

#include "common/clock.h"
#include "common/schema/call_counts.h"
#include "probes/calls/call_plan.h"
#include "recorder/held/held_counts.h"
#include "recorder/output/own_samples.h"
#include "recorder/processes/apart.h"
#include "recorder/processes/changed_code.h"
#include "recorder/programs/bpf_windows.h"
#include "recorder/target_table/target_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHOOSE_NS	   10000000000ULL
#define MIN_BLOCKS	   2 /* that have lasted */
#define MAX_TRIED	   256
#define MAX_HOT		   64
#define MAX_CALLS_A_SECOND 1000
#define MOST_OF_BUDGET	   0.25
#define NR_AT_ONCE	   4 /* calls that a short window may see of a function that is rare */
/* Blocks that show that a function which was never called meanwhile is not what allocates them. */
#define MIN_UNCALLED_BLOCKS 4

/* Counts 0 and up are of functions that are counted; those behind them are of a trial. */
#define NR_COUNTED     HELD_MAX_COUNTED
#define FIRST_OF_TRIAL NR_COUNTED

_Static_assert(FIRST_OF_TRIAL + LOOKS_MAX_FRAMES <= BPF_MAX_COUNTED, "all have a count");

/* A process, as it was when a stack of it was chosen. */
struct counted_process {
	pid_t pid; /* 0: none */
	uint64_t exec_id;
	/*
	 * Its children inherit the breakpoints, which cost them as much, and do nothing. So a count
	 * ends when it forks.
	 */
	unsigned int nr_forks;
};

struct counted {
	struct counted_process process; /* none: unused */
	uint64_t address, stack;	/* the stack's place, and its hash */
	uint64_t offset;		/* of the entry, in the file */
	bool is_stepped;
	int link_fd;
	uint32_t number;
	uint64_t since_ns;
	uint64_t seen_ns, seen_calls; /* a look at it, at least a second ago */
	double a_second;	      /* calls, before that look */
};

/* A stack that was chosen. */
struct trial {
	struct counted_process process; /* none: there is no trial */
	uint64_t stack;
	struct probe_set set;
	struct call_entry entries[LOOKS_MAX_FRAMES];
	size_t nr;
	int link_fds[LOOKS_MAX_FRAMES]; /* while it is probed; one for each file */
	size_t nr_links;
	bool is_over;
	const struct call_entry *rare; /* of @entries, the one to count; or NULL */
};

struct call_counts {
	struct bpf_recorder *recorder;
	struct held_counts *blocks; /* by the numbers of @counted */
	struct counted counted[NR_COUNTED];
	uint32_t nr_numbers;
	struct trial trial;
	struct apart_closing *closing; /* ends links */
	const struct hit_costs *costs;
	double most_ns_a_second;   /* what all counts together may cost */
	uint64_t chosen_ns;	   /* when a stack was last looked for */
	uint64_t tried[MAX_TRIED]; /* hashes of the latest stacks */
	size_t nr_tried;
	uint64_t hot[MAX_HOT]; /* the latest places in functions that are called often */
	size_t nr_hot;
};

int call_counts_create(const struct call_counts_of *of, struct call_counts **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->recorder = of->recorder;
	(*ret)->blocks = held_blocks_counts(of->held);
	(*ret)->costs = of->costs;
	(*ret)->most_ns_a_second = MOST_OF_BUDGET * of->share * 1e9;
	return 0;
}

/* Ends links. It takes long, and this thread goes on meanwhile. */
static void close_links(struct call_counts *counts, const int *fds, size_t nr)
{
	int *copy = nr ? malloc(nr * sizeof(*copy)) : NULL;

	for (size_t i = 0; i < nr && !copy; i++)
		close(fds[i]);
	if (!copy)
		return;
	memcpy(copy, fds, nr * sizeof(*copy));
	apart_close_wait(counts->closing);
	counts->closing = apart_close_begin(copy, nr);
}

static bool has_gone(const struct call_counts *counts, const struct counted_process *process)
{
	const struct target *target = target_table_find(bpf_recorder_target_table(counts->recorder),
							(unsigned int)process->pid);

	return !target || target->exec_id != process->exec_id ||
	       target->nr_forks != process->nr_forks;
}

/* --- the trial --- */

static void forget_trial(struct call_counts *counts)
{
	struct trial *trial = &counts->trial;

	close_links(counts, trial->link_fds, trial->nr_links);
	probe_set_deinit(&trial->set);
	*trial = (struct trial){0};
}

static bool has_place(const struct looks_stack *stack, uint64_t address)
{
	for (size_t i = 0; i < stack->nr_frames; i++)
		if (stack->frames[i] == address)
			return true;
	return false;
}

static bool is_tried(const void *context, const struct looks_stack *stack)
{
	const struct call_counts *counts = context;
	size_t nr = counts->nr_tried < MAX_TRIED ? counts->nr_tried : MAX_TRIED;

	for (size_t i = 0; i < nr; i++)
		if (counts->tried[i] == stack->hash)
			return true;
	/* A stack whose calls are counted needs no other count. */
	for (size_t i = 0; i < NR_COUNTED; i++)
		if (counts->counted[i].process.pid == stack->pid &&
		    has_place(stack, counts->counted[i].address))
			return true;
	return false;
}

static bool has_room(const struct call_counts *counts)
{
	for (size_t i = 0; i < NR_COUNTED; i++)
		if (!counts->counted[i].process.pid)
			return true;
	return false;
}

/* Chooses a stack, and finds the functions that it has. */
static void choose(struct call_counts *counts, const struct looks *looks)
{
	struct trial *trial = &counts->trial;
	const struct target *target;
	struct looks_stack stack;

	counts->chosen_ns = clock_now_ns();
	if (!has_room(counts) || !looks_find_stack(looks, is_tried, counts, &stack) ||
	    stack.nr_blocks < MIN_BLOCKS)
		return;
	target = target_table_find(bpf_recorder_target_table(counts->recorder),
				   (unsigned int)stack.pid);
	if (!target)
		return;
	counts->tried[counts->nr_tried++ % MAX_TRIED] = stack.hash;
	*trial = (struct trial){.stack = stack.hash, .nr = stack.nr_frames};
	for (size_t i = 0; i < stack.nr_frames; i++)
		trial->entries[i].address = stack.frames[i];
	if (call_plan_entries(&trial->set, stack.pid, trial->entries, trial->nr))
		return;
	if (!trial->set.nr_files || changed_code_check(stack.pid, &trial->set, false))
		forget_trial(counts);
	else
		trial->process =
			(struct counted_process){stack.pid, target->exec_id, target->nr_forks};
}

/* Probes the functions that are in the file of the nth one, all by one link. */
static void link_file_of(struct call_counts *counts, size_t nth)
{
	struct trial *trial = &counts->trial;
	const int file_fd = trial->entries[nth].file_fd;
	struct bpf_counted_entry entries[LOOKS_MAX_FRAMES];
	size_t nr = 0;
	int fd;

	for (size_t i = nth; i < trial->nr; i++)
		if (trial->entries[i].file_fd == file_fd)
			entries[nr++] = (struct bpf_counted_entry){
				trial->process.pid, file_fd, trial->entries[i].offset,
				trial->entries[i].is_stepped, FIRST_OF_TRIAL + i};
	fd = bpf_window_count_calls(counts->recorder, entries, nr);
	if (fd >= 0)
		trial->link_fds[trial->nr_links++] = fd;
	/* A file is given up as a whole. */
	for (size_t i = nth; fd < 0 && i < trial->nr; i++)
		if (trial->entries[i].file_fd == file_fd)
			trial->entries[i].file_fd = -1;
}

void call_counts_begin_trial(struct call_counts *counts)
{
	struct trial *trial = counts ? &counts->trial : NULL;
	bool begins = trial && trial->process.pid && !trial->nr_links && !trial->is_over &&
		      !has_gone(counts, &trial->process);

	for (size_t i = 0; begins && i < trial->nr; i++) {
		bool is_linked = trial->entries[i].file_fd < 0;

		for (size_t k = 0; k < i && !is_linked; k++)
			is_linked = trial->entries[k].file_fd == trial->entries[i].file_fd;
		if (!is_linked)
			link_file_of(counts, i);
	}
}

static bool is_hot(const struct call_counts *counts, uint64_t address)
{
	for (size_t i = 0; i < MAX_HOT; i++)
		if (counts->hot[i] == address)
			return true;
	return false;
}

static bool is_counted(const struct call_counts *counts, const struct call_entry *entry)
{
	for (size_t i = 0; i < NR_COUNTED; i++)
		if (counts->counted[i].process.pid == counts->trial.process.pid &&
		    counts->counted[i].offset == entry->offset)
			return true;
	return false;
}

/* The innermost function that was called rarely; NULL: there is none. */
static const struct call_entry *find_rare(const struct call_counts *counts, uint64_t window_ns)
{
	const struct trial *trial = &counts->trial;
	double most = NR_AT_ONCE + MAX_CALLS_A_SECOND * ((double)window_ns / 1e9);

	for (size_t i = 0; i < trial->nr; i++) {
		const struct call_entry *entry = &trial->entries[i];
		uint64_t nr =
			bpf_window_counted_calls(counts->recorder, FIRST_OF_TRIAL + i).observed;

		if (entry->file_fd >= 0 && (double)nr <= most && !is_hot(counts, entry->address))
			return is_counted(counts, entry) ? NULL : entry;
	}
	return NULL;
}

static void begin_count(struct call_counts *counts, const struct call_entry *entry)
{
	const struct trial *trial = &counts->trial;
	struct bpf_counted_entry of = {trial->process.pid, entry->file_fd, entry->offset,
				       entry->is_stepped, 0};
	struct counted *counted;
	int fd;

	while (of.nr < NR_COUNTED && counts->counted[of.nr].process.pid)
		of.nr++;
	if (of.nr == NR_COUNTED)
		return;
	fd = bpf_window_count_calls(counts->recorder, &of, 1);
	if (fd < 0)
		return;
	counted = &counts->counted[of.nr];
	*counted = (struct counted){
		.process = trial->process,
		.address = entry->address,
		.stack = trial->stack,
		.offset = entry->offset,
		.is_stepped = entry->is_stepped,
		.link_fd = fd,
		.number = ++counts->nr_numbers,
		.since_ns = clock_now_ns(),
	};
	counted->seen_ns = counted->since_ns;
	held_counts_set(counts->blocks, of.nr, counted->process.pid, counted->address);
}

void call_counts_end_trial(struct call_counts *counts, uint64_t window_ns)
{
	struct trial *trial = counts ? &counts->trial : NULL;

	if (!trial || !trial->process.pid || trial->is_over)
		return;
	if (trial->nr_links && window_ns)
		trial->rare = find_rare(counts, window_ns);
	close_links(counts, trial->link_fds, trial->nr_links);
	trial->nr_links = 0;
	trial->is_over = true;
}

/* --- what is counted --- */

static void end_count(struct call_counts *counts, size_t nr)
{
	close_links(counts, &counts->counted[nr].link_fd, 1);
	counts->counted[nr] = (struct counted){0};
	held_counts_set(counts->blocks, nr, 0, 0);
}

void call_counts_destroy(struct call_counts *counts)
{
	int fds[NR_COUNTED + LOOKS_MAX_FRAMES];
	size_t nr = 0;

	if (!counts)
		return;
	for (size_t i = 0; i < NR_COUNTED; i++)
		if (counts->counted[i].process.pid)
			fds[nr++] = counts->counted[i].link_fd;
	while (counts->trial.nr_links)
		fds[nr++] = counts->trial.link_fds[--counts->trial.nr_links];
	forget_trial(counts);
	close_links(counts, fds, nr);
	apart_close_wait(counts->closing);
	free(counts);
}

/* Looks at the calls. Returns false if they are too many, or have nothing to do with the blocks. */
static bool look_at_calls(struct call_counts *counts, size_t nr)
{
	struct counted *counted = &counts->counted[nr];
	const struct bpf_counted_calls calls = bpf_window_counted_calls(counts->recorder, nr);
	const uint64_t now_ns = clock_now_ns();
	double s = (double)(now_ns - counted->seen_ns) / 1e9;

	if ((double)(calls.all - counted->seen_calls) > BPF_CALLS_STEP + MAX_CALLS_A_SECOND * s) {
		counts->hot[counts->nr_hot++ % MAX_HOT] = counted->address;
		/* A function further out may be rare. */
		for (size_t i = 0; i < MAX_TRIED; i++)
			if (counts->tried[i] == counted->stack)
				counts->tried[i] = 0;
		return false;
	}
	if (s >= 1) {
		counted->a_second = (double)(calls.all - counted->seen_calls) / s;
		counted->seen_ns = now_ns;
		counted->seen_calls = calls.all;
	}
	return calls.observed || counts->blocks->counts[nr].nr < MIN_UNCALLED_BLOCKS;
}

/* All together must leave most of the budget to windows: the one that costs most ends if not. */
static void end_dearest(struct call_counts *counts)
{
	double sum_ns = 0, most_ns = 0;
	size_t dearest = 0;

	for (size_t i = 0; i < NR_COUNTED; i++) {
		const struct counted *counted = &counts->counted[i];
		double ns = counted->a_second * (counted->is_stepped ? counts->costs->stepped_ns
								     : counts->costs->plain_ns);

		sum_ns += ns;
		if (ns > most_ns) {
			most_ns = ns;
			dearest = i;
		}
	}
	if (sum_ns > counts->most_ns_a_second)
		end_count(counts, dearest);
}

void call_counts_serve(struct call_counts *counts, const struct looks *looks)
{
	if (!counts)
		return;
	if (counts->closing && apart_close_is_done(counts->closing))
		counts->closing = NULL;
	for (size_t i = 0; i < NR_COUNTED; i++) {
		const struct counted *counted = &counts->counted[i];

		if (counted->process.pid &&
		    (has_gone(counts, &counted->process) || !look_at_calls(counts, i)))
			end_count(counts, i);
	}
	end_dearest(counts);
	/* Only now: the blocks of the window of the trial must not count. */
	if (counts->trial.rare && !has_gone(counts, &counts->trial.process))
		begin_count(counts, counts->trial.rare);
	if (counts->trial.is_over)
		forget_trial(counts);
	if (!counts->trial.process.pid && clock_now_ns() >= counts->chosen_ns + CHOOSE_NS)
		choose(counts, looks);
}

int call_counts_write(const struct call_counts *counts, struct perf_writer *writer)
{
	int err = 0;

	for (size_t i = 0; counts && i < NR_COUNTED && !err; i++) {
		const struct counted *counted = &counts->counted[i];
		const struct bpf_counted_calls calls =
			bpf_window_counted_calls(counts->recorder, i);
		const uint64_t values[CALLS_NR_VALUES] = {
			[CALLS_ADDRESS] = counted->address,
			[CALLS_SINCE] = counted->since_ns,
			[CALLS_ALL] = calls.all,
			[CALLS_OBSERVED] = calls.observed,
			[CALLS_BLOCKS] = counts->blocks->counts[i].nr,
		};

		if (counted->process.pid)
			err = own_samples_write(writer, OWN_CALLS, counted->process.pid,
						clock_now_ns(), counted->number, values);
	}
	return err;
}
