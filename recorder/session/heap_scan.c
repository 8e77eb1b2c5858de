/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/heap_scan.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/proc/living_thread.h"
#include "common/proc/proc_file.h"
#include "common/proc/process_memory.h"
#include "common/proc/sibling_program.h"
#include "common/quantity.h"
#include "common/schema/reach_class.h"
#include "common/schema/traced_list.h"
#include "common/scope.h"
#include "recorder/output/own_samples.h"
#include "recorder/held/held_list.h"
#include "recorder/session/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a scanner: leakscan's file. */
#define PROGRAM_FD (STDERR_FILENO + 1)
#define LIST_FD	   (STDERR_FILENO + 2)
#define LISTED_FD  (STDERR_FILENO + 3)

/* leakscan takes 5 s for 1 GiB (docs/reachability.md, "Cost"), and the machine may be busy. */
#define LIMIT_NS	  (60 * 1000000000ull)
#define LIMIT_NS_PER_BYTE 50

/* What a scanner writes when leakscan has ended. */
#define END_LINE "# end"

/* Of one scan of a process; leakscan names 256. */
#define MAX_HOLDERS 1024

/* In a child of the scanner. */
static void __attribute__((noreturn))
become_leakscan(const struct scanner *scanner, uint64_t pause_limit_ns)
{
	char number[16], limit[40], list[24];
	const char *argv[] = {"leakscan", "-p", number, "--blocks", "--not-held", NULL, NULL, NULL};
	size_t nr = 5;
	sigset_t none;

	snprintf(number, sizeof(number), "%d", (int)scanner->pid);
	snprintf(limit, sizeof(limit), "--pause-limit=%" PRIu64 "us", pause_limit_ns / 1000);
	snprintf(list, sizeof(list), "--traced=%d", LIST_FD);
	if (pause_limit_ns)
		argv[nr++] = limit;
	if (scanner->list_fd >= 0) {
		argv[nr] = list;
		dup2(LISTED_FD, STDIN_FILENO);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fexecve(PROGRAM_FD, (char *const *)argv, environ);
	diag_error("cannot start leakscan, for --scan: %s", strerror(errno));
	_exit(DIAG_EXIT_FAILED);
}

/* The descriptors of a scanner, and where it has them; list and listed ends may be -1. */
struct scanner_ends {
	int go, lines, program, list, listed;
};

/* Returns false if that fails. A place may be that of another one, so all are moved away first. */
static bool place_ends(struct scanner_ends *ends)
{
	const struct {
		int *fd, place;
	} places[] = {
		{&ends->go, STDIN_FILENO},    {&ends->lines, STDOUT_FILENO},
		{&ends->program, PROGRAM_FD}, {&ends->list, LIST_FD},
		{&ends->listed, LISTED_FD},
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (*places[i].fd >= 0)
			*places[i].fd = fcntl(*places[i].fd, F_DUPFD, LISTED_FD + 1);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (*places[i].fd >= 0 && dup2(*places[i].fd, places[i].place) < 0)
			return false;
	syscall(SYS_close_range, ends->list < 0 ? LIST_FD : LISTED_FD + 1, ~0u, 0);
	fcntl(PROGRAM_FD, F_SETFD, FD_CLOEXEC);
	return true;
}

/*
 * In the child of leakrec: keeps nothing but its ends, and has a scan made whenever it is told to.
 * The line at its end is the scanner's, as leakscan may end anyhow.
 */
static void __attribute__((noreturn))
become_scanner(const struct scanner *scanner, struct scanner_ends *ends, uint64_t pause_limit_ns)
{
	static const char end[] = "\n" END_LINE "\n";
	sigset_t all;
	char byte;

	/* Signals are for leakrec and for leakscan. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setpgid(0, 0);
	prctl(PR_SET_NAME, "leak-scanner");
	if (!place_ends(ends))
		_exit(DIAG_EXIT_FAILED);
	privileges_drop_for_scanner();
	/* If leakrec has ended, read() returns 0. */
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		pid_t child = fork();

		if (child == 0)
			become_leakscan(scanner, pause_limit_ns);
		waitpid(child, NULL, 0);
		if (write(STDOUT_FILENO, end, strlen(end)) < 0)
			break;
	}
	_exit(DIAG_EXIT_OK);
}

static int open_pipe(int *ret_read, int *ret_write)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_read = fds[0];
	*ret_write = fds[1];
	return 0;
}

