/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/session_setup.h"

#include "common/diag.h"
#include "common/output_file.h"
#include "common/scope.h"
#include "recorder/output/compressor.h"
#include "recorder/processes/return_syscall.h"
#include "recorder/session/privileges.h"
#include "recorder/session/session_signals.h"
#include "recorder/session/session_targets.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/*
 * Opens standard output, non-blocking if it is a pipe: Ctrl-C must reach a recorder whose reader
 * has stopped reading. It has to be a new open file description, since other processes may share
 * ours. One that is only for reading stands for a closed one (diag_begin()).
 */
static int open_stdout(void)
{
	struct stat st;
	int fd = -1;

	if (fstat(STDOUT_FILENO, &st) == 0 && S_ISFIFO(st.st_mode))
		fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	errno = EBADF;
	if (fd < 0 && (fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) != O_RDONLY)
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

/* Opens the writer for the viewer's pipe, which gets the same records as the file. */
static int open_view(struct session *session, struct perf_writer **ret)
{
	bool live = session->options->live_parser != 0;
	int err = perf_writer_create(steal_fd(session->view_fd),
				     live ? "the pipe to the live parser" : "the pipe to the view",
				     true, 0, session->signal_fd, ret);

	if (!err && live)
		perf_writer_never_wait(*ret, &session->options->status->left_out);
	return err;
}

/* Opens what the recording goes to. *@ret_name: for messages. Returns a descriptor or an error. */
static int open_recording(struct session *session, bool is_pipe, const char **ret_name)
{
	const struct session_options *options = session->options;
	int fd, err;

	*ret_name = is_pipe ? "the recording" : options->output;
	if (session_options_keep(options)) {
		err = segments_create(options->output, &options->keep, &session->segments, &fd);
		if (err)
			return err;
		*ret_name = segments_name(session->segments);
		return fd;
	}
	fd = is_pipe ? open_stdout() : output_file_open_kept(options->output);
	if (fd < 0 && is_pipe)
		diag_error("cannot write to standard output: %s", strerror(-fd));
	return fd;
}

static int open_output(struct session *session)
{
	const char *path = session->options->output, *name;
	struct perf_writer *view = NULL;
	int level = session->options->compression_level, fd, err = 0;
	bool is_pipe;

	if (!path)
		return open_view(session, &session->writer);
	is_pipe = strcmp(path, "-") == 0;
	if (is_pipe && isatty(STDOUT_FILENO)) {
		diag_error(
			"cannot write the recording to a terminal; redirect it, or give -o FILE");
		return -EINVAL;
	}
	/* Do not compress for a pipe: its reader would only have to decompress. */
	if (level == SESSION_DEFAULT_COMPRESSION)
		level = is_pipe ? 0 : COMPRESSOR_DEFAULT_LEVEL;
	fd = open_recording(session, is_pipe, &name);
	if (fd < 0)
		return fd;
	err = perf_writer_create(fd, name, is_pipe, level, session->signal_fd, &session->writer);
	if (!err && session->view_fd >= 0)
		err = open_view(session, &view);
	if (view)
		perf_writer_mirror(session->writer, view,
				   !session->options->live_parser ||
					   session->options->needs_live_parser);
	return err;
}

/* Says which probes were removed from a set of leakprobe's, or never were in it. */
static void note_missing(const struct probe_file *file)
{
	_cleanup_free_ char *names = NULL;
	size_t size;
	FILE *out = open_memstream(&names, &size);

	if (!out)
		return;
	for (size_t i = 0; i < file->nr_probes; i++)
		if (file->probes[i].tracefs_id < 0)
			fprintf(out, " %s", file->probes[i].event);
	if (fclose(out) == 0)
		diag_note("%s: leakprobe's probes lack%s; not using them", file->display, names);
}

static size_t nr_registered(const struct probe_file *file)
{
	size_t nr = 0;

	for (size_t i = 0; i < file->nr_probes; i++)
		nr += file->probes[i].tracefs_id >= 0;
	return nr;
}

/* Lets the file have probes of our own in place of leakprobe's. */
static void forget_registered(struct probe_file *file)
{
	if (nr_registered(file))
		note_missing(file);
	for (size_t i = 0; i < file->nr_probes; i++)
		file->probes[i].tracefs_id = -1;
}

/*
 * Moves the files of @from that lack some of their probes in tracefs to @to. Without one of its
 * probes, a file's report has false leaks.
 */
static int move_unprobed(struct probe_set *from, struct probe_set *to)
{
	size_t kept = 0;

	to->files = calloc(from->nr_files, sizeof(*to->files));
	if (!to->files)
		return -ENOMEM;
	for (size_t i = 0; i < from->nr_files; i++) {
		if (nr_registered(&from->files[i]) == from->files[i].nr_probes) {
			from->files[kept++] = from->files[i];
			continue;
		}
		forget_registered(&from->files[i]);
		to->files[to->nr_files++] = from->files[i];
	}
	from->nr_files = kept;
	return 0;
}

/*
 * Uses the probes that leakprobe registered, and adds our own to files without any. Perf events get
 * our own for all files: leakprobe's fetch from memory, for which the kernel may wait
 * (probe_set_make_own()).
 */
static int set_up_probes(struct session *session)
{
	int err = session->recorder ? probe_set_find(&session->probes) : 0;

	if (err < 0)
		return err;
	err = move_unprobed(&session->probes, &session->own_probes);
	if (err || !session->own_probes.nr_files)
		return err;
	err = probe_set_make_own(&session->own_probes);
	/* Links need no uprobe events. */
	if (err || session->recorder)
		return err;
	err = probe_set_register(&session->own_probes);
	for (size_t i = 0; i < session->own_probes.nr_files && !err; i++)
		diag_note("adding probes to %s, for this recording only",
			  session->own_probes.files[i].display);
	return err;
}

static bool has_return_probes(const struct probe_set *set)
{
	for (size_t i = 0; i < set->nr_files; i++)
		for (size_t j = 0; j < set->files[i].nr_probes; j++)
			if (set->files[i].probes[j].point == PROBE_RETURN)
				return true;
	return false;
}

/* Rejects targets that return probes could end (return_syscall.h). */
static int check_filters(struct session *session)
{
	static const char remedy[] = "Linux 6.12.14, 6.13.3 and 6.14 have that corrected";

	if (!has_return_probes(&session->probes))
		return 0;
	session->return_syscall = return_syscall_find();
	for (size_t i = 0; i < session->nr_pids; i++) {
		if (!return_syscall_kills(session->return_syscall, session->pids[i]))
			continue;
		diag_error("cannot record process %d: seccomp could end it at a return "
			   "probe; %s",
			   (int)session->pids[i],
			   session->return_syscall == RETURN_FILTERED
				   ? remedy
				   : "that holds for strict mode on any kernel since 6.11");
		return -EPERM;
	}
	if (session->return_syscall != RETURN_FILTERED)
		return 0;
	if (session_is_system_wide(session)) {
		diag_error("cannot record all processes: this kernel lets seccomp filters end "
			   "processes at return probes; %s",
			   remedy);
		return -EPERM;
	}
	diag_warn("if a recorded process installs a seccomp filter now, that could end it at a "
		  "return probe; %s",
		  remedy);
	return 0;
}

/*
 * Analysing files, loading programs and opening events take CPU time, and many times as long on a
 * busy machine. An analysis would reach its limit, a signal would have to wait, and busy threads of
 * the targets would run between two events.
 */
static int raise_priority(struct session *session)
{
	session->priority_before = privileges_raise_priority();
	return 0;
}

/* Appends why the ways that come before @by cannot be taken. */
static void tell_objections(FILE *out, const char *const objections[RECORD_NR_WAYS],
			    enum record_by by)
{
	static const char *const names[] = {
		[RECORD_BY_SESSION] = "session",
		[RECORD_BY_MULTI] = "multi",
		[RECORD_BY_SINGLE] = "single",
	};

	for (enum record_by way = RECORD_BY_SESSION; way < by && way < RECORD_BY_PERF; way++)
		if (objections[way])
			fprintf(out, "; not %s: %s", names[way], objections[way]);
}

/* With --verbose, says what records, and why. */
static void tell_way(const struct session *session, const char *const objections[RECORD_NR_WAYS])
{
	static const char *const ways[] = {
		[RECORD_BY_SESSION] = "BPF programs on uprobe_multi links, in sessions (session),",
		[RECORD_BY_MULTI] = "BPF programs on uprobe_multi links (multi)",
		[RECORD_BY_SINGLE] = "BPF programs on perf events (single)",
		[RECORD_BY_PERF] = "perf events (perf)",
	};
	enum record_by named = session->options->config.by;
	enum record_by by = session->recorder ? session->recorder->by : RECORD_BY_PERF;
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = session->options->tells_way ? open_memstream(&text, &size) : NULL;

	if (!out)
		return;
	fprintf(out, "%s record", ways[by]);
	if (named == by)
		fputs(", because the command line says so", out);
	else if (by == RECORD_BY_SESSION)
		fputs(", because this kernel has them, and permits them", out);
	else
		tell_objections(out, objections, by);
#if defined(__aarch64__)
	if (by != RECORD_BY_PERF)
		fputs("; malloc takes two traps: where one suffices is known on x86-64 only", out);
#endif
	if (fclose(out) == 0)
		diag_note("%s", text);
}

/* Says that perf events record, or why that is no choice. Returns 0 or @err. */
static int fall_back(const struct record_config *config, const char *const *objections, int err)
{
	if (config->in_windows) {
		diag_error(
			"cannot keep to a budget: that needs BPF programs on uprobe_multi links "
			"(Linux 6.12 or later, and the right to load them): %s; record without "
			"--budget, for a short time (-d)",
			objections[config->by == RECORD_BY_BEST ? RECORD_BY_SESSION : config->by]);
		return err;
	}
	if (config->by != RECORD_BY_BEST) {
		diag_error("cannot record in the way that --record-by names: %s",
			   objections[config->by]);
		return err;
	}
	if (config->at_calls) {
		diag_error("cannot narrow: that needs BPF programs (Linux 6.0 and the right to "
			   "load them); record without --narrow, for a short time (-d)");
		return err;
	}
	if (config->has_sizes) {
		diag_error("cannot record by size: that needs BPF programs (Linux 6.0 and the "
			   "right to load them); `leakparse --size` selects from a full recording");
		return err;
	}
	if (err == -EPROTONOSUPPORT)
		diag_note("perf events record, at twice the cost of BPF programs, which this "
			  "kernel may run on a stack that tasks share");
	else
		diag_note("perf events record, at twice the cost of BPF programs, which cannot be "
			  "used here; -v says why");
	return 0;
}

/* Loads the recording programs if the kernel supports them; else perf events record. */
static int choose_recorder(struct session *session)
{
	const char *objections[RECORD_NR_WAYS] = {0};
	const struct record_config *config = &session->options->config;
	/* Links to files that are mapped later would cover processes that are not recorded. */
	bool by_perf = config->by == RECORD_BY_PERF || session->return_syscall == RETURN_FILTERED;
	int err = by_perf ? 0 : bpf_recorder_create(config, objections, &session->recorder);

	if (by_perf && config->by != RECORD_BY_PERF) {
		for (enum record_by by = RECORD_BY_SESSION; by < RECORD_BY_PERF; by++)
			objections[by] = "seccomp could end processes at return probes";
		err = -EOPNOTSUPP;
	}
	if (err == -EOPNOTSUPP || err == -EPROTONOSUPPORT)
		err = fall_back(config, objections, err);
	if (!err)
		tell_way(session, objections);
	return err;
}

static int reap_registry(struct session *session)
{
	int nr = probe_tracefs_dir() ? probe_set_reap() : -ENOENT;

	return nr < 0 ? nr : 0;
}

static int watch_signals(struct session *session)
{
	int err = file_leases_init(&session->leases);

	if (err)
		return err;
	session->signal_fd = session_open_signals();
	return session->signal_fd < 0 ? session->signal_fd : 0;
}

/* The watchdog is forked before there is an event that it could keep open. */
static int prepare_backpressure(struct session *session)
{
	struct target_table *table =
		session->recorder ? bpf_recorder_target_table(session->recorder) : NULL;

	return backpressure_create(&session->options->config, table, &session->backpressure);
}

static int create_unwinder(struct session *session)
{
	return record_config_unwinds(&session->options->config)
		       ? live_unwinder_create(&session->unwinder)
		       : 0;
}

int session_set_up(struct session *session)
{
	/* Signals end the process at once until there is something to remove, and to be looked for.
	 */
	static int (*const steps[])(struct session *) = {
		reap_registry,	 raise_priority,       session_targets_find, session_targets_check,
		check_filters,	 session_targets_warn, choose_recorder,	     prepare_backpressure,
		create_unwinder, watch_signals,	       open_output,	     set_up_probes,
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(steps) && !err; i++)
		err = steps[i](session);
	return err;
}
