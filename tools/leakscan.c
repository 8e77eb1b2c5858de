/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakscan: what is in a process's heap, and what nothing points to any more.
 *
 * This process takes snapshots and has the rights to do so. It reads nothing of what is in them:
 * child processes without privileges do, one for each snapshot. If it is root's, a broker opens the
 * debug files that they ask for.
 */
#include "common/broker/broker.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/options.h"
#include "common/output_file.h"
#include "common/proc/process_stat.h"
#include "common/sandbox/unprivileged.h"
#include "common/scope.h"
#include "scan/analysis/analyst.h"
#include "scan/recording/recorded_blocks.h"
#include "scan/recording/recording_report.h"
#include "scan/recording/traced_list.h"
#include "scan/report/block_lines.h"
#include "scan/report/census_json.h"
#include "scan/report/growth.h"
#include "scan/report/screen.h"
#include "scan/core/core_file.h"
#include "scan/snapshot/live_snapshot.h"
#include "tools/leakscan_options.h"
#include "unwind/modules/file_services.h"
#include "unwind/names/jit_names.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Two snapshots a second apart agree, or a block is not called lost. */
#define BETWEEN_NS 1000000000ull

/* A thread that stood still in the midst of malloc() may leave the heap inconsistent. */
#define MAX_TRIES 5

struct run {
	const struct leakscan_options *options;
	pid_t pid;
	pid_t broker_pid;
	int broker_fd; /* -1: none */
	uint64_t max_pause_ns;
	struct module_symbols symbols;
	struct census_file before;	 /* --diff */
	struct recording_file recording; /* --recording */
};

/* Writes what was asked for; in the process that has no privileges. */
static int write_report(void *context, const struct scan *scan)
{
	struct run *run = context;
	const struct leakscan_options *options = run->options;
	struct module_symbols symbols = run->symbols;
	struct scan_report report = {.scan = scan, .symbols = &symbols};
	int err = 0;

	object_types_init(&report.types, scan->snapshot);
	if (options->recording)
		err = recording_report_write(stdout, &report, &run->recording,
					     options->blocks ? RECORDING_REPORT_BLOCKS
					     : options->all  ? RECORDING_REPORT_ALL
							     : RECORDING_REPORT_SCREEN);
	else if (options->blocks)
		block_lines_write(stdout, &report, options->without_held);
	else if (options->has_why)
		err = block_path_write(stdout, &report, options->why);
	else if (options->diff)
		err = growth_write(stdout, &report, &run->before, options->all);
	else if (options->format == LEAKSCAN_JSON)
		err = census_json_write(stdout, &report);
	else
		err = screen_write(stdout, &report, options->all);
	object_types_deinit(&report.types);
	errno = 0;
	if (!err && (fflush(stdout) || ferror(stdout))) {
		err = errno ? -errno : -EIO;
		diag_output_failed("the report", -err);
	}
	return err;
}

/* Where the blocks of an unknown allocator are; in a process that has no privileges. */
static int read_traced(void *context, const struct snapshot *snapshot, struct traced_blocks *ret)
{
	struct run *run = context;
	int err;

	if (run->options->traced)
		return traced_list_ask((int)run->options->traced, snapshot, ret);
	err = recording_read(&run->recording, snapshot);
	return err ? err : recorded_blocks_list(&run->recording.analysis, snapshot->pid, ret);
}

/* A process is named by its id and its start. */
static int check_before(const struct run *run)
{
	const struct census_file *before = &run->before;
	struct process_stat stat;
	int err;

	if (!run->options->diff || run->options->other_process)
		return 0;
	err = process_stat_read(run->pid, &stat);
	if (!err && before->pid == (uint64_t)run->pid &&
	    before->start_ticks == stat.start_time_ticks)
		return 0;
	diag_error("cannot compare with %s: it is of %s; --other-process does so all the same",
		   before->path,
		   before->pid == (uint64_t)run->pid ? "an earlier process with this id"
						     : "another process");
	return -EINVAL;
}

static void wait_until(uint64_t time_ns)
{
	uint64_t now_ns = clock_now_ns();
	struct timespec pause = {
		.tv_sec = time_ns > now_ns ? (time_t)((time_ns - now_ns) / 1000000000) : 0,
		.tv_nsec = time_ns > now_ns ? (long)((time_ns - now_ns) % 1000000000) : 0,
	};

	nanosleep(&pause, NULL);
}

/* Takes a snapshot and has it analysed, again if the heap was not whole. */
static int take(struct run *run, const struct lost_list *before, struct analyst_task *task)
{
	int err = 0;

	for (int nr = 1; nr <= MAX_TRIES; nr++) {
		struct snapshot snapshot;

		err = live_snapshot_take(&snapshot, run->pid, run->options->pause_limit_ns,
					 run->options->stop);
		if (run->max_pause_ns < snapshot.pause_ns)
			run->max_pause_ns = snapshot.pause_ns;
		snapshot.max_pause_ns = run->max_pause_ns;
		task->accepts_doubt = nr == MAX_TRIES;
		task->taken_ns = snapshot.taken_ns;
		if (run->options->traced || run->options->recording)
			task->traced = (struct traced_source){read_traced, run};
		if (!err)
			err = analyst_run(task, &snapshot, before);
		snapshot_deinit(&snapshot);
		if (err != -EAGAIN)
			return err;
	}
	return err;
}