static int start_scanner(struct scanner *scanner, int program_fd, int priority,
			 uint64_t pause_limit_ns, bool with_list)
{
	_cleanup_close_ int go_end = -1, lines_end = -1, listed_end = -1;
	int err = open_pipe(&go_end, &scanner->go_fd);

	if (!err)
		err = open_pipe(&scanner->lines_fd, &lines_end);
	if (!err && with_list)
		err = open_pipe(&listed_end, &scanner->listed_fd);
	if (err)
		return err;
	if (with_list) {
		scanner->list_fd = memfd_create("leakrec-list", MFD_CLOEXEC);
		if (scanner->list_fd < 0)
			return -errno;
		fcntl(scanner->listed_fd, F_SETFL, O_NONBLOCK);
	}
	fcntl(scanner->lines_fd, F_SETFL, O_NONBLOCK);
	scanner->child = fork();
	if (scanner->child == 0) {
		struct scanner_ends ends = {go_end, lines_end, program_fd, scanner->list_fd,
					    listed_end};

		setpriority(PRIO_PROCESS, 0, priority);
		become_scanner(scanner, &ends, pause_limit_ns);
	}
	if (scanner->child < 0)
		return -errno;
	/* It does so, too: a signal to the group must not come before. */
	setpgid(scanner->child, scanner->child);
	return 0;
}

int heap_scan_init(struct heap_scan *ret)
{
	sigset_t set;

	*ret = (struct heap_scan){.signal_fd = -1};
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ret->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (ret->signal_fd >= 0)
		return 0;
	diag_error("cannot watch for SIGUSR2: %s", strerror(errno));
	return -errno;
}

