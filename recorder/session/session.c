/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/session.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/interrupted.h"
#include "common/output_file.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "probes/plan/allocator_plan.h"
#include "probes/resources/registered_resources.h"
#include "probes/resources/resource_plan.h"
#include "common/proc/process_stat.h"
#include "common/proc/process_namespace.h"
#include "recorder/events/attach.h"
#include "recorder/backpressure/exempt_processes.h"
#include "recorder/processes/launch.h"
#include "recorder/targets/system_wide.h"
#include "recorder/output/marks.h"
#include "recorder/session/privileges.h"
#include "recorder/processes/process_list.h"
#include "recorder/session/removal.h"
#include "recorder/session/rounds.h"
#include "recorder/output/synthesize.h"
#include "recorder/processes/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <perf/evlist.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* How long a record may wait in a ring that is not filling up: a live reader's delay. */
#define ROUND_MS 100

/* Files that followers may open, when the right to raise the limit has gone. */
#define FOLLOWERS_FDS 65536

/* After a signal, how long the probes' removal is waited for, and the work before it with it. */
#define REMOVAL_WAIT_NS 500000000ULL

/* In one message. */
#define MAX_CHILDREN_NAMED 8

struct session {
	const struct session_options *options;
	const pid_t *pids;
	size_t nr_pids;
	struct process_list everybody; /* these, where all are recorded */
	size_t nr_found;	       /* of these, recorded from the beginning */
	struct launched command;
	struct allocator_search *search; /* knows the allocators' files */
	struct probe_set probes;	 /* all that are recorded */
	struct probe_set own_probes;	 /* of these, the files whose probes are ours to remove */
	struct record_events events;
	struct bpf_recorder *programs;	   /* that record, or NULL: perf events do */
	struct fork_follow follow;	   /* with @programs */
	struct dlopen_watch late;	   /* the same */
	struct backpressure *backpressure; /* NULL: what does not fit is dropped */
	struct live_unwinder *unwinder;	   /* of dumps, or NULL: they are none, or are kept */
	struct perf_writer *writer;
	struct build_ids build_ids;
	int signal_fd;
	int view_fd; /* until there is a writer for it */
	struct marks marks;
	uint64_t start_ns;
	bool targets_gone;	 /* that is why recording ended */
	uint64_t interrupted_ns; /* when a signal ended it; 0: none has */
};

/* --- Signals --- */

static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP};

/* Of the session that plans; or -1. */
static volatile int planning_view_fd = -1;

/* Who shows the recording has the terminal, which it leaves as it was; not for long. */
static void end_planning(int number)
{
	sigset_t set;

	close(planning_view_fd);
	alarm(1);
	waitpid(-1, NULL, 0);
	signal(number, SIG_DFL);
	raise(number);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/*
 * While there is nothing to tidy up, signals end the process, whatever it is doing: what it looks
 * at is others' and may be large. (A script's background job ignores SIGINT.)
 */
static void let_signals_end(const struct session_options *options)
{
	signal(SIGPIPE, SIG_IGN);
	if (options->view_fd >= 0) {
		planning_view_fd = options->view_fd;
		for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++)
			signal(end_signals[i], end_planning);
	} else if (!options->command) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
	}
}

/* From here on they are read from a descriptor, so that none comes at a bad moment. */
static int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++)
		sigaddset(&set, end_signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		diag_error("cannot watch signals: %s", strerror(errno));
	return fd;
}

/* Those that have come by now. */
static void take_signals(int signal_fd)
{
	struct signalfd_siginfo info;

	while (read(signal_fd, &info, sizeof(info)) == sizeof(info))
		;
}

static bool has_signal(const struct session *session)
{
	return is_interrupted() || (session->writer && perf_writer_interrupted(session->writer));
}

/* Between the steps of set-up: -EINTR if a signal has come. What takes long looks for itself. */
static int check_signals(const struct session *session)
{
	return has_signal(session) ? -EINTR : 0;
}

/* --- Set-up --- */

/*
 * Standard output, without blocking where it is a pipe: Ctrl-C must reach a recorder whose reader
 * has stopped reading. A new open file, because others who share ours may want to block.
 */
