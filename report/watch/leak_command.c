/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/watch/leak_command.h"

#include "common/broker/broker.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/output_file.h"
#include "common/scope.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define MAX_DEATH_NS UINT64_C(5000000000) /* after SIGKILL */
#define NO_MORE	     "; more failures are not reported until it succeeds"

struct run {
	pid_t pid; /* 0: there is none */
	uint64_t start_ns;
	bool is_killed, has_ended, has_failed;
};

struct leak_command {
	char *text; /* its words, each with a zero byte at its end */
	char **words;
	struct run runs[LEAK_COMMAND_MAX_RUNNING]; /* until their results are asked for */
	size_t max_running;
	uint64_t max_run_ns;
	bool has_failed;
};

int leak_command_create(const char *text, uint64_t max_run_ns, size_t max_running,
			struct leak_command **ret)
{
	struct leak_command *command = calloc(1, sizeof(*command));
	size_t nr = 0;
	char *rest;

	*ret = command;
	if (!command)
		return -ENOMEM;
	/* Whoever started us may ignore it. Then waitpid() would not tell how a command ended. */
	signal(SIGCHLD, SIG_DFL);
	command->max_run_ns = max_run_ns;
	command->max_running = max_running && max_running < LEAK_COMMAND_MAX_RUNNING
				       ? max_running
				       : LEAK_COMMAND_MAX_RUNNING;
	command->text = strdup(text);
	command->words = calloc(strlen(text) / 2 + 2, sizeof(char *));
	if (!command->text || !command->words)
		return -ENOMEM;
	for (char *word = strtok_r(command->text, " \t\n", &rest); word;
	     word = strtok_r(NULL, " \t\n", &rest))
		command->words[nr++] = word;
	return 0;
}

void leak_command_destroy(struct leak_command *command)
{
	if (!command)
		return;
	free(command->text);
	free(command->words);
	free(command);
}

size_t leak_command_max(const struct leak_command *command)
{
	return command->max_running;
}

/*
 * What is wrong with one command is likely to be wrong with all: it is said once, until one
 * succeeds.
 */
static bool is_first_failure(struct leak_command *command)
{
	bool is_first = !command->has_failed;

	command->has_failed = true;
	return is_first;
}

static void report_end(struct leak_command *command, const struct run *run, int status)
{
	const char *name = command->words[0];

	if (!run->has_failed)
		command->has_failed = false;
	if (!run->has_failed || !is_first_failure(command))
		return;
	if (run->is_killed)
		diag_warn("--on-leak: %s was killed after %d s" NO_MORE, name,
			  (int)(command->max_run_ns / 1000000000));
	else if (WIFSIGNALED(status))
		diag_warn("--on-leak: signal %d killed %s" NO_MORE, WTERMSIG(status), name);
	else
		diag_warn("--on-leak: %s ended with status %d" NO_MORE, name, WEXITSTATUS(status));
}

/* Notes which commands have ended, and kills those that have run for too long. */
static void reap(struct leak_command *command)
{
	for (size_t i = 0; i < command->max_running; i++) {
		struct run *run = &command->runs[i];
		uint64_t age_ns = clock_now_ns() - run->start_ns;
		int status = 0;

		if (!run->pid || run->has_ended)
			continue;
		run->has_ended = waitpid(run->pid, &status, WNOHANG) != 0;
		if (!run->has_ended && !run->is_killed && age_ns > command->max_run_ns) {
			kill(-run->pid, SIGKILL);
			run->is_killed = true;
		}
		/* The kernel may be unable to end it. */
		run->has_ended |= age_ns > command->max_run_ns + MAX_DEATH_NS;
		run->has_failed = run->is_killed || status;
		if (run->has_ended)
			report_end(command, run, status);
	}
}

static size_t nr_running(const struct leak_command *command)
{
	size_t nr = 0;

	for (size_t i = 0; i < command->max_running; i++)
		nr += command->runs[i].pid && !command->runs[i].has_ended;
	return nr;
}

