/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/session.h"

#include "common/diag.h"
#include "common/proc/proc_file.h"
#include "common/scope.h"
#include "recorder/output/marks.h"
#include "recorder/processes/process_list.h"
#include "recorder/session/removal.h"
#include "recorder/session/session_record.h"
#include "recorder/session/session_setup.h"
#include "recorder/session/session_signals.h"
#include "recorder/session/session_start.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* After a signal, how long the recorder waits until the probes are removed and the output is done.
 */
#define REMOVAL_WAIT_NS 500000000ULL

/* In a time namespace, our clock is not the one that the kernel stamps events with. */
static int check_clock(void)
{
	char text[256];
	const char *offset = NULL;
	char *nanoseconds;

	if (proc_file_read(getpid(), "timens_offsets", text, sizeof(text)) == 0)
		offset = proc_file_find(text, "monotonic");
	if (!offset ||
	    (strtoll(offset, &nanoseconds, 10) == 0 && strtoll(nanoseconds, NULL, 10) == 0))
		return 0;
	diag_error("cannot record from a time namespace whose clock is not the host's: the times "
		   "of events would be wrong; run it on the host");
	return -EPERM;
}

static int run(struct session *session)
{
	int err = check_clock();

	if (!err)
		err = session_set_up(session);
	if (!err)
		err = session_start(session);
	session_note_signal(session);
	if (err == -EINTR)
		diag_error("ended by a signal before anything was recorded");
	return err ? err : session_record(session);
}

/*
 * Removes the probes. The recorder waits for that, but after a signal only for a short time: then
 * leak-end finishes alone.
 */
static int remove_probes(struct session *session)
{
	struct removal removal;
	uint64_t deadline_ns = UINT64_MAX;
	int err, err_follow;

	session_note_signal(session);
	if (session->interrupted_ns)
		deadline_ns = session->interrupted_ns + REMOVAL_WAIT_NS;
	removal_begin(&removal, &session->own_probes, &session->fork_follow.own_probes);
	record_events_close(&session->events);
	err_follow = fork_follow_close(&session->fork_follow);
	backpressure_destroy(session->backpressure);
	given_up_leave(&session->rounds.given_up);
	bpf_recorder_destroy(session->recorder);
	/* The first signal only sets the deadline. The next one ends the waiting at once. */
	if (session->interrupted_ns)
		session_consume_signals(session->signal_fd);
	err = removal_finish(&removal, session->signal_fd, deadline_ns);
	fork_follow_deinit(&session->fork_follow);
	return err_follow ? err_follow : err;
}

int session_run(const struct session_options *options, int *ret_command_status)
{
	struct session session = {
		.options = options,
		.command.pid = -1,
		.marks.fd = -1,
		.heap_scan.signal_fd = -1,
		.flight.sources = {.pressure_fd = -1, .events_fd = -1},
		.view_fd = options->view_fd,
		.signal_fd = -1,
		.leases.fd = -1,
	};
	int err, err_remove;

	session_let_signals_end(options);
	err = marks_init(&session.marks, options->mark_every_ns);
	if (!err)
		err = heap_scan_init(&session.heap_scan);
	if (!err)
		err = run(&session);

	if (session.command.stopped) {
		/* Set-up failed: the command was only wanted for the recording. */
		kill(session.command.pid, SIGKILL);
		waitpid(session.command.pid, NULL, __WALL);
	}
	perf_writer_destroy(session.writer);
	session.writer = NULL;
	if (err)
		segments_drop_unused(session.segments);
	/* Before leak-end is forked, which would keep the directory locked. */
	segments_destroy(session.segments);
	/*
	 * The process ends now. What may be large (unwinder, held) is not freed: with -a, each
	 * free() hits a probe of ours until leak-end has removed it, and there are a million.
	 */
	err_remove = remove_probes(&session);
	dlopen_watch_deinit(&session.dlopen_watch);
	file_leases_deinit(&session.leases);
	probe_set_deinit(&session.own_probes);
	probe_set_deinit(&session.probes);
	allocator_search_destroy(session.search);
	process_list_deinit(&session.all_processes);
	free(session.start_ticks);
	build_ids_deinit(&session.build_ids);
	if (session.signal_fd >= 0)
		close(session.signal_fd);
	if (session.view_fd >= 0)
		close(session.view_fd);
	marks_deinit(&session.marks);
	heap_scan_deinit(&session.heap_scan);
	flight_deinit(&session.flight);
	windows_deinit(&session.windows);
	*ret_command_status = session.command.status;
	memory_samples_deinit(&session.memory);
	return err ? err : err_remove;
}