static int open_stdout(void)
{
	struct stat st;
	int fd = -1;

	if (fstat(STDOUT_FILENO, &st) == 0 && S_ISFIFO(st.st_mode))
		fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

/* The pipe to whoever shows the recording; it gets the same as the file. */
static int open_view(struct session *session, struct perf_writer **ret)
{
	return perf_writer_create(steal_fd(session->view_fd), "the screen's pipe", true, 0,
				  session->signal_fd, ret);
}

static int open_output(struct session *session)
{
	const char *path = session->options->output;
	struct perf_writer *view = NULL;
	bool is_pipe;
	int fd, err = 0;

	if (!path)
		return open_view(session, &session->writer);
	is_pipe = strcmp(path, "-") == 0;
	if (is_pipe && isatty(STDOUT_FILENO)) {
		diag_error(
			"cannot write the recording to a terminal; redirect it, or give -o FILE");
		return -EINVAL;
	}
	fd = is_pipe ? open_stdout() : output_file_open_kept(path);
	if (fd < 0) {
		if (is_pipe)
			diag_error("cannot write to standard output: %s", strerror(-fd));
		return fd;
	}
	err = perf_writer_create(fd, is_pipe ? "the recording" : path, is_pipe,
				 session->options->compression_level, session->signal_fd,
				 &session->writer);
	if (!err && session->view_fd >= 0)
		err = open_view(session, &view);
	if (view)
		perf_writer_mirror(session->writer, view);
	return err;
}

/* Those that were asked for here, or else those that leakprobe was asked for. */
static int plan_resources(struct probe_set *set, pid_t pid, const struct session_options *options)
{
	return options->resources->nr
		       ? resource_plan_pid(set, pid, options->resources)
		       : registered_resources_add(set, pid, &options->resources->schemas);
}

/* Adds what is to be recorded of a process to the session's probes. */
static int plan_process(struct session *session, pid_t pid)
{
	const struct session_options *options = session->options;
	struct probe_set set = {0};
	int err = 0;

	/* Before: what is mapped in between is found twice rather than never. */
	if (!options->config.no_heap)
		err = allocator_search_skip(session->search, pid);
	if (!err && !options->config.no_heap)
		err = allocator_plan_pid(&set, pid, options->mismatch);

	if (!err)
		err = plan_resources(&set, pid, options);
	if (!err) {
		allocator_search_drop_seen(session->search, &set);
		err = probe_set_merge(&session->probes, &set);
	}
	probe_set_deinit(&set);
	return err;
}

static bool is_everywhere(const struct session *session)
{
	return session->options->config.scope != RECORD_PROCESSES;
}

/* Plans the probes for what everybody uses. */
static int find_all_allocators(struct session *session)
{
	int err;

	session->probes.with_operators = session->options->mismatch;
	err = system_wide_find_allocators(&session->options->config, session->search,
					  &session->probes, &session->nr_found);
	if (session->options->config.no_heap)
		probe_set_deinit(&session->probes);
	return err;
}

/* Starts the command, or checks the processes, and plans the probes for what they use. */
static int find_targets(struct session *session)
{
	const struct session_options *options = session->options;
	int err = allocator_search_create(&session->search);

	if (err)
		return err;
	if (is_everywhere(session))
		return find_all_allocators(session);
	if (options->command) {
		const struct launch_options launch = {
			.own_stdout = strcmp(options->output, "-") == 0,
			.operators = options->mismatch,
			.resources = options->resources,
		};

		err = launch_command(options->command, &launch, &session->command,
				     &session->probes);

		if (!err && options->config.no_heap)
			probe_set_deinit(&session->probes);
		if (!err)
			err = allocator_search_skip(session->search, session->command.pid);
		if (!err)
			err = plan_resources(&session->probes, session->command.pid, options);

		session->pids = &session->command.pid;
		session->nr_pids = 1;
		return err;
	}
	session->pids = options->pids;
	session->nr_pids = options->nr_pids;
	for (size_t i = 0; i < options->nr_pids && !err; i++)
		err = plan_process(session, options->pids[i]);
	return err;
}

/* Without allocators, there may be nothing that was asked for. */
static int check_targets(const struct session *session)
{
	const struct session_options *options = session->options;

	if (!options->config.no_heap || session->probes.nr_files || options->config.syscalls)
		return 0;
	diag_error("--no-heap leaves nothing to record: give --pair, --ref or --with, or tell "
		   "leakprobe add");
	return -EINVAL;
}

static bool has_registered_probe(const struct probe_file *file)
{
	for (size_t i = 0; i < file->nr_probes; i++)
		if (file->probes[i].tracefs_id >= 0)
			return true;
	return false;
}

/* Moves the files of @from that have no probe in tracefs to @to. */
static int take_unprobed(struct probe_set *from, struct probe_set *to)
{
	size_t kept = 0;

	to->files = calloc(from->nr_files, sizeof(*to->files));
	if (!to->files)
		return -ENOMEM;
	for (size_t i = 0; i < from->nr_files; i++) {
		if (has_registered_probe(&from->files[i]))
			from->files[kept++] = from->files[i];
		else
			to->files[to->nr_files++] = from->files[i];
	}
	from->nr_files = kept;
	return 0;
}

/* A probe that someone removed from a file's set makes leaks of what it would have recorded. */
static void warn_of_missing(const struct probe_file *file)
{
	_cleanup_free_ char *names = NULL;
	size_t size;
	FILE *out = open_memstream(&names, &size);

	if (!out)
		return;
	for (size_t i = 0; i < file->nr_probes; i++)
		if (file->probes[i].tracefs_id < 0)
			fprintf(out, " %s", file->probes[i].event);
	if (fclose(out) == 0 && size > 0)
		diag_warn("%s lacks the probes%s: what they would record is missed; \"leakprobe "
			  "add\" adds them",
			  file->display, names);
}

/* Uses the probes that leakprobe made, and adds our own where a file has none. */
static int set_up_probes(struct session *session)
{
	int err = probe_set_find(&session->probes);

	if (err < 0)
		return err;
	err = take_unprobed(&session->probes, &session->own_probes);
	for (size_t i = 0; i < session->probes.nr_files && !err; i++)
		warn_of_missing(&session->probes.files[i]);
	if (err || !session->own_probes.nr_files)
		return err;
	err = probe_set_make_own(&session->own_probes);
	/* Links need no uprobe events. */
	if (err || session->programs)
		return err;
	err = probe_set_register(&session->own_probes);
	for (size_t i = 0; i < session->own_probes.nr_files && !err; i++)
		diag_note("%s has no probes: adding them, for this recording only",
			  session->own_probes.files[i].display);
	return err;
}

static void report_start(const struct session *session)
{
	char name[PROCESS_NAME_MAX];

	if (is_everywhere(session)) {
		system_wide_report_start(session->options->cgroup, session->nr_found,
					 session->probes.nr_files + session->own_probes.nr_files);
		return;
	}
	process_namespace_format_name(session->pids[0], name);
	if (session->options->command)
		diag_note("recording %s, %s", session->options->command[0], name);
	else if (session->nr_pids == 1)
		diag_note("recording %s; Ctrl-C ends it", name);
	else
		diag_note("recording %zu processes; Ctrl-C ends it", session->nr_pids);
}

/* Has the programs watch the processes. They record nothing yet. */
static int attach_programs(struct session *session, const struct probe_set *const *sets,
			   size_t nr_sets)
{
	/* Of the files that leakprobe has put probes on, what they record is recorded. */
	static const bool only_registered[] = {true, false};
	int err = bpf_recorder_plan(session->programs, sets, only_registered, nr_sets,
				    &session->options->config, &session->events);

	for (size_t i = 0; i < session->nr_pids && !err; i++) {
		err = check_signals(session);
		if (!err)
			err = bpf_recorder_link(session->programs, session->pids[i]);
	}
	/* Children are among all. */
	if (!err && is_everywhere(session))
		err = bpf_recorder_link(session->programs, 0);
	fork_follow_init(&session->follow, session->programs, session->backpressure);
	dlopen_watch_init(&session->late, session->programs, session->backpressure,
			  session->search);
	session->late.operators = session->options->mismatch;
	return err;
}

/* When recording is to end by time; UINT64_MAX: never. */
static uint64_t session_end_ns(const struct session *session)
{
	uint64_t duration_ns = session->options->duration_ns;

	return duration_ns ? session->start_ns + duration_ns : UINT64_MAX;
}

static int watch_clones(struct session *session)
{
	const struct clone_watch watch = backpressure_clone_watch(session->backpressure);

	return context_breakers_watch(&session->events.breakers, &watch);
}

/* Opens and enables the events, and lets the command go. */
static int start_recording(struct session *session)
{
	const struct session_options *options = session->options;
	const struct probe_set *sets[] = {&session->probes, &session->own_probes};
	int err;

	/* Before the events: the children that inherit some are known to backpressure, then. */
	for (size_t i = 0; i < session->nr_pids && session->backpressure; i++)
		backpressure_add_target(session->backpressure, session->pids[i],
					session->programs != NULL);
	err = exempt_processes_exempt(session->backpressure, options->output, options->pids,
				      options->nr_pids);
	if (!err)
		err = attach_events(&session->events, sets,
				    session->programs ? 0 : ARRAY_SIZE(sets), &options->config,
				    session->pids, session->nr_pids);
	if (!err && session->programs)
		err = attach_programs(session, sets, ARRAY_SIZE(sets));
	else if (!err && session->backpressure)
		err = backpressure_attach(session->backpressure, &session->events);
	if (!err && session->events.breakers.are_needed)
		err = watch_clones(session);
	if (!err && session->unwinder)
		err = live_unwinder_set_events(session->unwinder, &session->events);
	if (!err && session->unwinder && session->programs)
		live_unwinder_set_stack_bases(session->unwinder,
					      bpf_recorder_stack_bases(session->programs),
					      record_config_dump_bytes(&options->config, true));
	if (!err)
		err = marks_describe(&session->events, &options->config,
				     session->programs || session->events.breakers.are_needed);
	if (!err)
		err = perf_writer_begin(session->writer, &session->events, options->argc,
					options->argv);
	if (err)
		return err;
	/* From here on, what happens to the tasks is recorded; before, it is in /proc. */
	perf_evlist__enable(session->events.side.evlist);
	if (is_everywhere(session)) {
		/* One may come to the cgroup later: for who they are, and what they have mapped. */
		err = process_list_add_all(&session->everybody);
		session->pids = session->everybody.pids;
		session->nr_pids = session->everybody.nr;
	}
	for (size_t i = 0; i < session->nr_pids && !err; i++) {
		err = check_signals(session);
		if (!err)
			err = synthesize_process(session->writer, session->pids[i],
						 record_config_keeps_dumps(&options->config),
						 &session->build_ids, session->unwinder);
	}
	if (err)
		return err;
	perf_evlist__enable(session->events.probes.evlist);
	for (size_t i = 0; i < session->nr_pids && session->programs; i++)
		dlopen_watch_know_process(&session->late, session->pids[i]);
	if (session->programs)
		bpf_recorder_start(session->programs);
	session->start_ns = clock_now_ns();
	marks_start(&session->marks, session->start_ns, session_end_ns(session),
		    is_everywhere(session) ? getpid() : session->pids[0]);
	launch_release(&session->command);
	if (session->programs || session->events.breakers.are_needed)
		record_events_raise_fd_limit(FOLLOWERS_FDS);
	privileges_raise_priority();
	/* Backpressure continues what it stopped, followers open events for the first child, and
	 * the code of processes is read to unwind, and to find allocators that come later. */
	privileges_drop(&(struct privileges_kept){
		.kill = session->backpressure != NULL,
		.perfmon = session->programs || session->events.breakers.are_needed,
		.read_code = session->unwinder || session->programs,
	});
	report_start(session);
	return 0;
}

static int remaining_ms(const struct session *session)
{
	uint64_t end_ns = session_end_ns(session), now = clock_now_ns();

	if (end_ns == UINT64_MAX)
		return ROUND_MS;
	if (now >= end_ns)
		return 0;
	return end_ns - now > ROUND_MS * 1000000ULL ? ROUND_MS
						    : (int)((end_ns - now) / 1000000) + 1;
}

/* Tells the view what the recording does not. */
static void tell_status(const struct session *session, const struct ring_reader *reader)
{
	struct live_status *status = session->options->status;

	if (!status)
		return;
	live_status_set(&status->lost, reader->lost);
	if (!session->backpressure)
		return;
	live_status_set(&status->pauses, backpressure_nr_pauses(session->backpressure));
	live_status_set(&status->paused_ns, backpressure_paused_ns(session->backpressure));
}

/* The time to end begins. */
static void note_signal(struct session *session)
{
	if (!session->interrupted_ns && has_signal(session))
		session->interrupted_ns = clock_now_ns();
}

/* Records until the duration is over, a signal comes, the targets are gone or writing fails. */
static int record(struct session *session, struct rounds *rounds)
{
	int err = 0, timeout_ms;

	while (!err && (timeout_ms = remaining_ms(session)) > 0) {
		err = has_signal(session) ? 1 : rounds_wait(rounds, session->signal_fd, timeout_ms);
		if (err == 1 || err == -ESRCH) {
			session->targets_gone = err == -ESRCH;
			note_signal(session);
			err = 0;
			break;
		}
		if (!err)
			err = rounds_run(rounds);
		if (!err)
			err = marks_write(&session->marks, session->writer);
		if (!err)
			err = perf_writer_flush(session->writer);
		tell_status(session, &rounds->reader);
	}
	note_signal(session);
	/* Those that became due after the last round. */
	if (!err)
		err = marks_write(&session->marks, session->writer);
	if (!err)
		err = rounds_stop(rounds);
	if (!err)
		err = rounds_finish(rounds);
	if (err)
		rounds_abandon(rounds);
	return err;
}

/* Waits for a process that is about to end; not for long, it may have reasons to stay. */
static void wait_for_end(pid_t pid)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	if (fd >= 0)
		poll(&poll_fd, 1, 1000);
}

