/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/targets/given_up.h"

#include "common/diag.h"
#include "recorder/events/event_removal.h"
#include "recorder/processes/apart.h"
#include "recorder/programs/bpf_windows.h"

static void remove_events(struct given_up *given_up, struct probe_file *file)
{
	struct probe_set set = {.files = file, .nr_files = 1};

	if (given_up->backpressure)
		backpressure_remove_file(given_up->backpressure, given_up->events, file);
	record_events_remove_file(given_up->events, file);
	/* The kernel has removed the breakpoints when it lets go of the events. */
	probe_set_unregister(&set);
}

static void begin(struct given_up *given_up, struct probe_file *file)
{
	struct bpf_recorder *recorder = given_up->recorder;

	given_up->file = file;
	given_up->nr++;
	file->is_given_up = true;
	diag_note("no longer recording %s, which is being overwritten", file->display);
	if (!recorder)
		remove_events(given_up, file);
	else if (recorder->in_windows)
		/* What is not probed is not observed. The next window has the other files. */
		bpf_window_close(recorder);
	else
		recorder->unlinking = bpf_recorder_begin_unlink(recorder, 0, file);
	if (given_up->fork_follow)
		fork_follow_give_up(given_up->fork_follow, file);
}

/* True if the links of the file, or of the window, are gone. */
static bool is_unlinked(struct bpf_recorder *recorder)
{
	if (!recorder)
		return true;
	if (recorder->in_windows)
		return !recorder->unlinking && !recorder->nr_links;
	if (!apart_close_is_done(recorder->unlinking))
		return false;
	recorder->unlinking = NULL;
	return true;
}

static void finish(struct given_up *given_up)
{
	if (given_up->dlopen_watch)
		dlopen_watch_forget(given_up->dlopen_watch, given_up->file);
	file_leases_give(given_up->leases, given_up->file);
	given_up->file = NULL;
}

bool given_up_is_busy(const struct given_up *given_up)
{
	return given_up->file;
}

void given_up_serve(struct given_up *given_up)
{
	struct probe_file *file;

	for (;;) {
		if (!given_up->file) {
			file = file_leases_next_wanted(given_up->leases);
			if (!file)
				return;
			begin(given_up, file);
		}
		if (!is_unlinked(given_up->recorder))
			return;
		finish(given_up);
	}
}

void given_up_leave(struct given_up *given_up)
{
	if (given_up->file && !is_unlinked(given_up->recorder))
		given_up->file->fd = -1;
}
