// SPDX-License-Identifier: GPL-2.0-or-later
#include "test/support/leak_trace_runs.h"

#define MAX_RUNS 1000

static void add_run(struct leak_trace *trace, enum trace_actor actor, double start_s, double end_s,
		    double length_s, double share)
{
	bool is_thread = actor == TRACE_THREADS || actor == TRACE_PASSING_THREADS;
	struct trace_run *run = &trace->runs[trace->nr_runs++];

	if (trace->nr_runs > MAX_RUNS)
		abort();
	*run = (struct trace_run){
		.actor = actor,
		.pid = is_thread ? 1 : (pid_t)trace->nr_runs,
		.start_s = start_s,
		.end_s = end_s < trace->runs[0].length_s ? end_s : INFINITY,
		.length_s = length_s,
		.share = share,
		.leak_share = share,
	};
}

/* A pool of @nr; the successor of each begins as it ends. @is_old: the pool is older than that. */
static void add_pool(struct leak_trace *trace, enum trace_actor actor, size_t nr, double life_s,
		     bool is_old, double share)
{
	double length_s = trace->runs[0].length_s;

	for (size_t i = 0; i < nr; i++) {
		double start_s = is_old ? -life_s * draw(trace) : length_s * 0.03 * draw(trace);

		while (start_s < length_s) {
			double end_s = start_s + life_s * draw_between(trace, 0.7, 1);

			if (end_s > 0)
				add_run(trace, actor, start_s, end_s, life_s, share);
			start_s = end_s;
		}
	}
}

static void add_workers(struct leak_trace *trace)
{
	double length_s = trace->runs[0].length_s;
	size_t nr = (size_t)draw_log_between(trace, 2, 17);
	double kind = draw(trace), life_s = length_s * draw_log_between(trace, 0.15, 0.6);
	struct trace_run *leaker = NULL;

	if (kind < 1.0 / 3)
		for (size_t i = 0; i < nr; i++)
			add_run(trace, TRACE_WORKERS, length_s * 0.03 * draw(trace), INFINITY,
				length_s, 1.0 / (double)nr);
	else
		add_pool(trace, TRACE_WORKERS, nr, life_s, kind > 2.0 / 3, 1.0 / (double)nr);
	for (size_t i = 0; i < trace->nr_runs; i++) {
		struct trace_run *run = &trace->runs[i];

		if (run->actor == TRACE_WORKERS && isinf(run->end_s) &&
		    (!leaker || run->start_s < leaker->start_s))
			leaker = run;
	}
	if (leaker)
		leaker->is_leaker = true;
}

double leak_trace_lived_s(const struct leak_trace *trace, const struct trace_run *run)
{
	return trace->runs[0].length_s - fmax(0, run->start_s);
}

/* Sets the shares of an actor's leaks. Threads that live on leak as long as the program runs. */
static void share_leaks(struct leak_trace *trace, enum trace_actor actor)
{
	double lived_s = 0;

	for (size_t i = 0; i < trace->nr_runs; i++)
		if (trace->runs[i].actor == actor && isinf(trace->runs[i].end_s))
			lived_s += leak_trace_lived_s(trace, &trace->runs[i]);
	for (size_t i = 0; i < trace->nr_runs; i++) {
		struct trace_run *run = &trace->runs[i];
		double length_s = actor == TRACE_THREADS ? trace->runs[0].length_s : run->length_s;

		if (run->actor == actor)
			run->leak_share = length_s / lived_s;
	}
}

void leak_trace_add_runs(struct leak_trace *trace)
{
	double length_s = (double)(trace->end_ns - trace->start_ns) / 1e9;
	size_t nr;

	trace->run = trace->runs = check(calloc(MAX_RUNS, sizeof(*trace->runs)));
	trace->runs[0].length_s = length_s;
	add_run(trace, TRACE_MAIN, 0, INFINITY, length_s, 1);
	if (trace->set != TRACE_SERVERS)
		return;
	add_workers(trace);
	nr = (size_t)draw_log_between(trace, 20, 100);
	for (size_t i = 0; i < nr; i++) {
		double start_s = length_s * draw(trace),
		       life_s = length_s * draw_between(trace, 0.002, 0.02);

		add_run(trace, TRACE_JOBS, start_s, start_s + life_s, life_s, 0.1);
	}
	nr = (size_t)draw_log_between(trace, 4, 65);
	for (size_t i = 0; i < nr; i++)
		add_run(trace, TRACE_THREADS, length_s * draw_between(trace, 0, 0.5), INFINITY,
			length_s * 0.3, 1.0 / (double)nr);
	nr = (size_t)draw_log_between(trace, 2, 17);
	add_pool(trace, TRACE_PASSING_THREADS, nr, length_s * draw_log_between(trace, 0.05, 0.3),
		 false, 1.0 / (double)nr);
	share_leaks(trace, TRACE_WORKERS);
	share_leaks(trace, TRACE_THREADS);
}

enum trace_actor leak_trace_draw_actor(struct leak_trace *trace, enum trace_kind kind)
{
	double which = draw(trace);

	/* They come once, or from some time on: that is not so in each worker. */
	if (kind == TRACE_BURST_LEAK || kind == TRACE_LATE_LEAK)
		return TRACE_MAIN;
	if (which < 0.35)
		return TRACE_WORKERS;
	if (which < 0.5)
		return TRACE_THREADS;
	if (which < 0.65)
		return TRACE_PASSING_THREADS;
	if (which < 0.8)
		return kind < TRACE_FIRST_LEAK ? TRACE_JOBS : TRACE_ONE_WORKER;
	return TRACE_MAIN;
}

const char *trace_actor_name(enum trace_actor actor)
{
	static const char *const names[TRACE_NR_ACTORS] = {
		[TRACE_MAIN] = "main process",	   [TRACE_WORKERS] = "workers",
		[TRACE_ONE_WORKER] = "one worker", [TRACE_JOBS] = "short processes",
		[TRACE_THREADS] = "threads",	   [TRACE_PASSING_THREADS] = "passing threads",
	};

	return names[actor];
}