/* What became of the command, where that is worth a word. */
static void report_command(struct session *session)
{
	const char *name;
	int status;

	if (!session->options->command || session->command.pid <= 0)
		return;
	name = session->options->command[0];
	if (session->targets_gone)
		wait_for_end(session->command.pid);
	if (waitpid(session->command.pid, &status, WNOHANG) != session->command.pid)
		diag_note("%s goes on as process %d", name, session->command.pid);
	else if (WIFSIGNALED(status))
		diag_note("%s was killed by signal %d", name, WTERMSIG(status));
	else if (WEXITSTATUS(status))
		diag_note("%s ended with status %d", name, WEXITSTATUS(status));
}

/* What of the stacks did not go as it should; nothing where all did. */
static void describe_stacks(const struct stack_unwind_stats *stats, char *to, size_t size)
{
	size_t len = 0;

	if (stats->truncated)
		len += (size_t)snprintf(to, size, ", %" PRIu64 " of %" PRIu64 " stacks truncated",
					stats->truncated, stats->dumps);
	if (stats->lost)
		len += (size_t)snprintf(to + len, size - len,
					", %" PRIu64 " of %" PRIu64 " stacks incomplete",
					stats->lost, stats->dumps);
	if (stats->by_dwfl)
		snprintf(to + len, size - len, ", %" PRIu64 " unwound by libdwfl", stats->by_dwfl);
}

