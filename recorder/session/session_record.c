/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/session_record.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/interrupted.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "common/schema/look_state.h"
#include "recorder/session/privileges.h"
#include "recorder/session/record_line.h"
#include "recorder/session/session_signals.h"
#include "recorder/targets/kept_stops.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/*
 * The longest that a record waits in a ring that does not fill up. Live readers see it that late.
 */
#define ROUND_MS 100

/* Between windows, nothing but samples of memory waits. windows_timeout_ms() knows when to ask. */
#define UNOBSERVED_ROUND_MS 5000

static int remaining_ms(const struct session *session)
{
	uint64_t end_ns = session_end_ns(session), now = clock_now_ns();
	int longest_ms = session->options->budget && windows_are_shut(&session->windows)
				 ? UNOBSERVED_ROUND_MS
				 : ROUND_MS;

	if (end_ns == UINT64_MAX)
		return longest_ms;
	if (now >= end_ns)
		return 0;
	return end_ns - now > (uint64_t)longest_ms * 1000000 ? longest_ms
							     : (int)((end_ns - now) / 1000000) + 1;
}

static int round_ms(const struct session *session, int longest_ms)
{
	return session->options->budget ? windows_timeout_ms(&session->windows, longest_ms)
					: longest_ms;
}

/*
 * True if events may be missing that no count shows, so that "0 events lost" would promise too
 * much. What may be missing was reported.
 */
static bool may_miss(const struct session *session)
{
	return session->fork_follow.error || session->events.nr_left_out ||
	       session->rounds.given_up.nr || session->nr_changed || session->nr_without_entry ||
	       (session->recorder &&
		(session->recorder->nr_unlinked || session->recorder->has_headless ||
		 session->recorder->has_left_out || session->recorder->has_left_out_file ||
		 session->recorder->may_have_skipped)) ||
	       context_breakers_nr_unguarded(&session->events.breakers) ||
	       (session->backpressure && backpressure_may_miss(session->backpressure));
}

/*
 * The number of tasks and files whose releases may be missing: tasks that were created without a
 * breaker, before Linux 6.12 (context_breakers.h), or that went on before their set-up was
 * finished, and files whose probes were removed meanwhile.
 */
static uint64_t nr_unguarded(const struct session *session)
{
	uint64_t nr_late =
		session->recorder ? backpressure_nr_set_up_late(session->backpressure) : 0;

	return context_breakers_nr_unguarded(&session->events.breakers) + nr_late +
	       session->rounds.given_up.nr;
}

/* Tells the viewer what the recording does not contain. */
static void tell_status(const struct session *session)
{
	const struct ring_reader *reader = &session->rounds.reader;
	struct live_status *status = session->options->status;

	if (!status)
		return;
	live_status_set(&status->lost, reader->lost);
	live_status_set(&status->may_miss, may_miss(session));
	live_status_set(&status->unguarded, nr_unguarded(session));
	live_status_set(&status->cpu_ns, clock_process_ns());
	if (!session->backpressure)
		return;
	live_status_set(&status->pauses, backpressure_nr_pauses(session->backpressure));
	live_status_set(&status->paused_ns, backpressure_paused_ns(session->backpressure));
}

/*
 * Tells the service manager, which ends this process if it does not hear from it for some time: so
 * only after a round. It hears at once that the recording has begun.
 */
static void tell_manager(const struct session *session, bool is_first)
{
	const struct ring_reader *reader = &session->rounds.reader;
	struct service_manager *manager = session->options->manager;

	if (manager && (is_first || service_manager_is_due(manager, clock_now_ns())))
		service_manager_say(manager,
				    "recording %zu process%s: %" PRIu64 " events, %" PRIu64 " lost",
				    session->nr_pids, quantity_word(session->nr_pids, "", "es"),
				    reader->samples, reader->lost);
}

/* Samples the targets' memory if it is time, or the last one. Rings that fill up go first. */
static int sample_memory(struct session *session, bool is_last)
{
	if (!is_last && (rounds_are_busy(&session->rounds) ||
			 !memory_samples_are_due(&session->memory, clock_now_ns())))
		return 0;
	return memory_samples_write(&session->memory, session->writer);
}