int heap_scan_prepare(struct heap_scan *scan, const pid_t *pids, size_t nr_pids, int priority,
		      uint64_t pause_limit_ns, const struct held_blocks *held)
{
	_cleanup_close_ int program_fd = sibling_program_open("leakscan");
	int err = program_fd < 0 ? program_fd : 0;

	scan->held = held;
	for (size_t i = 0; i < nr_pids && !err; i++) {
		struct scanner *scanner = &scan->scanners[scan->nr++];

		*scanner = (struct scanner){.pid = pids[i],
					    .go_fd = -1,
					    .lines_fd = -1,
					    .list_fd = -1,
					    .listed_fd = -1};
		err = start_scanner(scanner, program_fd, priority, pause_limit_ns, held);
	}
	if (err)
		diag_error("cannot start leakscan, for --scan: %s", strerror(-err));
	return err;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * Ends leakscan, too, which then lets the process go on. It is not waited for: it may be waiting in
 * the kernel, for a server of the process's files.
 */
static void end_scanner(struct scanner *scanner)
{
	close_fd(&scanner->go_fd);
	close_fd(&scanner->lines_fd);
	close_fd(&scanner->list_fd);
	close_fd(&scanner->listed_fd);
	if (scanner->child <= 0)
		return;
	kill(-scanner->child, SIGKILL);
	waitpid(scanner->child, NULL, 0);
	scanner->child = 0;
}

void heap_scan_stop(struct heap_scan *scan)
{
	for (size_t i = 0; i < scan->nr; i++)
		end_scanner(&scan->scanners[i]);
	scan->nr = 0;
	scan->is_running = false;
}

void heap_scan_deinit(struct heap_scan *scan)
{
	heap_scan_stop(scan);
	close_fd(&scan->signal_fd);
}

void heap_scan_end(struct heap_scan *scan, bool with_scan)
{
	scan->is_ending = true;
	scan->is_wanted = with_scan;
}

bool heap_scan_is_busy(const struct heap_scan *scan)
{
	return scan->is_running || scan->is_wanted;
}

int heap_scan_lines_fd(const struct heap_scan *scan)
{
	return scan->is_running ? scan->scanners[scan->at].lines_fd : -1;
}

/* What is known where only recorded blocks are, and which of these are not known. */
static void report_traced(const struct heap_scan *scan)
{
	uint64_t left_out = held_blocks_left_out(scan->held),
		 out_of_order = held_blocks_out_of_order(scan->held);

	diag_note("scan %u: of %" PRIu64 " recorded block%s, %s, no holder was found; with this "
		  "allocator, that is no proof",
		  scan->number, scan->nr_without_holder, quantity_plural(scan->nr_without_holder),
		  quantity_bytes((double)scan->without_holder_bytes).text);
	if (left_out)
		diag_warn(
			"%" PRIu64 " allocation%s %s left out of scans: there was no room, or the "
			"size is not known",
			left_out, quantity_plural(left_out), quantity_word(left_out, "is", "are"));
	if (out_of_order)
		diag_warn("scans may take blocks for held that were released: %" PRIu64
			  " events came in one round",
			  out_of_order);
}

/* One line for each scan, which scripts may wait for. */
static void report_scan(const struct heap_scan *scan)
{
	if (!scan->nr_scanned)
		diag_warn("scan %u has no result; the messages before say why", scan->number);
	else if (!scan->is_traced || scan->nr_lost)
		diag_note("scan %u: %" PRIu64
			  " block%s, %s, of the heap %s lost; some may be older "
			  "than the recording",
			  scan->number, scan->nr_lost, quantity_plural(scan->nr_lost),
			  quantity_bytes((double)scan->lost_bytes).text,
			  quantity_word(scan->nr_lost, "is", "are"));
	if (scan->nr_scanned && scan->is_traced)
		report_traced(scan);
}

/* How long a scan may take. */
static uint64_t limit_ns(pid_t pid)
{
	struct process_memory memory = {0};
	char path[PROC_FILE_PATH_SIZE];

	proc_file_path(path, living_thread(pid), "");
	_cleanup_close_ int proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd >= 0)
		(void)process_memory_read_at(proc_fd, &memory);
	return LIMIT_NS +
	       (memory.anon_bytes + memory.shared_bytes + memory.swap_bytes) * LIMIT_NS_PER_BYTE;
}

/* Has the process that @at says scanned, or a later one if that fails. */
static void start_next(struct heap_scan *scan)
{
	for (; scan->at < scan->nr; scan->at++) {
		const struct scanner *scanner = &scan->scanners[scan->at];

		scan->stopped_ns = scan->asked_ns = 0;
		scan->len = 0;
		scan->is_too_long = scan->is_in_doubt = false;
		scan->end_ns = clock_now_ns() + limit_ns(scanner->pid);
		if (write(scanner->go_fd, "", 1) == 1)
			return;
		diag_warn("cannot scan process %d: %s", (int)scanner->pid,
			  scanner->child ? strerror(errno) : "an earlier scan took too long");
	}
	scan->is_running = false;
	report_scan(scan);
}

static void begin(struct heap_scan *scan)
{
	scan->is_running = true;
	scan->is_wanted = false;
	scan->number++;
	scan->at = scan->nr_scanned = 0;
	scan->nr_lost = scan->lost_bytes = scan->nr_without_holder = 0;
	scan->without_holder_bytes = 0;
	scan->is_traced = false;
	start_next(scan);
}

static void end_process(struct heap_scan *scan)
{
	scan->nr_scanned += scan->stopped_ns && !scan->is_in_doubt;
	scan->at++;
	start_next(scan);
}