/*
 * Before Linux 6.12 the kernel may take probes away from tasks that were created without a breaker,
 * and does not say so (context_breakers.h). Where programs record, a process that had to go on
 * before it was set up may have made calls that nobody saw.
 */
static int tell_doubts(const struct session *session, const struct ring_reader *reader)
{
	uint64_t nr = context_breakers_nr_unprotected(&session->events.breakers);
	uint64_t nr_late =
		session->programs ? backpressure_nr_set_up_late(session->backpressure) : 0;

	if (nr)
		diag_warn("%" PRIu64 " process%s or thread%s came to be unguarded, and events may "
			  "be missing: what is held is doubtful; Linux 6.12 needs no guarding",
			  nr, quantity_word(nr, "", "es"), quantity_plural(nr));
	if (!nr && !nr_late)
		return 0;
	return marks_write_doubt(session->marks.pid, reader->end_ns, nr + nr_late, session->writer);
}

static void report_end(const struct session *session, const struct ring_reader *reader)
{
	const char *output = session->options->output;
	char pauses[64] = "", stacks[192] = "";
	uint64_t nr_pauses =
		session->backpressure ? backpressure_nr_pauses(session->backpressure) : 0;

	if (nr_pauses)
		snprintf(pauses, sizeof(pauses), ", paused %" PRIu64 " time%s for %.3f s",
			 nr_pauses, quantity_plural(nr_pauses),
			 (double)backpressure_paused_ns(session->backpressure) / 1e9);
	if (session->unwinder)
		describe_stacks(live_unwinder_stats(session->unwinder), stacks, sizeof(stacks));
	diag_note("%" PRIu64 " events, %.1f MB, %.1f s, %" PRIu64 " lost%s%s: %s", reader->samples,
		  (double)perf_writer_size_bytes(session->writer) / 1e6,
		  (double)(clock_now_ns() - session->start_ns) / 1e9, reader->lost, pauses, stacks,
		  !output		     ? "shown, not kept"
		  : strcmp(output, "-") == 0 ? "standard output"
					     : output);
}

