/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/windows/windows.h"

#include "common/clock.h"
#include "common/hash.h"
#include "recorder/output/own_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The probes are gone after some 50 ms, in which the kernel mostly waits. */
#define CLOSING_ASK_MS 25

/*
 * How long transfers are counted before a window, and in it: there longer if there are few, because
 * a program that waits for a CPU makes none.
 */
#define SAMPLE_MS	20
#define LONG_SAMPLE_MS	200
#define MANY_TRANSFERS	50
#define SAMPLE_EVERY_MS 2000 /* and again, in a window that lasts so long */

#define NS_PER_MS	UINT64_C(1000000)

/* What has been done is read again if this thread had to wait for longer meanwhile. */
#define READING_NS   500000
#define MAX_READINGS 3

/* Without a process, until there is one. */
#define NONE_ASK_MS 400

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec used;

	clock_gettime(clock, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static uint64_t timeval_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

static uint64_t helpers_ns(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return timeval_ns(used.ru_utime) + timeval_ns(used.ru_stime);
}

/* Until @now_ns. How many threads are ready is read at some moments only. */
static uint64_t thread_ns(struct windows *windows, uint64_t now_ns)
{
	if (windows->last_ns)
		windows->thread_ns += (double)(now_ns - windows->last_ns) * cpu_part_of_thread();
	windows->last_ns = now_ns;
	return (uint64_t)windows->thread_ns;
}

static struct budget_meter read_meter(struct windows *windows)
{
	struct target_table *table = bpf_recorder_target_table(windows->recorder);
	const struct bpf_window_hits hits = bpf_window_hits(windows->recorder);
	uint64_t now_ns = clock_now_ns();
	uint64_t live_ns = windows->of.live_parser ? cpu_clock_of(windows->of.live_parser) : 0;

	if (live_ns > windows->live_ns)
		windows->live_ns = live_ns;
	return (struct budget_meter){
		.now_ns = now_ns,
		.thread_ns = thread_ns(windows, now_ns),
		.targets_ns = process_counts_read(&windows->cpu_times, table, cpu_clock_of),
		.hits_ns = hit_costs_sum_ns(&windows->costs, &hits),
		.own_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) + cpu_clock_of(windows->of.watchdog) +
			  windows->live_ns,
		.helpers_ns = helpers_ns(),
	};
}

static void update(struct windows *windows)
{
	const struct budget_meter meter = read_meter(windows);

	budget_update(&windows->budget, &meter);
}

/* All at one moment: on a busy machine, this thread may have to wait in between. */
static struct windows_work read_work(struct windows *windows)
{
	struct target_table *table = bpf_recorder_target_table(windows->recorder);
	struct windows_work work;

	for (int i = 0; i < MAX_READINGS; i++) {
		const uint64_t begin_ns = clock_now_ns(), begin_cpu_ns = clock_thread_ns();
		const struct bpf_window_hits hits = bpf_window_hits(windows->recorder);

		work.nr_hits = hits.hits;
		work.nr_in_window = bpf_window_nr_hits(windows->recorder);
		work.meter.hits_ns = hit_costs_sum_ns(&windows->costs, &hits);
		work.meter.cpu_ns = process_counts_read(&windows->cpu_times, table, cpu_clock_of);
		work.meter.now_ns = clock_now_ns();
		/* That of many processes takes long by itself, and would again. */
		if (work.meter.now_ns - begin_ns <= READING_NS + (clock_thread_ns() - begin_cpu_ns))
			break;
	}
	work.meter.thread_ns = thread_ns(windows, work.meter.now_ns);
	return work;
}

static bool begin_sample(struct windows *windows)
{
	bool is_counting = bpf_window_begin_counting(windows->recorder);

	windows->counted_ns = clock_now_ns();
	windows->counting_ns = is_counting ? windows->counted_ns : 0;
	windows->counted_before = bpf_window_nr_transfers(windows->recorder);
	return is_counting;
}

/* Without a sample, its time is 0. */
static struct pace_sample end_sample(struct windows *windows)
{
	struct pace_sample sample = {0};