/* A process could keep its scan from ever ending. */
static void leave_out(struct heap_scan *scan)
{
	struct scanner *scanner = &scan->scanners[scan->at];

	diag_warn("scan of process %d: left out, because it took too long; try leakscan -p %d",
		  (int)scanner->pid, (int)scanner->pid);
	end_scanner(scanner);
	scan->stopped_ns = 0;
	end_process(scan);
}

static void take_signal(struct heap_scan *scan)
{
	struct signalfd_siginfo signal;

	if (read(scan->signal_fd, &signal, sizeof(signal)) != sizeof(signal))
		return;
	if (!scan->nr) {
		diag_warn("SIGUSR2 does nothing here: the recording has no scans; start leakrec "
			  "with --scan");
		return;
	}
	if (scan->is_ending) {
		diag_warn("SIGUSR2 comes too late: the recording ends, with its last scan");
		return;
	}
	if (scan->is_running)
		diag_note("scan %u goes on; scan %u follows it", scan->number, scan->number + 1);
	scan->is_wanted = true;
}

/* "SIZE 0xADDRESS ..." */
static bool parse_place(const char *text, uint64_t values[static REACH_NR_VALUES])
{
	char *end;

	values[REACH_BYTES] = strtoull(text, &end, 10);
	if (end == text || strncmp(end, " 0x", 3) != 0)
		return false;
	text = end + 3;
	values[REACH_ADDRESS] = strtoull(text, &end, 16);
	return end != text;
}

/* "612740.123456789", in ns; 0: it is something else. */
static uint64_t parse_time(const char *text)
{
	unsigned long long seconds, ns;

	return sscanf(text, "%llu.%9llu", &seconds, &ns) == 2 ? seconds * 1000000000 + ns : 0;
}

/* Leakscan's numbers begin with 1 in each scan; those of a recording are all different. */
static uint32_t holder_number(const struct heap_scan *scan, uint64_t number)
{
	return number ? (scan->number - 1) * MAX_HOLDERS + (uint32_t)(number % MAX_HOLDERS) : 0;
}

/* "NR NAME..." */
static int use_name(const struct heap_scan *scan, const char *text, struct perf_writer *writer)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (end == text || *end != ' ')
		return 0;
	return own_samples_write_text(writer, OWN_HOLDER, scan->scanners[scan->at].pid,
				      clock_now_ns(), holder_number(scan, number), end + 1);
}

static int note_unseen(const struct heap_scan *scan, const char *what, struct perf_writer *writer)
{
	pid_t pid = scan->scanners[scan->at].pid;

	diag_warn("scan of process %d: not seen: %s; a block whose only pointer is in there counts "
		  "as held by nothing",
		  (int)pid, what);
	return own_samples_write_text(writer, OWN_UNSEEN, pid, clock_now_ns(), scan->number, what);
}