/* BPF programs record where the kernel has what that takes; perf events, at more cost, elsewhere.
 */
static int choose_recorder(struct session *session)
{
	const struct record_config *config = &session->options->config;
	int err = config->perf_events ? 0 : bpf_recorder_create(config, &session->programs);

	if (err != -EOPNOTSUPP && err != -EPROTONOSUPPORT)
		return err;
	if (config->has_sizes) {
		diag_error(
			"cannot record by size: that takes BPF programs (Linux 6.13 and the right "
			"to load them); `leakparse --size` selects from a full recording");
		return err;
	}
	if (err == -EPROTONOSUPPORT)
		diag_note("perf events record, at twice the cost of BPF programs, which this "
			  "kernel may run on a stack that tasks share");
	else
		diag_note("perf events record, at twice the cost of BPF programs, which take Linux "
			  "6.13 and the right to load them");
	return 0;
}

/* It is left so, for it is not known why: perhaps a recorder was killed with its watchdog. */
static void warn_of_stopped(const struct session *session)
{
	const struct session_options *options = session->options;
	struct process_stat status;

	for (size_t i = 0; i < options->nr_pids; i++)
		if (!process_stat_read(options->pids[i], &status) && status.state == 'T')
			diag_warn("process %d is stopped, and stays so; `kill -CONT %d` lets it go "
				  "on",
				  (int)options->pids[i], (int)options->pids[i]);
}