/* Ends the recording. Returns 0 or the writer's error. */
static int stop(struct session *session)
{
	struct rounds *rounds = &session->rounds;
	int err = rounds_are_busy(rounds) ? rounds_run(rounds) : 0;

	if (!err)
		err = sample_memory(session, true);
	privileges_raise_all();
	if (!err && session->options->budget)
		err = windows_stop(&session->windows);
	rounds->reader.end_ns = clock_now_ns();
	/* Before the last rounds, as no later one may bring anything older (ring_reader.h). */
	if (!err && !session->options->budget)
		err = session_write_bound(session, rounds->reader.end_ns, true);
	if (!err)
		err = rounds_stop(rounds);
	/* In windows, the last rounds do not end: the window ends after its last sample. */
	if (!err && session->options->budget)
		err = windows_finish(&session->windows);
	if (!err && session->options->budget)
		err = session_write_bound(session, rounds->reader.end_ns, true);
	return err ? err : rounds_finish(rounds);
}

/* Cuts the recording between two rounds, if it is time. */
static int serve_segments(struct session *session)
{
	const struct ring_reader *reader = &session->rounds.reader;
	const struct windows *windows = session->options->budget ? &session->windows : NULL;
	const struct segments_now now = {
		.round_ns = reader->round_ns,
		.is_whole = !reader->busy && !(windows && windows_hold_round(windows)),
		.lost = reader->lost,
		.build_ids = &session->build_ids,
	};
	int cut = session->segments ? segments_serve(session->segments, &now) : 0;

	if (cut == 1)
		return windows ? windows_restate(windows, now.round_ns) : 0;
	return cut;
}

/* What is due in each round. Returns 0 or the writer's error. */
static int run_round(struct session *session)
{
	int err = rounds_run(&session->rounds);

	if (!err)
		err = serve_segments(session);
	if (!err && session->options->budget)
		err = windows_serve(&session->windows, rounds_have_drained(&session->rounds));
	if (!err)
		err = marks_write(&session->marks, session->writer);
	/* SIGUSR2 is for one of them. */
	if (!err && session->options->keep.in_memory)
		err = flight_serve(&session->flight, session->writer);
	else if (!err)
		err = heap_scan_serve(&session->heap_scan, session->writer);
	if (!err)
		err = sample_memory(session, false);
	if (!err)
		err = perf_writer_flush(session->writer);
	return err;
}

/*
 * Has the processes scanned, while they are still recorded: what they allocate and release
 * meanwhile is in the recording. If they are gone, a scan that is running may still have seen them.
 * A second signal ends it. Returns 0 or the writer's error.
 */
static int scan_at_end(struct session *session)
{
	int err = 0;

	if (!session->options->scan)
		return 0;
	heap_scan_end(&session->heap_scan, !session->targets_gone);
	if (!session->targets_gone) {
		session_consume_signals(session->signal_fd);
		session->fork_follow.interrupted = false;
		diag_note("scanning what the process%s can still get to; Ctrl-C leaves that out",
			  session->nr_pids > 1 ? "es" : "");
	}
	/* The writer may have taken the first signal, and knows of it still. */
	while (!err && heap_scan_is_busy(&session->heap_scan) && !is_interrupted()) {
		err = rounds_wait(&session->rounds, session->signal_fd,
				  round_ms(session, ROUND_MS));
		if (err >= 0 || err == -ESRCH)
			err = run_round(session);
	}
	if (!err && heap_scan_is_busy(&session->heap_scan))
		diag_warn("the scan was left out");
	return err;
}

