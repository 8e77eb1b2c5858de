/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/separation.h"

#include "common/broker/broker.h"
#include "common/diag.h"
#include "common/output_file.h"
#include "common/sandbox/unprivileged.h"
#include "common/schema/segment_name.h"
#include "common/scope.h"
#include "parser/bytes/perf_source.h"
#include "report/watch/leak_command.h"
#include "unwind/modules/file_services.h"
#include "unwind/names/jit_names.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define BROKERS_PAGER (-1) /* the pager's pid for the process that may not know it */

static pid_t broker_pid;

/* --- In the broker --- */

/* True if @path is that of a segment in the directory @input. */
static bool is_segment_in(const char *path, const char *input)
{
	size_t len = strlen(input);
	struct segment_name name;

	return strncmp(path, input, len) == 0 && path[len] == '/' &&
	       segment_name_parse(path + len + 1, &name) == 0;
}

static int open_input(void *context, const struct broker_request *request, int *ret_fd)
{
	const struct separation *separation = context;
	int err = -EPERM;

	for (size_t i = 0; i < separation->nr_inputs && err; i++) {
		if (strcmp(separation->inputs[i], request->text) == 0)
			*ret_fd = perf_source_open(separation->inputs[i]);
		else if (is_segment_in(request->text, separation->inputs[i]))
			*ret_fd = perf_source_open_in(AT_FDCWD, request->text, request->text);
		else
			continue;
		err = *ret_fd < 0 ? *ret_fd : 0;
	}
	return err;
}

static int open_temporary(void *context, const struct broker_request *request, int *ret_fd)
{
	(void)context;
	(void)request;
	*ret_fd = perf_source_open_temporary();
	return *ret_fd < 0 ? *ret_fd : 0;
}

static int open_output(void *context, const struct broker_request *request, int *ret_fd)
{
	(void)request;
	*ret_fd = output_file_open(context);
	return *ret_fd < 0 ? *ret_fd : 0;
}

static int start_pager(void *context, const struct broker_request *request, int *ret_fd)
{
	struct pager *pager = context;

	(void)request;
	if (pager->pid)
		return -EALREADY;
	pager_start(pager);
	if (!pager->pid)
		return 0;
	*ret_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	return *ret_fd < 0 ? -errno : 1;
}

static int finish_pager(void *context, const struct broker_request *request, int *ret_fd)
{
	(void)request;
	(void)ret_fd;
	pager_finish(context);
	return 0;
}

static void add_services(struct broker_service services[BROKER_NR_OPS],
			 const struct separation *separation, struct pager *pager,
			 struct leak_command *command)
{
	file_services_add(services, separation->symfs);
	services[BROKER_OPEN_JIT_NAMES] =
		(struct broker_service){jit_names_serve, (void *)separation->symfs};
	services[BROKER_OPEN_INPUT] = (struct broker_service){open_input, (void *)separation};
	services[BROKER_OPEN_TEMPORARY].serve = open_temporary;
	services[BROKER_START_PAGER] = (struct broker_service){start_pager, pager};
	services[BROKER_FINISH_PAGER] = (struct broker_service){finish_pager, pager};
	if (separation->output)
		services[BROKER_OPEN_OUTPUT] =
			(struct broker_service){open_output, (void *)separation->output};
	if (!command)
		return;
	services[BROKER_START_COMMAND] = (struct broker_service){leak_command_serve_start, command};
	services[BROKER_WAIT_FOR_COMMAND] =
		(struct broker_service){leak_command_serve_wait, command};
}

static void __attribute__((noreturn)) be_broker(const struct separation *separation, int socket_fd)
{
	struct broker_service services[BROKER_NR_OPS] = {0};
	struct leak_command *command = NULL;
	struct pager pager = {0};

	prctl(PR_SET_NAME, "leak-broker");
	if (separation->on_leak &&
	    leak_command_create(separation->on_leak, LEAK_COMMAND_MAX_RUN_NS, 0, &command))
		_exit(DIAG_EXIT_FAILED);
	add_services(services, separation, &pager, command);
	broker_serve(socket_fd, services);
	/* If the other process ended before it could say so. */
	pager_finish(&pager);
	_exit(DIAG_EXIT_OK);
}

/* --- In the process that reads --- */

/* AddressSanitizer looks for leaks by a thread that traces the others, which none may. */
static bool is_wanted(void)
{
#ifdef __SANITIZE_ADDRESS__
	return false;
#else
	return geteuid() == 0;
#endif
}

/* What the C library reads from files when it is first needed. */
static void load_locale(void)
{
	setlocale(LC_CTYPE, "");
	tzset();
}

int separation_begin(const struct separation *separation)
{
	int fds[2], err;

	if (!is_wanted())
		return 0;
	load_locale();
	fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
		err = -errno;
		diag_error("cannot give up privileges: no socket: %s", strerror(-err));
		return err;
	}
	broker_pid = fork();
	if (broker_pid == 0) {
		close(fds[0]);
		be_broker(separation, fds[1]);
	}
	err = broker_pid < 0 ? -errno : 0;
	close(fds[1]);
	if (err) {
		close(fds[0]);
		diag_error("cannot give up privileges: no process: %s", strerror(-err));
		return err;
	}
	broker_use(fds[0]);
	unprivileged_keep_only((int[]){STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, fds[0]}, 4);
	return unprivileged_confine();
}

void separation_end(void)
{
	if (!broker_is_used())
		return;
	broker_leave();
	while (waitpid(broker_pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int separation_redirect(const char *path)
{
	int fd, err = 0;

	if (!broker_is_used())
		return output_file_redirect(path);
	fd = broker_open(BROKER_OPEN_OUTPUT, NULL, NULL);
	if (fd < 0)
		return fd;
	if (dup2(fd, STDOUT_FILENO) < 0) {
		err = -errno;
		diag_error("cannot write %s: %s", path, strerror(-err));
	}
	close(fd);
	return err;
}

void separation_start_pager(struct pager *ret)
{
	const struct broker_request request = {BROKER_START_PAGER, .fd = -1};
	int fd;

	if (!broker_is_used()) {
		pager_start(ret);
		return;
	}
	*ret = (struct pager){0};
	fflush(NULL);
	if (broker_ask(&request, &fd) != 1 || fd < 0)
		return;
	dup2(fd, STDOUT_FILENO);
	if (isatty(STDERR_FILENO))
		dup2(fd, STDERR_FILENO);
	close(fd);
	/* Ctrl-C is for the pager. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	ret->pid = BROKERS_PAGER;
}

void separation_finish_pager(struct pager *pager)
{
	const struct broker_request request = {BROKER_FINISH_PAGER, .fd = -1};
	int fd;

	if (pager->pid != BROKERS_PAGER) {
		pager_finish(pager);
		return;
	}
	fflush(stdout);
	fflush(stderr);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	broker_ask(&request, &fd);
	pager->pid = 0;
}
