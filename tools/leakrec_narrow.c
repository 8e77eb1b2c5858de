/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/leakrec_narrow.h"

#include "common/diag.h"
#include "common/proc/sibling_program.h"
#include "common/scope.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_RECORDING "perf.data"

bool leakrec_narrow_is_valid(const char *text)
{
	size_t len = strspn(text, "0123456789");

	return isdigit((unsigned char)*text) && (!text[len] || (text[len] == ':' && text[len + 1]));
}

const char *leakrec_narrow_objection(const struct session_options *options)
{
	const struct record_config *config = &options->config;

	if (config->scope != RECORD_PROCESSES || options->command)
		return "--narrow needs processes that run already: -p PID, --unit or --program";
	if (config->by == RECORD_BY_PERF)
		return "--narrow needs BPF programs: it does not go with --perf-events or --filter";
	if (config->syscalls || options->resources->nr || config->no_heap || options->mismatch)
		return "--narrow is for one cause only: it does not go with --with, --pair, --ref, "
		       "--no-heap or --mismatch";
	if (options->budget)
		return "give either --narrow, which records all the time, or --budget";
	if (config->has_sizes)
		return "--narrow does not go with --size: the calls are chosen already";
	if (options->scan)
		return "--narrow does not go with --scan: `leakscan -p PID` tells what is lost";
	return session_options_keep(options)
		       ? "--narrow does not go with --keep and --ring: it records so little that one "
			 "file is enough"
		       : NULL;
}

/* In the child. */
static void __attribute__((noreturn))
become_leakparse(int program_fd, int output_fd, const char *number, const char *file)
{
	const char *const argv[] = {"leakparse", "--call-sites", number, "--", file, NULL};

	if (dup2(output_fd, STDOUT_FILENO) >= 0)
		fexecve(program_fd, (char *const *)argv, environ);
	diag_error("cannot start leakparse, for --narrow: %s", strerror(errno));
	_exit(DIAG_EXIT_FAILED);
}

/* Starts leakparse. Returns what it writes, or NULL with *@ret_err set. */
static FILE *start(const char *number, const char *file, pid_t *ret_pid, int *ret_err)
{
	_cleanup_close_ int program_fd = sibling_program_open("leakparse");
	int fds[2];
	FILE *from;

	if (program_fd < 0 || pipe2(fds, O_CLOEXEC) < 0) {
		*ret_err = program_fd < 0 ? program_fd : -errno;
		return NULL;
	}
	*ret_pid = fork();
	if (*ret_pid == 0)
		become_leakparse(program_fd, fds[1], number, file);
	*ret_err = -errno;
	close(fds[1]);
	from = *ret_pid > 0 ? fdopen(fds[0], "r") : NULL;
	if (!from)
		close(fds[0]);
	return from;
}

int leakrec_narrow_read(const char *text, struct call_list *ret)
{
	const char *colon = strchr(text, ':');
	_cleanup_free_ char *number = strndup(text, strcspn(text, ":"));
	pid_t pid = 0;
	int err = -ENOMEM, status = 0;
	FILE *from =
		number ? start(number, colon ? colon + 1 : DEFAULT_RECORDING, &pid, &err) : NULL;

	*ret = (struct call_list){0};
	if (from) {
		err = call_list_read(ret, from);
		fclose(from);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	/* It has said why. */
	if (from && WIFEXITED(status) && WEXITSTATUS(status))
		return -EINVAL;
	if (err == -ENODATA)
		diag_error("cannot narrow: cause %s has no calls in that recording", number);
	else if (err)
		diag_error("cannot narrow: leakparse did not list the calls: %s", strerror(-err));
	return err;
}