/* Records until the duration is over, a signal comes, the targets are gone or writing fails. */
static int record(struct session *session)
{
	struct rounds *rounds = &session->rounds;
	struct record_line line = {0};
	int err = 0, timeout_ms;

	/* A command, and the view, have the terminal for themselves. */
	if (!session->options->command && !session->options->with_view)
		record_line_init(&line, session->start_ns);
	tell_manager(session, true);
	while (!err && (timeout_ms = remaining_ms(session)) > 0) {
		err = session_has_signal(session) ? 1
						  : rounds_wait(rounds, session->signal_fd,
								round_ms(session, timeout_ms));
		if (err == 1 || err == -ESRCH) {
			session->targets_gone = err == -ESRCH;
			session_note_signal(session);
			err = 0;
			break;
		}
		if (!err)
			err = run_round(session);
		tell_status(session);
		if (!err)
			tell_manager(session, false);
		record_line_update(&line, clock_now_ns(), session_end_ns(session),
				   rounds->reader.samples);
	}
	record_line_end(&line);
	if (session->options->manager)
		service_manager_say_stopping(session->options->manager);
	session_note_signal(session);
	/* Marks that became due after the last round. */
	if (!err)
		err = marks_write(&session->marks, session->writer);
	if (!err)
		err = scan_at_end(session);
	heap_scan_stop(&session->heap_scan);
	if (!err)
		err = stop(session);
	if (err)
		rounds_abandon(rounds);
	return err;
}

/* Waits at most a second for a process that is about to end. */
static void wait_for_end(pid_t pid)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	if (fd >= 0)
		poll(&poll_fd, 1, 1000);
}

/* Stores how the command ended, and reports it unless it succeeded. */
static void report_command(struct session *session)
{
	struct launched *command = &session->command;
	const char *name;
	int status;

	if (!session->options->command || session->command.pid <= 0)
		return;
	name = session->options->command[0];
	if (session->targets_gone)
		wait_for_end(session->command.pid);
	if (waitpid(command->pid, &status, WNOHANG) != command->pid) {
		diag_note("%s goes on as process %d", name, command->pid);
	} else if (WIFSIGNALED(status)) {
		command->status = 128 + WTERMSIG(status);
		diag_note("%s was killed by signal %d", name, WTERMSIG(status));
	} else if (WEXITSTATUS(status)) {
		command->status = WEXITSTATUS(status);
		diag_note("%s ended with status %d", name, command->status);
	}
}

/* Describes failures of unwinding; empty if there were none. */
static void describe_stacks(const struct stack_unwind_stats *stats, char *to, size_t size)
{
	size_t len = 0;

	if (stats->truncated)
		len += (size_t)snprintf(to, size, ", %" PRIu64 " of %" PRIu64 " stack%s truncated",
					stats->truncated, stats->dumps,
					quantity_plural(stats->dumps));
	if (stats->lost)
		len += (size_t)snprintf(to + len, size - len,
					", %" PRIu64 " of %" PRIu64 " stack%s incomplete",
					stats->lost, stats->dumps, quantity_plural(stats->dumps));
	if (stats->by_dwfl)
		snprintf(to + len, size - len, ", %" PRIu64 " unwound by libdwfl", stats->by_dwfl);
}

/*
 * Notes in the recording that events may be missing. What is held is doubtful if something was
 * unguarded. Otherwise only first calls of children and of new files are in question. Readers that
 * know no windows must not take what was not observed for leaks.
 */
static int tell_doubts(const struct session *session)
{
	const struct ring_reader *reader = &session->rounds.reader;
	uint64_t nr = context_breakers_nr_unguarded(&session->events.breakers);
	int err = 0;

	if (nr)
		diag_warn("events may be missing: %" PRIu64 " process%s or thread%s started "
			  "unguarded, so what is held is doubtful; Linux 6.12 has no such problem",
			  nr, quantity_word(nr, "", "es"), quantity_plural(nr));
	if (may_miss(session))
		err = marks_write_doubt(session->marks.pid, reader->end_ns, nr_unguarded(session),
					session->writer);
	if (!err && session->options->budget)
		err = marks_write_doubt(session->marks.pid, reader->end_ns, WINDOW_DOUBT,
					session->writer);
	return err;
}

/* Before the last line, which scripts read. */
static void advise_rings(const struct session *session)
{
	const struct ring_reader *reader = &session->rounds.reader;
	const struct ring_losses losses =
		ring_reader_losses(reader, session->options->config.ring_pages);
	char advice[192];

	ring_advice_text(advice, sizeof(advice), &losses);
	if (*advice)
		diag_warn("events were lost: %s", advice);
}

