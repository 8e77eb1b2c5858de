/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/events/record_group.h"

#include "common/diag.h"
#include "common/interrupted.h"
#include "recorder/processes/apart.h"

#include <errno.h>
#include <perf/evlist.h>
#include <perf/evsel.h>

/* Removes the events of @file, which follow each other. Returns the index of the next event. */
static size_t remove_file(struct record_group *group, const struct probe_file *file)
{
	size_t nr = 0, next = 0;

	for (size_t i = 0; i < group->nr_events; i++) {
		struct record_event *event = &group->events[i];

		if (event->file != file) {
			group->events[nr++] = *event;
			continue;
		}
		next = nr;
		perf_evlist__remove(group->evlist, event->evsel);
		perf_evsel__close(event->evsel);
		perf_evsel__delete(event->evsel);
		free(event->name);
		free(event->format);
	}
	group->nr_events = nr;
	return next;
}

static bool has_files(const struct record_group *group)
{
	for (size_t i = 0; i < group->nr_events; i++)
		if (group->events[i].file)
			return true;
	return false;
}

/* True if the event cannot be opened because of what its file contains. */
static bool is_fault_of_file(const struct record_event *event, int err)
{
	return event->file && err != -EINTR && err != -ENOMEM && err != -EMFILE && err != -ENFILE &&
	       err != -EPERM && err != -EACCES;
}

void record_group_warn_left_out(const struct probe_file *file, size_t nr, int err)
{
	diag_warn("%s%s not recorded: cannot attach: %s", file->display,
		  nr > 1 ? " and other files are" : " is", probe_file_attach_error(-err));
}

struct event_to_open {
	struct perf_evsel *evsel;
	struct perf_cpu_map *cpus;
	struct perf_thread_map *threads;
};

static int open_event(void *argument)
{
	const struct event_to_open *event = argument;

	return perf_evsel__open(event->evsel, event->cpus, event->threads);
}

/* Does what perf_evlist__open() does, but checks for signals: many threads have many events. */
int record_group_open(struct record_group *group, struct perf_cpu_map *cpus,
		      struct perf_thread_map *threads, size_t *nr_left_out)
{
	const struct probe_file *failed = NULL;
	int err, first_err = 0;

	for (size_t i = 0; i < group->nr_events;) {
		const struct record_event *event = &group->events[i];

		if (event->file && event->file->is_given_up) {
			i = remove_file(group, event->file);
			continue;
		}
		err = is_interrupted() ? -EINTR
		      : event->file    ? probe_file_check_blocking(event->file)
				       : 0;
		if (!err)
			err = apart_open(open_event,
					 &(struct event_to_open){event->evsel, cpus, threads});
		if (err >= 0) {
			i++;
			continue;
		}
		if (!nr_left_out || !is_fault_of_file(event, err))
			return err;
		if ((*nr_left_out)++ == 0) {
			failed = event->file;
			first_err = err;
		}
		i = remove_file(group, event->file);
	}
	if (!failed)
		return 0;
	if (!has_files(group))
		return first_err;
	record_group_warn_left_out(failed, *nr_left_out, first_err);
	return 0;
}

void record_group_close(struct record_group *group)
{
	if (group->evlist) {
		perf_evlist__munmap(group->evlist);
		perf_evlist__close(group->evlist);
		perf_evlist__delete(group->evlist);
	}
	for (size_t i = 0; i < group->nr_events; i++) {
		free(group->events[i].name);
		free(group->events[i].format);
		free(group->events[i].ids);
	}
	for (size_t i = 0; i < group->nr_rings; i++)
		free(group->rings[i].fds);
	free(group->events);
	free(group->rings);
	*group = (struct record_group){0};
}

static bool is_of_type(const struct record_event *event, uint16_t type)
{
	return event->attr.type == PERF_TYPE_TRACEPOINT && event->attr.config == type;
}

const struct record_event *record_group_find_type(struct record_group *group, uint16_t type)
{
	uint32_t *recent = &group->recent[type % RECORD_GROUP_RECENT];

	if (*recent < group->nr_events && is_of_type(&group->events[*recent], type))
		return &group->events[*recent];
	for (size_t i = 0; i < group->nr_events; i++) {
		if (!is_of_type(&group->events[i], type))
			continue;
		*recent = (uint32_t)i;
		return &group->events[i];
	}
	return NULL;
}

void record_event_add_totals(const struct record_event *event, size_t nr_threads,
			     struct record_totals *totals)
{
	for (size_t i = 0; event->evsel && i < event->nr_ids; i++) {
		struct perf_counts_values count = {0};

		if (perf_evsel__read(event->evsel, (int)(i / nr_threads), (int)(i % nr_threads),
				     &count) < 0)
			continue;
		totals->hits += count.val;
		totals->lost += count.lost;
	}
}