	if (windows->counting_ns) {
		sample.ns = clock_now_ns() - windows->counting_ns;
		sample.transfers =
			bpf_window_nr_transfers(windows->recorder) - windows->counted_before;
	}
	windows->counting_ns = 0;
	windows->counted_ns = clock_now_ns();
	return sample;
}

static void end_sample_of_window(struct windows *windows)
{
	const struct pace_sample sample = end_sample(windows);

	windows->sample.ns += sample.ns;
	windows->sample.transfers += sample.transfers;
	bpf_window_end_counting(windows->recorder);
}

/* No transfers are counted from now on. */
static void stop_counting(struct windows *windows)
{
	bpf_window_end_counting(windows->recorder);
	windows->counting_ns = 0;
}

static bool has_sampled(const struct windows *windows)
{
	return windows->counting_ns &&
	       clock_now_ns() >= windows->counting_ns + SAMPLE_MS * NS_PER_MS;
}

/* That of an open window tells enough. */
static bool has_sampled_enough(const struct windows *windows)
{
	return has_sampled(windows) &&
	       (bpf_window_nr_transfers(windows->recorder) >=
			windows->counted_before + MANY_TRANSFERS ||
		clock_now_ns() >= windows->counting_ns + LONG_SAMPLE_MS * NS_PER_MS);
}

static uint64_t allowed_hits(const struct windows *windows)
{
	double hits = budget_allowance_ns(&windows->budget) / windows->costs.plain_ns;

	return hits < 1e15 ? (uint64_t)hits : (uint64_t)1e15;
}

static int write_bound(const struct windows *windows, bool is_open)
{
	double ratio = pace_ratio(&windows->pace), part = bpf_window_part(windows->recorder);
	uint64_t pace = 0;

	/* At the open, it is not known yet. What a part of the processes does is so much less. */
	if (!is_open && (ratio > 0 || part < 1))
		pace = (uint64_t)lround(fmax(1, 1000 * (ratio > 0 ? ratio : 1) * part));
	return own_samples_write(windows->of.writer, OWN_WINDOW, windows->of.pid,
				 is_open ? windows->opened_ns : windows->closed_ns, is_open, &pace);
}

int windows_restate(const struct windows *windows, uint64_t time_ns)
{
	return own_samples_write(windows->of.writer, OWN_WINDOW, windows->of.pid, time_ns,
				 !windows_are_shut(windows), &(const uint64_t){0});
}

void windows_init(struct windows *ret, struct bpf_recorder *recorder, double share)
{
	*ret = (struct windows){.recorder = recorder, .closed_ns = UINT64_MAX};
	ret->budget.share = share;
	/* The pace before the first window shows meanwhile. */
	ret->work = read_work(ret);
	begin_sample(ret);
	ret->costs = hit_costs_measure(recorder);
}

static void end_gap(struct windows *windows)
{
	const struct pace_meter before = windows->work.meter;
	const struct pace_sample sample = end_sample(windows);

	windows->work = read_work(windows);
	pace_add_gap(&windows->pace, &before, &windows->work.meter, &sample);
}

/* The part of the hits since @before that the window had, in its last @window_ns. */
static double part_in_window(const struct windows *windows, const struct windows_work *before,
			     uint64_t window_ns)
{
	const struct windows_work *work = &windows->work;
	double nr_hits = (double)(work->nr_hits - before->nr_hits);
	double nr_in_window = (double)(work->nr_in_window - before->nr_in_window);

	/* Fewer than the error of the second one. */
	if (nr_hits < BPF_HITS_STEP * (double)windows->recorder->nr_rings)
		return (double)window_ns / (double)(work->meter.now_ns - before->meter.now_ns);
	return nr_in_window < nr_hits ? nr_in_window / nr_hits : 1;
}

/* The window has closed, by a program maybe long ago; its probes still stand. */
static void end_window(struct windows *windows)
{
	const struct windows_work before = windows->work;
	uint64_t from_ns = before.meter.now_ns;

	windows->work = read_work(windows);
	end_sample_of_window(windows);
	/* What the program did before the first reading is not known. */
	if (windows->closed_ns > from_ns)
		pace_add_window(&windows->pace, &before.meter, &windows->work.meter,
				&windows->sample,
				part_in_window(windows, &before, windows->closed_ns - from_ns),
				windows->closed_ns - from_ns);
	budget_note_closing(&windows->budget, windows->closed_ns);
}

