/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/gnuplot/gnuplot_services.h"

#include "common/output_file.h"
#include "plot/gnuplot/gnuplot_process.h"
#include "plot/gnuplot/plot_script.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct {
	struct gnuplot_services options;
	int fds[GNUPLOT_NR_DESCRIPTORS]; /* given for the next gnuplot; -1: none */
	struct gnuplot_process process;	 /* its pid is 0 if none runs */
	int dir_fd;			 /* of --save; -1: not opened yet */
} state;

static void forget_descriptors(void)
{
	for (int i = 0; i < GNUPLOT_NR_DESCRIPTORS; i++) {
		if (state.fds[i] >= 0)
			close(state.fds[i]);
		state.fds[i] = -1;
	}
}

static int give(void *context, const struct broker_request *request, int *ret_fd)
{
	int fd;

	(void)context;
	(void)ret_fd;
	if (request->number < GNUPLOT_OUTPUT || request->number >= GNUPLOT_NR_DESCRIPTORS)
		return -EINVAL;
	fd = fcntl(request->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (state.fds[request->number] >= 0)
		close(state.fds[request->number]);
	state.fds[request->number] = fd;
	return 0;
}

/* A gnuplot that Ctrl-C does not reach is ended by who asked for it, and then by this process. */
static void stay_until_the_end(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

static int start(void *context, const struct broker_request *request, int *ret_fd)
{
	int err;

	(void)context;
	if (request->number < 0 || request->number >= GNUPLOT_NR_GROUPS)
		return -EINVAL;
	if (request->number == GNUPLOT_WINDOW && !state.options.has_window)
		return -EPERM;
	if (state.process.pid)
		return -EALREADY;
	for (int i = GNUPLOT_OUTPUT; i < GNUPLOT_NR_DESCRIPTORS; i++)
		if (state.fds[i] < 0)
			return -EBADF;
	err = gnuplot_process_start((enum gnuplot_group)request->number, state.fds, &state.process);
	forget_descriptors();
	if (err)
		return err;
	if (request->number != GNUPLOT_OURS)
		stay_until_the_end();
	*ret_fd = fcntl(state.process.pidfd, F_DUPFD_CLOEXEC, 0);
	return *ret_fd < 0 ? -errno : 0;
}

static int end(void *context, const struct broker_request *request, int *ret_fd)
{
	(void)context;
	(void)request;
	(void)ret_fd;
	return state.process.pid ? gnuplot_process_end(&state.process, true) : -ECHILD;
}

static int open_saved(void *context, const struct broker_request *request, int *ret_fd)
{
	(void)context;
	if (!state.options.save)
		return -ENOENT;
	if (!plot_script_owns(state.options.name, request->text))
		return -EPERM;
	if (state.dir_fd < 0)
		state.dir_fd = output_dir_open(state.options.save);
	if (state.dir_fd < 0)
		return state.dir_fd;
	*ret_fd = output_file_open_at(state.dir_fd, state.options.save, request->text);
	return *ret_fd < 0 ? *ret_fd : 0;
}

void gnuplot_services_add(struct broker_service services[BROKER_NR_OPS],
			  const struct gnuplot_services *options)
{
	state.options = *options;
	state.dir_fd = -1;
	memset(state.fds, -1, sizeof(state.fds));
	services[BROKER_GIVE_TO_GNUPLOT].serve = give;
	services[BROKER_START_GNUPLOT].serve = start;
	services[BROKER_END_GNUPLOT].serve = end;
	services[BROKER_OPEN_SAVED].serve = open_saved;
}

void gnuplot_services_end(void)
{
	forget_descriptors();
	if (state.process.pid)
		gnuplot_process_end(&state.process, true);
}
