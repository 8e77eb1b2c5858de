/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/live/live_services.h"

#include "common/broker/broker.h"
#include "common/diag.h"
#include "common/output_file.h"
#include "common/sandbox/unprivileged.h"
#include "common/scope.h"
#include "report/live/live_state.h"
#include "report/live/replaced_file.h"
#include "report/watch/leak_command.h"
#include "unwind/modules/file_services.h"
#include "unwind/names/jit_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The state may name functions and files; metrics are read by another user. */
static const mode_t modes[LIVE_NR_FILES] = {
	[LIVE_STATE] = 0600, [LIVE_METRICS] = 0644, [LIVE_REPORTED] = 0600};

/* The whole of a file in memory, which the asking process may change meanwhile. */
static int read_given(int fd, char **ret, size_t *ret_size)
{
	struct stat st;
	ssize_t size;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || st.st_size > (off_t)LIVE_STATE_MAX_BYTES)
		return -EFBIG;
	*ret = malloc((size_t)st.st_size + 1);
	if (!*ret)
		return -ENOMEM;
	size = pread(fd, *ret, (size_t)st.st_size, 0);
	*ret_size = size < 0 ? 0 : (size_t)size;
	return size == st.st_size ? 0 : -EIO;
}

static int replace(void *context, const struct broker_request *request, int *ret_fd)
{
	const struct live_services *services = context;
	const struct live_output *output;
	_cleanup_free_ char *bytes = NULL;
	size_t size = 0;
	int err;

	(void)ret_fd;
	if (request->number < 0 || request->number >= LIVE_NR_FILES)
		return -EINVAL;
	output = &services->outputs[request->number];
	if (output->dir_fd < 0)
		return -EINVAL;
	err = read_given(request->fd, &bytes, &size);
	return err ? err
		   : replaced_file_write(output->dir_fd, output->name, modes[request->number],
					 bytes, size);
}

static int open_reported(void *context, const struct broker_request *request, int *ret_fd)
{
	const struct live_services *services = context;
	const struct live_output *output = &services->outputs[LIVE_REPORTED];
	_cleanup_close_ int fd = openat(output->dir_fd, output->name,
					O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	(void)request;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* Its lines are written again: not those of a file that only root may read. */
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	*ret_fd = steal_fd(fd);
	return 0;
}

/*
 * Commands get what this process has: a filter would be theirs, too. So they have a parent of their
 * own, which needs no capabilities.
 */
static void __attribute__((noreturn)) serve_commands(const char *on_leak, int socket_fd)
{
	struct broker_service served[BROKER_NR_OPS] = {0};
	struct leak_command *command;

	prctl(PR_SET_NAME, "leak-command");
	unprivileged_drop_capabilities("leak-command");
	unprivileged_keep_only((int[]){STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, socket_fd}, 4);
	if (leak_command_create(on_leak, LEAK_COMMAND_MAX_RUN_NS, 1, &command))
		exit(DIAG_EXIT_FAILED);
	served[BROKER_START_COMMAND] = (struct broker_service){leak_command_serve_start, command};
	served[BROKER_COMMAND_RESULT] = (struct broker_service){leak_command_serve_result, command};
	served[BROKER_WAIT_FOR_COMMAND] = (struct broker_service){leak_command_serve_wait, command};
	broker_serve(socket_fd, served);
	exit(DIAG_EXIT_OK);
}

/* AddressSanitizer looks for leaks by a thread that traces the others, which none may. */
static void limit(void)
{
#ifndef __SANITIZE_ADDRESS__
	unprivileged_limit_broker(0);
#endif
}

int live_services_run(const struct live_services *services, int socket_fd)
{
	struct broker_other commands = {.who = "leak-command, which starts the command,"};
	struct broker_service served[BROKER_NR_OPS] = {0};
	const struct live_output *state = &services->outputs[LIVE_STATE];
	pid_t pid;

	prctl(PR_SET_NAME, "leak-broker");
	if (unprivileged_read_only(true)) {
		diag_error("the live parser's broker cannot give up its privileges");
		return DIAG_EXIT_FAILED;
	}
	if (state->dir_fd >= 0 && faccessat(state->dir_fd, ".", W_OK, AT_EACCESS))
		diag_warn("%s cannot be written by the user of the live parser, %u: %s",
			  state->path, geteuid(), strerror(errno));
	file_services_add(served, NULL);
	served[BROKER_OPEN_JIT_NAMES].serve = jit_names_serve;
	served[BROKER_REPLACE_FILE] = (struct broker_service){replace, (void *)services};
	if (services->outputs[LIVE_REPORTED].dir_fd >= 0)
		served[BROKER_OPEN_REPORTED] =
			(struct broker_service){open_reported, (void *)services};
	if (services->on_leak) {
		pid = broker_fork_other(&commands.socket_fd);
		if (pid < 0)
			return DIAG_EXIT_FAILED;
		if (pid == 0)
			serve_commands(services->on_leak, commands.socket_fd);
		served[BROKER_START_COMMAND] = served[BROKER_COMMAND_RESULT] =
			served[BROKER_WAIT_FOR_COMMAND] =
				(struct broker_service){broker_relay, &commands};
	}
	limit();
	broker_serve(socket_fd, served);
	return DIAG_EXIT_OK;
}

int live_services_replace(enum live_file file, const char *bytes, size_t size)
{
	_cleanup_close_ int fd = memfd_create("live", MFD_CLOEXEC);
	const struct broker_request request = {BROKER_REPLACE_FILE, .number = file, .fd = fd};
	int err = fd < 0 ? -errno : output_write_all(fd, bytes, size), no_fd;

	return err ? err : broker_ask(&request, &no_fd);
}

int live_services_open_reported(void)
{
	return broker_open(BROKER_OPEN_REPORTED, "", NULL);
}