/*
 * The command gets @input_fd as its standard input, no other descriptor of ours but standard error,
 * which is its output, too: ours is the report. It has a process group, so that what it starts can
 * be killed with it, and signals as they are by default.
 */
static int spawn(const struct leak_command *command, int input_fd, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	int err;

	sigfillset(&all);
	sigemptyset(&none);
	if (posix_spawn_file_actions_init(&files))
		return ENOMEM;
	err = posix_spawnattr_init(&attributes);
	if (err) {
		posix_spawn_file_actions_destroy(&files);
		return err;
	}
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETPGROUP);
	err = posix_spawn_file_actions_adddup2(&files, input_fd, STDIN_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	if (!err)
		err = posix_spawnp(ret, command->words[0], &files, &attributes, command->words,
				   environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return err;
}

/* A file in memory, which the command can read without anybody's help; or a negative errno. */
static int input_file(const char *input, size_t size)
{
	_cleanup_close_ int fd = memfd_create("leak", MFD_CLOEXEC);
	int err = fd < 0 ? -errno : output_write_all(fd, input, size);

	if (!err && lseek(fd, 0, SEEK_SET) < 0)
		err = -errno;
	return err ? err : steal_fd(fd);
}

/* @input_fd: a negative errno if there is none. */
static int start(struct leak_command *command, int input_fd)
{
	size_t i = 0;
	pid_t pid = 0;
	int err;

	while (i < command->max_running && command->runs[i].pid)
		i++;
	if (i == command->max_running)
		return -EBUSY;
	err = input_fd < 0 ? -input_fd : spawn(command, input_fd, &pid);
	if (!err) {
		command->runs[i] = (struct run){.pid = pid, .start_ns = clock_now_ns()};
		return (int)i;
	}
	if (is_first_failure(command))
		diag_warn("--on-leak: cannot start %s: %s" NO_MORE, command->words[0],
			  strerror(err));
	return -err;
}

int leak_command_start(struct leak_command *command, const char *input, size_t size)
{
	_cleanup_close_ int fd = input_file(input, size);
	const struct broker_request request = {BROKER_START_COMMAND, .fd = fd};
	int no_fd;

	return broker_is_used() ? broker_ask(&request, &no_fd) : start(command, fd);
}

int leak_command_serve_start(void *context, const struct broker_request *request, int *ret_fd)
{
	(void)ret_fd;
	return start(context, request->fd < 0 ? -EBADF : request->fd);
}

static int result(struct leak_command *command, int64_t number)
{
	struct run *run;
	bool has_failed;

	if (number < 0 || number >= (int64_t)command->max_running || !command->runs[number].pid)
		return -EINVAL;
	reap(command);
	run = &command->runs[number];
	if (!run->has_ended)
		return -EAGAIN;
	has_failed = run->has_failed;
	*run = (struct run){0};
	return has_failed;
}

int leak_command_result(struct leak_command *command, int number)
{
	const struct broker_request request = {BROKER_COMMAND_RESULT, .number = number, .fd = -1};
	int no_fd;

	return broker_is_used() ? broker_ask(&request, &no_fd) : result(command, number);
}

int leak_command_serve_result(void *context, const struct broker_request *request, int *ret_fd)
{
	(void)ret_fd;
	return result(context, request->number);
}

int leak_command_serve_wait(void *context, const struct broker_request *request, int *ret_fd)
{
	(void)ret_fd;
	/* There are never fewer than none: that would take as long as the asking process likes. */
	if (request->number < 1)
		return -EINVAL;
	return leak_command_wait(context, (size_t)request->number, request->until_ns);
}

bool leak_command_wait(struct leak_command *command, size_t nr, uint64_t until_ns)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	const struct broker_request request = {
		BROKER_WAIT_FOR_COMMAND,
		.number = (int64_t)nr,
		.until_ns = until_ns,
		.fd = -1,
	};
	int no_fd;

	if (broker_is_used())
		return broker_ask(&request, &no_fd) == 1;
	for (;;) {
		reap(command);
		if (nr_running(command) < nr)
			return true;
		if (clock_now_ns() > until_ns)
			return false;
		nanosleep(&pause, NULL);
	}
}
