/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/events/attach.h"

#include "common/diag.h"
#include "recorder/processes/tasks.h"
#include "recorder/processes/tracer.h"

#include <errno.h>
#include <sys/sysinfo.h>

#define ATTEMPTS_BEFORE_HOLD 2
#define MAX_THREAD_EVENTS    128 /* of each kind: threads times CPUs */

static const pid_t all_processes = -1;

/* True if the processes have more threads than side events should be opened for. */
static bool has_many_threads(const pid_t *pids, size_t nr_pids)
{
	size_t nr = task_list_count(pids, nr_pids);

	return nr > 1 && nr * (size_t)get_nprocs() > MAX_THREAD_EVENTS;
}

/* Opens side events alone, one of each kind for each CPU. */
static int attach_to_cpus(struct record_events *ret, const struct record_config *config,
			  const pid_t *pids, size_t nr_pids)
{
	int err = record_events_open(ret, NULL, 0, config, &all_processes, 1);

	if (err)
		return err;
	ret->filter = side_filter_create(pids, nr_pids);
	if (!ret->filter) {
		diag_error("cannot open the perf events: out of memory");
		return -ENOMEM;
	}
	return record_events_enable(&ret->side);
}

/* Opens the events once. Returns 0, -EAGAIN if tasks came or went meanwhile, or another error. */
static int attach_once(struct record_events *ret, const struct probe_set *const *probes,
		       size_t nr_probes, const struct record_config *config, const pid_t *pids,
		       size_t nr_pids)
{
	struct task_list before = {0}, after = {0};
	int err = task_list_read(&before, pids, nr_pids);

	if (err == -ESRCH)
		diag_error("cannot attach: the process has ended");
	if (!err) {
		err = record_events_open(ret, probes, nr_probes, config, before.tids,
					 before.nr_tids);
		if (err == -ESRCH)
			err = -EAGAIN;
	}
	if (!err) {
		err = task_list_read(&after, pids, nr_pids);
		/* The process has ended meanwhile. Its events recorded what it did last. */
		if (err == -ESRCH)
			err = 0;
		else if (!err && task_list_has_grown(&before, &after))
			err = -EAGAIN;
	}
	task_list_deinit(&before);
	task_list_deinit(&after);
	if (err == -EAGAIN && record_events_give_up(ret))
		err = -EINTR;
	return err;
}

/* The threads of a process that another one traces could not be held. */
static void report_restless(const pid_t *pids, size_t nr_pids)
{
	char tracer[TRACER_NAME_MAX];

	for (size_t i = 0; i < nr_pids; i++) {
		if (!tracer_name(pids[i], tracer))
			continue;
		diag_error("cannot attach: threads of process %d come and go, and leakrec cannot "
			   "stop it meanwhile, because %s traces it; end that, or try again",
			   (int)pids[i], tracer);
		return;
	}
	diag_error("cannot attach: threads come and go too fast; try again");
}

int attach_events(struct record_events *ret, const struct probe_set *const *probes,
		  size_t nr_probes, const struct record_config *config, const pid_t *pids,
		  size_t nr_pids)
{
	struct task_hold hold;
	int err = -EAGAIN;

	/* An event of a CPU covers all tasks, so no thread can be missed. */
	if (config->scope != RECORD_PROCESSES)
		return record_events_open(ret, probes, nr_probes, config, &all_processes, 1);
	/* With a budget, others' records would count as the recording's cost. */
	if (!nr_probes && !config->in_windows && has_many_threads(pids, nr_pids))
		return attach_to_cpus(ret, config, pids, nr_pids);
	*ret = (struct record_events){0};
	for (int i = 0; i < ATTEMPTS_BEFORE_HOLD && err == -EAGAIN; i++)
		err = attach_once(ret, probes, nr_probes, config, pids, nr_pids);
	if (err != -EAGAIN)
		return err;

	diag_note("threads come and go: stopping the process while its events are opened");
	err = task_hold_all(&hold, pids, nr_pids);
	if (!err)
		err = attach_once(ret, probes, nr_probes, config, pids, nr_pids);
	task_hold_release(&hold);
	if (err == -EAGAIN)
		report_restless(pids, nr_pids);
	return err;
}