/* Opens a window, unless there is no process left. */
static int open_window(struct windows *windows)
{
	int nr;

	end_gap(windows);
	call_counts_begin_trial(windows->calls);
	update(windows);
	budget_begin(&windows->budget);
	nr = bpf_window_open(windows->recorder, allowed_hits(windows), &windows->opened_ns);
	windows->is_unlinked = false;
	windows->found_none = nr <= 0;
	if (nr <= 0) {
		stop_counting(windows);
		call_counts_end_trial(windows->calls, 0);
	}
	/* The signal ends the recording. */
	if (nr == -EINTR)
		return 0;
	if (nr <= 0)
		return nr;
	windows->closed_ns = UINT64_MAX;
	update(windows);
	budget_note_open(&windows->budget, windows->opened_ns);
	windows->sample = (struct pace_sample){0};
	begin_sample(windows);
	windows->work = read_work(windows);
	return write_bound(windows, true);
}

void windows_deinit(struct windows *windows)
{
	call_counts_destroy(windows->calls);
	windows->calls = NULL;
	looks_destroy(windows->looks);
	windows->looks = NULL;
}

int windows_start(struct windows *windows, const struct windows_of *of)
{
	struct budget_meter meter;
	int err = looks_create(clock_now_ns() ^ hash_seed(), &windows->looks);

	/* With a scan, what is held is not only what windows have shown. */
	if (!err && !of->keeps_held)
		err = call_counts_create(&(struct call_counts_of){windows->recorder, of->held,
								  &windows->costs,
								  windows->budget.share},
					 &windows->calls);
	if (err)
		return err;
	windows->of = *of;
	meter = read_meter(windows);
	budget_init(&windows->budget, windows->budget.share, meter.now_ns, &meter);
	return open_window(windows);
}

bool windows_hold_round(const struct windows *windows)
{
	return bpf_window_is_closing(windows->recorder) || windows->budget.state == BUDGET_CLOSING;
}

const struct perf_event_header *windows_fit(const struct windows *windows,
					    const struct perf_event_header *record, void *to)
{
	uint64_t time_ns, closed_ns = windows->closed_ns;

	if (record->type != PERF_RECORD_SAMPLE)
		return record;
	if (closed_ns == UINT64_MAX && bpf_window_closed_ns(windows->recorder))
		closed_ns = bpf_window_closed_ns(windows->recorder);
	memcpy(&time_ns, (const char *)record + RECORD_SAMPLE_TIME_OFFSET, sizeof(time_ns));
	if (time_ns >= windows->opened_ns && time_ns <= closed_ns)
		return record;
	time_ns = time_ns < windows->opened_ns ? windows->opened_ns : closed_ns;
	if (to != record)
		memcpy(to, record, record->size);
	memcpy((char *)to + RECORD_SAMPLE_TIME_OFFSET, &time_ns, sizeof(time_ns));
	return to;
}

/* While a window is open: closes it if it is time, or if a program has. */
static void serve_open(struct windows *windows)
{
	/* All processes pay for it. */
	if (has_sampled_enough(windows))
		end_sample_of_window(windows);
	else if (!windows->counting_ns &&
		 clock_now_ns() >= windows->counted_ns + SAMPLE_EVERY_MS * NS_PER_MS)
		begin_sample(windows);
	if (!bpf_window_is_closing(windows->recorder)) {
		budget_note_new(&windows->budget, bpf_window_has_new(windows->recorder));
		if (!budget_wants_close(&windows->budget)) {
			bpf_window_extend(windows->recorder, allowed_hits(windows));
			return;
		}
		bpf_window_close(windows->recorder);
	}
	windows->closed_ns = bpf_window_closed_ns(windows->recorder);
	/* The program that closes it is about to tell when. */
	if (!windows->closed_ns)
		return;
	end_window(windows);
	bpf_window_begin_unlink(windows->recorder);
	call_counts_end_trial(windows->calls, windows->closed_ns - windows->opened_ns);
}