static int use_line(struct heap_scan *scan, const char *line, struct perf_writer *writer)
{
	static const char stopped[] = "# stopped ", no_lost[] = "# no block is called lost: ",
			  not_seen[] = "# not seen: ", heap[] = "# heap ", traced[] = "# traced ",
			  holder[] = "# holder ", held[] = "# held ";
	const struct scanner *scanner = &scan->scanners[scan->at];
	size_t word_len = strcspn(line, " ");
	enum reach_class class = reach_class_parse(line, word_len);
	uint64_t values[REACH_NR_VALUES] = {0};

	if (strncmp(line, stopped, strlen(stopped)) == 0)
		scan->stopped_ns = parse_time(line + strlen(stopped));
	if (strncmp(line, TRACED_LIST_ASKS, strlen(TRACED_LIST_ASKS)) == 0) {
		scan->asked_ns = parse_time(line + strlen(TRACED_LIST_ASKS));
		scan->is_traced = true;
	}
	if (strncmp(line, no_lost, strlen(no_lost)) == 0) {
		scan->is_in_doubt = true;
		diag_warn("scan of process %d: no block is called lost: %s", (int)scanner->pid,
			  line + strlen(no_lost));
	}
	if (strncmp(line, not_seen, strlen(not_seen)) == 0)
		return note_unseen(scan, line + strlen(not_seen), writer);
	if (strncmp(line, heap, strlen(heap)) == 0) {
		class = REACH_HEAP;
		word_len = strlen(heap) - 1;
	}
	if (strncmp(line, traced, strlen(traced)) == 0) {
		class = REACH_TRACED;
		word_len = strlen(traced) - 1;
	}
	if (strncmp(line, holder, strlen(holder)) == 0)
		return use_name(scan, line + strlen(holder), writer);
	if (strncmp(line, held, strlen(held)) == 0) {
		class = REACH_HELD;
		values[REACH_HOLDER] = holder_number(scan, strtoull(line + strlen(held), NULL, 10));
		word_len = strlen(held) + strcspn(line + strlen(held), " ");
	}
	if (class == REACH_NOT_SCANNED || !scan->stopped_ns ||
	    !parse_place(line + word_len + 1, values))
		return 0;
	values[REACH_STOPPED] = scan->stopped_ns;
	if (reach_group_of(class) == REACH_GROUP_LOST) {
		scan->nr_lost++;
		scan->lost_bytes += values[REACH_BYTES];
	}
	if (class == REACH_NO_HOLDER) {
		scan->nr_without_holder++;
		scan->without_holder_bytes += values[REACH_BYTES];
	}
	return own_samples_write(writer, OWN_REACH, scanner->pid, clock_now_ns(), class, values);
}

/* Takes what was read apart; the line at the end may not be complete. */
static int use_bytes(struct heap_scan *scan, const char *bytes, size_t nr,
		     struct perf_writer *writer)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		if (bytes[i] != '\n') {
			scan->is_too_long |= scan->len == sizeof(scan->line) - 1;
			if (!scan->is_too_long)
				scan->line[scan->len++] = bytes[i];
			continue;
		}
		scan->line[scan->len] = '\0';
		scan->len = 0;
		scan->is_too_long = false;
		/* Nothing follows it. */
		if (strcmp(scan->line, END_LINE) == 0)
			end_process(scan);
		else
			/* A block's line begins with all that is used of it. */
			err = use_line(scan, scan->line, writer);
	}
	return err;
}

/* Gives leakscan the list that it waits for, when all events until then have been applied. */
static void give_list(struct heap_scan *scan)
{
	const struct scanner *scanner = &scan->scanners[scan->at];
	int err;

	if (!scan->asked_ns || scanner->list_fd < 0 ||
	    held_blocks_applied_ns(scan->held) < scan->asked_ns)
		return;
	err = held_list_write(scanner->list_fd, scan->held, scanner->pid, scan->asked_ns);
	scan->asked_ns = 0;
	if (err)
		diag_warn("scan of process %d: cannot tell leakscan of its blocks: %s",
			  (int)scanner->pid, strerror(-err));
	if (err || write(scanner->listed_fd, "", 1) != 1)
		kill(-scanner->child, SIGTERM);
}

int heap_scan_serve(struct heap_scan *scan, struct perf_writer *writer)
{
	char bytes[65536];
	ssize_t got;

	take_signal(scan);
	if (!scan->is_running && scan->is_wanted)
		begin(scan);
	if (!scan->is_running)
		return 0;
	if (clock_now_ns() > scan->end_ns) {
		leave_out(scan);
		return 0;
	}
	give_list(scan);
	got = read(scan->scanners[scan->at].lines_fd, bytes, sizeof(bytes));
	if (got > 0)
		return use_bytes(scan, bytes, (size_t)got, writer);
	/* The scanner has been killed. */
	if (got == 0)
		end_process(scan);
	return 0;
}
