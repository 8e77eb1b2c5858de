/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/targets/follow_fds.h"

#include "common/clock.h"
#include "recorder/events/event_attr.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Opening so many takes longer than a sweep. */
#define SWEEP_AFTER 2048

void follow_fds_close(struct follow_fds *fds)
{
	follow_fds_close_after(fds, 0);
	free(fds->all);
	if (fds->ring) {
		munmap(fds->ring, (size_t)getpagesize());
		close(fds->ring_fd);
	}
	*fds = (struct follow_fds){0};
}

int follow_fds_add(struct follow_fds *fds, const struct follow_fd *event)
{
	struct follow_fd *all = reallocarray(fds->all, fds->nr + 1, sizeof(*all));

	if (!all) {
		close(event->fd);
		return -ENOMEM;
	}
	fds->all = all;
	all[fds->nr] = *event;
	all[fds->nr++].opened_ns = clock_now_ns();
	return 0;
}

static int open_dummy(pid_t tid, bool inherit)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.disabled = 1,
		.exclude_kernel = 1,
		.inherit = inherit,
	};
	int fd;

	if (inherit && !event_attr_contexts_swap())
		event_attr_want_own_context(&attr);
	fd = (int)syscall(SYS_perf_event_open, &attr, tid, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * poll() says POLLHUP of an event when its task and all that inherited it have ended, but also of
 * every event that has no ring (perf_poll(), kernel/events/core.c, Linux 6.18). So the witnesses
 * share one, which nothing is written to: it has no data pages. They have to be on its CPU.
 */
void follow_fds_prepare(struct follow_fds *fds)
{
	int fd = open_dummy(0, false);
	void *ring;

	if (fd < 0)
		return;
	ring = mmap(NULL, (size_t)getpagesize(), PROT_READ, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		close(fd);
		return;
	}
	fds->ring_fd = fd;
	fds->ring = ring;
}

int follow_fds_add_witness(struct follow_fds *fds, pid_t tid, int *ret)
{
	int fd;

	*ret = -1;
	if (!fds->ring)
		return 0;
	fd = open_dummy(tid, true);
	/* Without a witness, the thread's events stay open, which costs descriptors only. */
	if (fd < 0)
		return fd == -ESRCH ? fd : 0;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, fds->ring_fd)) {
		close(fd);
		return 0;
	}
	*ret = fd;
	return follow_fds_add(fds, &(struct follow_fd){.fd = fd, .witness = fd});
}

void follow_fds_close_file(struct follow_fds *fds, const struct probe_file *file)
{
	size_t nr = 0;

	for (size_t i = 0; i < fds->nr; i++) {
		if (fds->all[i].file == file)
			close(fds->all[i].fd);
		else
			fds->all[nr++] = fds->all[i];
	}
	fds->nr = nr;
}

void follow_fds_close_carrier(struct follow_fds *fds, pid_t tid, uint64_t time_ns)
{
	size_t nr = 0;

	for (size_t i = 0; i < fds->nr; i++) {
		const struct follow_fd *event = &fds->all[i];

		/* A later thread may have got that id. */
		if (event->tid == tid && event->opened_ns < time_ns)
			close(event->fd);
		else
			fds->all[nr++] = *event;
	}
	fds->nr = nr;
}

void follow_fds_close_after(struct follow_fds *fds, size_t nr)
{
	while (fds->nr > nr)
		close(fds->all[--fds->nr].fd);
}

bool follow_fds_want_sweep(const struct follow_fds *fds)
{
	return fds->nr >= fds->nr_swept + SWEEP_AFTER;
}

static bool have_all_ended(int witness)
{
	struct pollfd fd = {.fd = witness};

	return poll(&fd, 1, 0) == 1 && fd.revents & POLLHUP;
}

void follow_fds_sweep(struct follow_fds *fds)
{
	bool ended = false;
	size_t nr = 0;

	for (size_t i = 0; i < fds->nr; i++) {
		const struct follow_fd *event = &fds->all[i];

		if (event->fd == event->witness)
			ended = have_all_ended(event->witness);
		if (event->witness >= 0 && ended)
			close(event->fd);
		else
			fds->all[nr++] = *event;
	}
	fds->nr = fds->nr_swept = nr;
}