/* A child that the processes have now inherits no event, nor is it among those to be recorded. */
static void warn_of_children(const struct session *session)
{
	const struct session_options *options = session->options;
	_cleanup_free_ char *text = NULL;
	struct task_list list = {0};
	size_t size, nr = 0;
	FILE *out;

	if (options->nr_pids && !task_list_read(&list, options->pids, options->nr_pids) &&
	    (out = open_memstream(&text, &size))) {
		for (size_t i = 0; i < list.nr_children; i++)
			if (exempt_processes_is_foreign(list.children[i], options->pids,
							options->nr_pids) &&
			    ++nr <= MAX_CHILDREN_NAMED)
				fprintf(out, "%s%d", nr > 1 ? "," : "", (int)list.children[i]);
		fclose(out);
	}
	task_list_deinit(&list);
	if (nr == 1)
		diag_warn("not recorded: a child that lives already; add it with -p %s, or record "
			  "its --cgroup",
			  text);
	else if (nr > 1)
		diag_warn("not recorded: %zu children that live already; add them with -p %s%s, or "
			  "record their --cgroup",
			  nr, text, nr > MAX_CHILDREN_NAMED ? ",..." : "");
}

static int run(struct session *session)
{
	struct rounds rounds = {
		.reader =
			{
				.events = &session->events,
				.build_ids = &session->build_ids,
				.end_ns = UINT64_MAX,
			},
		.marks_fd = session->marks.fd,
	};
	struct ring_reader *reader = &rounds.reader;
	int err, finish_err;

	if (!probe_tracefs_dir())
		return -ENOENT;
	err = probe_set_reap();
	if (err >= 0)
		err = find_targets(session);
	if (!err)
		err = check_targets(session);
	if (!err) {
		warn_of_stopped(session);
		warn_of_children(session);
	}
	if (!err)
		err = choose_recorder(session);
	if (!err) {
		session->signal_fd = open_signals();
		err = session->signal_fd < 0 ? session->signal_fd : set_up_probes(session);
	}
	if (!err)
		err = open_output(session);
	/* The watchdog is forked before there is anything that it could keep open. */
	if (!err)
		err = backpressure_create(
			&session->options->config,
			session->programs ? bpf_recorder_target_table(session->programs) : NULL,
			&session->backpressure);
	if (!err && record_config_unwinds(&session->options->config))
		err = live_unwinder_create(&session->unwinder);
	if (!err)
		err = start_recording(session);
	note_signal(session);
	if (err == -EINTR)
		diag_error("ended by a signal before anything was recorded");
	if (err)
		return err;

	reader->writer = session->writer;
	reader->unwinder = session->unwinder;
	reader->recorder = session->programs;
	reader->start_ns = session->start_ns;
	rounds.backpressure = session->backpressure;
	if (session->programs && !is_everywhere(session))
		rounds.fork_follow = &session->follow;
	if (session->programs && !session->options->config.no_heap)
		rounds.dlopen_watch = &session->late;
	err = record(session, &rounds);
	if (session->backpressure)
		backpressure_release(session->backpressure);
	if (!err)
		err = tell_doubts(session, reader);
	finish_err = perf_writer_finish(session->writer, &session->build_ids);
	note_signal(session);
	report_command(session);
	report_end(session, reader);
	ring_reader_deinit(reader);
	return err ? err : finish_err;
}