/* The window's samples have all come: chooses from what it left. */
static void choose_blocks(struct windows *windows)
{
	struct held_blocks *held = windows->of.held;

	held_blocks_apply(held, windows->closed_ns);
	looks_choose(windows->looks, held, bpf_recorder_target_table(windows->recorder),
		     windows->opened_ns);
	/* What becomes of them is not seen. */
	if (!windows->of.keeps_held)
		held_blocks_forget(held);
}

static int take_looks(struct windows *windows, bool at_all)
{
	return looks_take(windows->looks, bpf_recorder_target_table(windows->recorder),
			  windows->of.writer, at_all);
}

static int serve_closing(struct windows *windows, bool is_drained)
{
	int err;

	if (!windows->is_unlinked) {
		windows->is_unlinked = bpf_window_is_unlinked(windows->recorder);
		if (windows->is_unlinked)
			windows->work = read_work(windows);
		return 0;
	}
	if (!is_drained)
		return 0;
	err = write_bound(windows, false);
	choose_blocks(windows);
	if (!err)
		err = call_counts_write(windows->calls, windows->of.writer);
	if (!err)
		err = take_looks(windows, false);
	update(windows);
	budget_note_shut(&windows->budget);
	return err;
}

/* Opens a window if it is time, and after a sample of how fast the program works without one. */
static int serve_shut(struct windows *windows)
{
	call_counts_serve(windows->calls, windows->looks);
	if (!budget_wants_open(&windows->budget)) {
		stop_counting(windows);
		return 0;
	}
	if (windows->counting_ns ? !has_sampled(windows) : begin_sample(windows))
		return 0;
	return open_window(windows);
}

int windows_serve(struct windows *windows, bool is_drained)
{
	int err = take_looks(windows, false);

	if (err)
		return err;
	update(windows);
	switch (windows->budget.state) {
	case BUDGET_OPEN:
		serve_open(windows);
		return 0;
	case BUDGET_CLOSING:
		return serve_closing(windows, is_drained);
	case BUDGET_SHUT:
		break;
	}
	return serve_shut(windows);
}

int windows_timeout_ms(const struct windows *windows, int longest_ms)
{
	uint64_t now_ns = clock_now_ns(), next_ns = budget_next_ns(&windows->budget);
	uint64_t ms = next_ns > now_ns ? (next_ns - now_ns) / 1000000 : 0;

	if (windows->budget.state == BUDGET_CLOSING)
		ms = windows->is_unlinked ? 0 : CLOSING_ASK_MS;
	else if (windows->counting_ns && (windows_are_shut(windows) || ms > SAMPLE_MS))
		ms = SAMPLE_MS;
	else if (windows->found_none)
		ms = NONE_ASK_MS;
	return ms < (uint64_t)longest_ms ? (int)ms : longest_ms;
}

int windows_stop(struct windows *windows)
{
	int err = take_looks(windows, true);

	if (windows_are_shut(windows))
		stop_counting(windows);
	if (windows->budget.state != BUDGET_OPEN)
		return err;
	update(windows);
	bpf_window_close(windows->recorder);
	windows->closed_ns = bpf_window_closed_ns(windows->recorder);
	/* A program closes it, and is preempted. */
	if (!windows->closed_ns)
		windows->closed_ns = clock_now_ns();
	end_window(windows);
	return err;
}

int windows_finish(struct windows *windows)
{
	int err = 0;

	if (windows->budget.state == BUDGET_CLOSING) {
		held_blocks_apply(windows->of.held, windows->closed_ns);
		update(windows);
		budget_note_shut(&windows->budget);
		err = write_bound(windows, false);
	}
	if (!err)
		err = call_counts_write(windows->calls, windows->of.writer);
	call_counts_destroy(windows->calls);
	windows->calls = NULL;
	return err;
}

char *windows_describe(const struct windows *windows, uint64_t end_ns)
{
	const struct budget *budget = &windows->budget;
	char *text;

	if (asprintf(&text,
		     ", %.3g%% of the time observed in %" PRIu64
		     " window%s, cost %.2g%% of the CPU time",
		     budget_observed(budget, end_ns) * 100, budget->nr_windows,
		     budget->nr_windows == 1 ? "" : "s", budget_used(budget) * 100) < 0)
		return NULL;
	return text;
}
