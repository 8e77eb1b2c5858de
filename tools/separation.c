/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/separation.h"

#include "common/broker/broker.h"
#include "common/diag.h"
#include "common/output_file.h"
#include "common/sandbox/unprivileged.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define BROKERS_PAGER (-1) /* the pager's pid for the process that may not know it */

static pid_t broker_pid;

/* --- In the broker --- */

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

static void __attribute__((noreturn)) be_broker(const struct separation *separation, int socket_fd)
{
	struct broker_service services[BROKER_NR_OPS] = {0};
	struct pager pager = {0};

	prctl(PR_SET_NAME, "leak-broker");
	services[BROKER_START_PAGER] = (struct broker_service){start_pager, &pager};
	services[BROKER_FINISH_PAGER] = (struct broker_service){finish_pager, &pager};
	if (separation->output)
		services[BROKER_OPEN_OUTPUT] =
			(struct broker_service){open_output, (void *)separation->output};
	if (separation->add_services(separation->context, services))
		_exit(DIAG_EXIT_FAILED);
	broker_serve(socket_fd, services);
	/* If the other process ended before it could say so. */
	pager_finish(&pager);
	if (separation->end_services)
		separation->end_services();
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
	int socket_fd;

	if (!is_wanted())
		return 0;
	load_locale();
	broker_pid = broker_fork(&socket_fd);
	if (broker_pid < 0)
		return broker_pid;
	if (broker_pid == 0)
		be_broker(separation, socket_fd);
	unprivileged_keep_only((int[]){STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, socket_fd}, 4);
	return unprivileged_confine(false);
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