/*
 * Takes the probes away. The recorder waits for that, but not for long after a signal: what the
 * kernel still has to do then, leak-end waits for.
 */
static int remove_probes(struct session *session)
{
	struct removal removal;
	uint64_t deadline_ns = UINT64_MAX;
	int err, err_follow;

	note_signal(session);
	if (session->interrupted_ns)
		deadline_ns = session->interrupted_ns + REMOVAL_WAIT_NS;
	removal_begin(&removal, &session->own_probes, &session->follow.own_probes);
	record_events_close(&session->events);
	err_follow = fork_follow_close(&session->follow);
	backpressure_destroy(session->backpressure);
	bpf_recorder_destroy(session->programs);
	/* The signal that is known ends the waiting by the deadline only, the next at once. */
	if (session->interrupted_ns)
		take_signals(session->signal_fd);
	err = removal_finish(&removal, session->signal_fd, deadline_ns);
	fork_follow_deinit(&session->follow);
	return err_follow ? err_follow : err;
}

int session_run(const struct session_options *options)
{
	struct session session = {
		.options = options,
		.command.pid = -1,
		.marks.fd = -1,
		.view_fd = options->view_fd,
		.signal_fd = -1,
	};
	int err, err_remove;

	let_signals_end(options);
	err = marks_init(&session.marks, options->mark_every_ns);
	if (!err)
		err = run(&session);

	if (session.command.stopped) {
		/* Set-up failed: a command that nobody records was not asked for. */
		kill(session.command.pid, SIGKILL);
		waitpid(session.command.pid, NULL, __WALL);
	}
	perf_writer_destroy(session.writer);
	session.writer = NULL;
	live_unwinder_destroy(session.unwinder);
	err_remove = remove_probes(&session);
	dlopen_watch_deinit(&session.late);
	probe_set_deinit(&session.own_probes);
	probe_set_deinit(&session.probes);
	allocator_search_destroy(session.search);
	process_list_deinit(&session.everybody);
	build_ids_deinit(&session.build_ids);
	if (session.signal_fd >= 0)
		close(session.signal_fd);
	if (session.view_fd >= 0)
		close(session.view_fd);
	marks_deinit(&session.marks);
	return err ? err : err_remove;
}