/* What this process has inherited is not for its children. All else that it opens is. */
static void keep_only_own_files(const struct run *run)
{
	const int kept[] = {
		STDIN_FILENO,	STDOUT_FILENO,	STDERR_FILENO,	   (int)run->options->traced,
		run->broker_fd, run->before.fd, run->recording.fd,
	};

	unprivileged_keep_only(kept, ARRAY_SIZE(kept));
}

static int scan_process(struct run *run)
{
	struct analyst_task first = {.broker_fd = run->broker_fd}, last = first;
	int err;

	last.write = write_report;
	last.context = run;
	run->pid = run->options->pid;
	keep_only_own_files(run);
	err = live_snapshot_check(&run->pid);
	if (!err)
		err = check_before(run);
	if (err)
		return err;
	module_symbols_open(&run->symbols, run->pid);
	if (!run->options->once)
		err = take(run, NULL, &first);
	if (!err && !run->options->once)
		wait_until(first.taken_ns + BETWEEN_NS);
	if (!err)
		err = take(run, run->options->once ? NULL : &first.lost, &last);
	analyst_task_deinit(&first);
	module_symbols_deinit(&run->symbols);
	return err;
}

static int scan_core(struct run *run)
{
	struct analyst_task task = {.broker_fd = run->broker_fd,
				    .write = write_report,
				    .context = run,
				    .accepts_doubt = true};
	struct snapshot snapshot;
	int err = core_file_read(&snapshot, run->options->core);

	keep_only_own_files(run);
	if (!err)
		err = analyst_run(&task, &snapshot, NULL);
	snapshot_deinit(&snapshot);
	return err;
}

/* Opens the file that is read. Writing the output must not destroy it before that. */
static int open_input(struct run *run)
{
	const struct leakscan_options *options = run->options;
	struct stat input, output;
	int err = options->diff	       ? census_file_open(&run->before, options->diff)
		  : options->recording ? recording_file_open(&run->recording, options->recording)
				       : 0;

	if (err || !options->output ||
	    fstat(options->diff ? run->before.fd : run->recording.fd, &input) < 0 ||
	    stat(options->output, &output) < 0 || input.st_dev != output.st_dev ||
	    input.st_ino != output.st_ino)
		return err;
	diag_error("cannot write %s: %s reads it; give -o another file", options->output,
		   options->diff ? "--diff" : "--recording");
	return -EINVAL;
}

/* The copies take much memory. If there is none left, this process ends, not the one it scans. */
static void prefer_in_oom(void)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		output_write_all(fd, "1000", strlen("1000"));
}

static void __attribute__((noreturn)) be_broker(int socket_fd)
{
	struct broker_service services[BROKER_NR_OPS] = {0};

	prctl(PR_SET_NAME, "leak-broker");
	if (unprivileged_read_only(true)) {
		diag_error("the broker of the analysis cannot give up its privileges");
		_exit(DIAG_EXIT_FAILED);
	}
	unprivileged_limit_broker(0);
	file_services_add(services, NULL);
	services[BROKER_OPEN_JIT_NAMES].serve = jit_names_serve;
	broker_serve(socket_fd, services);
	_exit(DIAG_EXIT_OK);
}

/* Another user than root has no rights that the analysis would have to give up. */
static int start_broker(struct run *run)
{
	int socket_fd;

/* As tools/separation.c. */
#ifdef __SANITIZE_ADDRESS__
	return 0;
#endif
	if (geteuid() != 0)
		return 0;
	/* This process asks nothing: an analysis that is taken over may leave answers there. */
	run->broker_pid = broker_fork_other(&socket_fd);
	if (run->broker_pid < 0)
		return run->broker_pid;
	if (run->broker_pid == 0)
		be_broker(socket_fd);
	run->broker_fd = socket_fd;
	return 0;
}

static void end_broker(struct run *run)
{
	if (run->broker_fd < 0)
		return;
	close(run->broker_fd);
	while (waitpid(run->broker_pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int main(int argc, char **argv)
{
	struct leakscan_options options;
	struct run run = {
		.options = &options, .broker_fd = -1, .before.fd = -1, .recording.fd = -1};
	int err;

	diag_begin("leakscan");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	err = leakscan_options_parse(argc, argv, &options);
	if (err)
		return options_exit_status(err);
	prefer_in_oom();
	/* It would hold what the process has in its memory. */
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	err = start_broker(&run);
	if (!err)
		err = open_input(&run);
	if (!err && options.output)
		err = output_file_redirect(options.output);
	if (!err)
		err = options.core ? scan_core(&run) : scan_process(&run);
	census_file_close(&run.before);
	recording_file_close(&run.recording);
	end_broker(&run);
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}
