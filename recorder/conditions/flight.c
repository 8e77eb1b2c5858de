/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/conditions/flight.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/quantity.h"

#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* How often to measure: at least, and more rarely with more processes. */
#define CHECK_NS	 250000000ULL
#define CHECK_PROCESS_NS 20000000ULL

#define INTERVAL_NS	 60000000000ULL

/* Between the end of a process's last thread, which perf events show, and that of the process. */
#define END_MS 1000

static void report_start(const struct flight *flight, const struct segment_limits *limits)
{
	const struct quantity_text size = quantity_size(limits->bytes);
	const char *who = flight->nr_conditions ? "--when or SIGUSR2 has" : "SIGUSR2 has";

	if (limits->age_ns)
		diag_note("the last %s are kept in memory, or %s of them; %s them written",
			  quantity_duration((double)limits->age_ns / 1e9).text, size.text, who);
	else
		diag_note("the last %s are kept in memory; %s them written", size.text, who);
}

/* What is met already does not count. */
static void check_first(struct flight *flight)
{
	const struct condition_values values =
		condition_sources_read(&flight->sources, clock_now_ns());

	for (size_t i = 0; i < flight->nr_conditions; i++)
		if (condition_check(&flight->conditions[i], &values))
			diag_warn("--when %s is met already: it counts when it has fallen clearly "
				  "below that, and is met again",
				  flight->conditions[i].text);
}

/* Conditions have had enough written. */
static void disarm(struct flight *flight)
{
	diag_warn("%s%sconditions have had %d recordings written into the directory: from now on "
		  "only SIGUSR2 does; remove some, and start leakrec again",
		  flight->waiting ? flight->waiting : "", flight->waiting ? " is met, but " : "",
		  FLIGHT_MAX_WRITTEN);
	flight->waiting = NULL;
	flight->nr_conditions = 0;
}

bool flight_watches_ends(const struct flight *flight)
{
	for (size_t i = 0; i < flight->nr_conditions; i++)
		if (flight->conditions[i].kind == CONDITION_SIGNAL)
			return true;
	return false;
}

struct process_ends *flight_ends(struct flight *flight)
{
	return flight_watches_ends(flight) ? &flight->ends : NULL;
}

int flight_start(struct flight *flight, const struct flight_of *of)
{
	int err;

	flight->segments = of->segments;
	flight->memory = of->memory;
	flight->signal_fd = of->signal_fd;
	flight->interval_ns = INTERVAL_NS;
	if (of->limits->age_ns && of->limits->age_ns < INTERVAL_NS)
		flight->interval_ns = of->limits->age_ns;
	for (size_t i = 0; i < of->nr_when; i++)
		if (condition_parse(of->when[i], &flight->conditions[flight->nr_conditions]) == 0)
			flight->nr_conditions++;
	flight->nr_written = segments_written_before(of->segments);
	if (flight->nr_conditions && flight->nr_written >= FLIGHT_MAX_WRITTEN)
		disarm(flight);
	err = condition_sources_open(&flight->sources, flight->conditions, flight->nr_conditions,
				     of->memory, of->cgroup_fd, of->pid);
	if (err)
		return err;
	for (size_t i = 0; i < of->memory->nr && flight_watches_ends(flight); i++)
		process_ends_add(&flight->ends, of->memory->processes[i].pid, false);
	check_first(flight);
	report_start(flight, of->limits);
	return 0;
}

void flight_deinit(struct flight *flight)
{
	condition_sources_close(&flight->sources);
	process_ends_deinit(&flight->ends);
}

/* Has the memory written; its recording has the processes' memory at this time. */
static int ask(struct flight *flight, const char *reason, uint64_t now_ns,
	       struct perf_writer *writer)
{
	int err = memory_samples_write(flight->memory, writer);

	segments_write(flight->segments, reason, now_ns);
	return err;
}

static bool has_signal(const struct flight *flight)
{
	struct signalfd_siginfo signal;

	return read(flight->signal_fd, &signal, sizeof(signal)) == sizeof(signal);
}

/* The reason, if a process was ended by a signal; or NULL. One that waits already stays. */
static const char *check_ends(struct flight *flight)
{
	bool found = false;
	int number;

	while ((number = process_ends_check(&flight->ends))) {
		found = true;
		if (flight->waiting == flight->ended_by)
			continue;
		if (number == PROCESS_ENDS_UNKNOWN)
			snprintf(flight->ended_by, sizeof(flight->ended_by), "end-unknown");
		else
			snprintf(flight->ended_by, sizeof(flight->ended_by), "signal-%d", number);
	}
	return found ? flight->ended_by : NULL;
}

/* Says once that there are processes whose memory or end no condition sees. */
static void tell_left_out(struct flight *flight)
{
	if (flight->told_left_out || !(flight->memory->left_out || flight->ends.left_out) ||
	    !(flight->sources.memory || flight_watches_ends(flight)))
		return;
	flight->told_left_out = true;
	diag_warn("--when sees %d processes at most: there were more, or they came too fast, and "
		  "it may miss what they do",
		  MEMORY_MAX_PROCESSES);
}

/* Checks all conditions. The first one that is met waits until it has its way. */
static void check(struct flight *flight, uint64_t now_ns)
{
	const struct condition_values values = condition_sources_read(&flight->sources, now_ns);
	const char *met = check_ends(flight);

	tell_left_out(flight);
	for (size_t i = 0; i < flight->nr_conditions; i++)
		if (condition_check(&flight->conditions[i], &values) && !met)
			met = flight->conditions[i].text;
	if (!flight->waiting)
		flight->waiting = met;
	flight->check_ns = now_ns + CHECK_NS + values.nr_processes * CHECK_PROCESS_NS;
}

/* True if the condition that waits may have the memory written. */
static bool may_write(struct flight *flight, uint64_t now_ns)
{
	if (!flight->waiting || now_ns < flight->write_ns || segments_are_asked(flight->segments))
		return false;
	if (flight->nr_written < FLIGHT_MAX_WRITTEN)
		return true;
	disarm(flight);
	return false;
}

int flight_serve(struct flight *flight, struct perf_writer *writer)
{
	uint64_t now_ns = clock_now_ns();
	int err = has_signal(flight) ? ask(flight, RING_ON_SIGNAL, now_ns, writer) : 0;

	if (flight->nr_conditions && now_ns >= flight->check_ns)
		check(flight, now_ns);
	if (err || !may_write(flight, now_ns))
		return err;
	/* Before this has its cut, another one may wait. */
	snprintf(flight->asked_for, sizeof(flight->asked_for), "%s", flight->waiting);
	err = ask(flight, flight->asked_for, now_ns, writer);
	flight->waiting = NULL;
	flight->nr_written++;
	flight->write_ns = now_ns + flight->interval_ns;
	return err;
}

const char *flight_end(struct flight *flight, bool are_gone)
{
	if (has_signal(flight))
		return RING_ON_SIGNAL;
	if (!flight->nr_conditions)
		return NULL;
	if (are_gone)
		process_ends_wait(&flight->ends, END_MS);
	check(flight, clock_now_ns());
	for (size_t i = 0; i < flight->nr_conditions && !flight->waiting; i++)
		if (flight->conditions[i].kind == CONDITION_END)
			flight->waiting = flight->conditions[i].text;
	if (flight->waiting && flight->nr_written >= FLIGHT_MAX_WRITTEN)
		disarm(flight);
	return flight->waiting;
}
