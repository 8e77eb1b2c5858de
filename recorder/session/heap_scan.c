/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/heap_scan.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/schema/reach_class.h"
#include "common/scope.h"
#include "recorder/output/own_samples.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Opens the leakscan that is beside this program. Returns a descriptor or a negative errno. */
static int open_leakscan(void)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof("leakscan"));
	char *name;
	int fd;

	if (len < 0)
		return -errno;
	path[len] = '\0';
	name = strrchr(path, '/');
	if (!name)
		return -ENOENT;
	memcpy(name + 1, "leakscan", sizeof("leakscan"));
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* In the child: keeps nothing of leakrec's but the two pipes, and waits. */
static void __attribute__((noreturn))
become_leakscan(int program_fd, int go_fd, int lines_fd, pid_t pid)
{
	char number[16], byte;
	const char *const argv[] = {"leakscan", "-p", number, "--blocks", "--not-held", NULL};
	sigset_t none;

	snprintf(number, sizeof(number), "%d", (int)pid);
	if (dup2(go_fd, STDIN_FILENO) < 0 || dup2(lines_fd, STDOUT_FILENO) < 0 ||
	    dup2(program_fd, STDERR_FILENO + 1) < 0)
		_exit(DIAG_EXIT_FAILED);
	syscall(SYS_close_range, STDERR_FILENO + 2, ~0u, 0);
	fcntl(STDERR_FILENO + 1, F_SETFD, FD_CLOEXEC);
	/* Ctrl-C is for leakrec, which then lets the scan begin, or ends it. */
	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* If leakrec has ended, read() returns 0. */
	if (read(STDIN_FILENO, &byte, 1) == 1)
		fexecve(STDERR_FILENO + 1, (char *const *)argv, environ);
	_exit(DIAG_EXIT_FAILED);
}

static int start_scanner(struct scanner *scanner, int program_fd, int priority)
{
	_cleanup_close_ int go_end = -1, lines_end = -1;
	int go[2], lines[2];

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	go_end = go[0];
	scanner->go_fd = go[1];
	if (pipe2(lines, O_CLOEXEC) < 0)
		return -errno;
	scanner->lines_fd = lines[0];
	lines_end = lines[1];
	fcntl(scanner->lines_fd, F_SETFL, O_NONBLOCK);
	scanner->child = fork();
	if (scanner->child == 0) {
		setpriority(PRIO_PROCESS, 0, priority);
		become_leakscan(program_fd, go_end, lines_end, scanner->pid);
	}
	return scanner->child < 0 ? -errno : 0;
}

int heap_scan_prepare(struct heap_scan *ret, const pid_t *pids, size_t nr_pids, int priority)
{
	_cleanup_close_ int program_fd = open_leakscan();
	int err = program_fd < 0 ? program_fd : 0;

	for (size_t i = 0; i < nr_pids && !err; i++) {
		struct scanner *scanner = &ret->scanners[ret->nr++];

		*scanner = (struct scanner){.pid = pids[i], .go_fd = -1, .lines_fd = -1};
		err = start_scanner(scanner, program_fd, priority);
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

/* Waits for the scanner; first ends it unless it is done. */
static void end_scanner(struct scanner *scanner, bool is_done)
{
	close_fd(&scanner->go_fd);
	close_fd(&scanner->lines_fd);
	if (scanner->child <= 0)
		return;
	/* leakscan lets the process that it scans go on when it is ended. */
	if (!is_done)
		kill(scanner->child, SIGTERM);
	waitpid(scanner->child, NULL, 0);
	scanner->child = 0;
}

void heap_scan_deinit(struct heap_scan *scan)
{
	for (size_t i = 0; i < scan->nr; i++)
		end_scanner(&scan->scanners[i], false);
	scan->nr = 0;
}

int heap_scan_next(struct heap_scan *scan)
{
	struct scanner *scanner = &scan->scanners[scan->at];

	if (scan->at == scan->nr)
		return -1;
	scan->stopped_ns = 0;
	scan->len = 0;
	scan->is_too_long = false;
	if (write(scanner->go_fd, "", 1) != 1)
		diag_warn("cannot scan process %d: %s", (int)scanner->pid, strerror(errno));
	close_fd(&scanner->go_fd);
	return scanner->lines_fd;
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

/* "NR NAME..." */
static int use_name(const struct scanner *scanner, const char *text, struct perf_writer *writer)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (end == text || *end != ' ')
		return 0;
	return own_samples_write_text(writer, OWN_HOLDER, scanner->pid, clock_now_ns(),
				      (uint32_t)number, end + 1);
}

static int use_line(struct heap_scan *scan, const char *line, struct perf_writer *writer)
{
	static const char stopped[] = "# stopped ",
			  no_lost[] = "# no block is called lost: ", heap[] = "# heap ",
			  holder[] = "# holder ", held[] = "# held ";
	const struct scanner *scanner = &scan->scanners[scan->at];
	size_t word_len = strcspn(line, " ");
	enum reach_class class = reach_class_parse(line, word_len);
	uint64_t values[REACH_NR_VALUES] = {0};

	if (strncmp(line, stopped, strlen(stopped)) == 0)
		scan->stopped_ns = parse_time(line + strlen(stopped));
	if (strncmp(line, no_lost, strlen(no_lost)) == 0)
		diag_warn("scan of process %d: no block is called lost: %s", (int)scanner->pid,
			  line + strlen(no_lost));
	if (strncmp(line, heap, strlen(heap)) == 0) {
		class = REACH_HEAP;
		word_len = strlen(heap) - 1;
	}
	if (strncmp(line, holder, strlen(holder)) == 0)
		return use_name(scanner, line + strlen(holder), writer);
	if (strncmp(line, held, strlen(held)) == 0) {
		class = REACH_HELD;
		values[REACH_HOLDER] = strtoull(line + strlen(held), NULL, 10);
		word_len = strlen(held) + strcspn(line + strlen(held), " ");
	}
	if (class == REACH_NOT_SCANNED || !scan->stopped_ns ||
	    !parse_place(line + word_len + 1, values))
		return 0;
	values[REACH_STOPPED] = scan->stopped_ns;
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
		/* A block's line begins with all that is used of it. */
		err = use_line(scan, scan->line, writer);
		scan->len = 0;
		scan->is_too_long = false;
	}
	return err;
}

int heap_scan_read(struct heap_scan *scan, struct perf_writer *writer)
{
	struct scanner *scanner = &scan->scanners[scan->at];
	char bytes[65536];
	ssize_t got = read(scanner->lines_fd, bytes, sizeof(bytes));

	if (got > 0)
		return use_bytes(scan, bytes, (size_t)got, writer);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	end_scanner(scanner, true);
	scan->at++;
	return 1;
}