static void report_end(const struct session *session)
{
	const struct ring_reader *reader = &session->rounds.reader;
	const char *output = session->options->output;
	/* After a failure, the recording ends now. */
	uint64_t end_ns = reader->end_ns < UINT64_MAX ? reader->end_ns : clock_now_ns();
	_cleanup_free_ char *windows =
		session->options->budget ? windows_describe(&session->windows, end_ns) : NULL;
	_cleanup_free_ char *ring =
		session->options->keep.in_memory ? segments_describe_ring(session->segments) : NULL;
	char pauses[64] = "", stacks[192] = "";
	uint64_t nr_pauses =
		session->backpressure ? backpressure_nr_pauses(session->backpressure) : 0;

	if (nr_pauses)
		snprintf(pauses, sizeof(pauses), ", paused %" PRIu64 " time%s for %.3f s",
			 nr_pauses, quantity_plural(nr_pauses),
			 (double)backpressure_paused_ns(session->backpressure) / 1e9);
	advise_rings(session);
	if (session->segments)
		segments_report(session->segments);
	if (session->unwinder)
		describe_stacks(live_unwinder_stats(session->unwinder), stacks, sizeof(stacks));
	diag_note("%" PRIu64 " event%s, %s, %.1f s, %" PRIu64 " %sevent%s lost%s%s%s%s%s: %s",
		  reader->samples, quantity_plural(reader->samples),
		  quantity_bytes((double)perf_writer_size_bytes(session->writer)).text,
		  (double)(clock_now_ns() - session->start_ns) / 1e9, reader->lost,
		  may_miss(session) ? "or more " : "",
		  quantity_plural(may_miss(session) ? 0 : reader->lost), pauses, stacks,
		  windows ? windows : "", ring ? ring : "",
		  session->options->config.nr_filters ? ", only a part (--filter)"
		  : session->options->config.at_calls ? ", only a part (--narrow)"
						      : "",
		  !output		     ? "shown only; -o FILE keeps the recording"
		  : strcmp(output, "-") == 0 ? "standard output"
					     : output);
}

static void init_rounds(struct session *session)
{
	struct rounds *rounds = &session->rounds;

	rounds->reader = (struct ring_reader){
		.events = &session->events,
		.writer = session->writer,
		.build_ids = &session->build_ids,
		.recorder = session->recorder,
		.unwinder = session->unwinder,
		.held = session->held,
		.windows = session->options->budget ? &session->windows : NULL,
		.segments = session->segments,
		.start_ns = session->start_ns,
		.end_ns = UINT64_MAX,
	};
	rounds->memory = &session->memory;
	rounds->ends = flight_ends(&session->flight);
	rounds->marks_fd = session->marks.fd;
	rounds->scan = &session->heap_scan;
	rounds->backpressure = session->backpressure;
	if (session->recorder && !session_is_system_wide(session) && !session->options->budget)
		rounds->fork_follow = &session->fork_follow;
	if (session->recorder && !session->options->config.no_heap)
		rounds->dlopen_watch = &session->dlopen_watch;
	rounds->given_up = (struct given_up){
		.leases = &session->leases,
		.events = &session->events,
		.recorder = session->recorder,
		.backpressure = session->backpressure,
		/* Without links, it has the events of all processes, though it follows no fork. */
		.fork_follow = session->recorder ? &session->fork_follow : NULL,
		.dlopen_watch = rounds->dlopen_watch,
	};
}

/* Writes what is in memory, if there is a reason. Returns 0 or a negative errno, reported. */
static int end_ring(struct session *session)
{
	if (!session->options->keep.in_memory)
		return 0;
	session_consume_signals(session->signal_fd);
	return segments_end(session->segments, flight_end(&session->flight, session->targets_gone),
			    is_interrupted);
}

int session_record(struct session *session)
{
	int err, finish_err, ring_err;

	init_rounds(session);
	err = record(session);
	if (session->backpressure) {
		backpressure_release(session->backpressure);
		kept_stops_tell(backpressure_table(session->backpressure), session->recorder);
	}
	if (!err)
		err = tell_doubts(session);
	finish_err = perf_writer_finish(session->writer, &session->build_ids);
	session_note_signal(session);
	/* Also after a failure: what was recorded before it may be worth more than ever. */
	ring_err = end_ring(session);
	report_command(session);
	report_end(session);
	ring_reader_deinit(&session->rounds.reader);
	if (err)
		return err;
	return finish_err ? finish_err : ring_err;
}
