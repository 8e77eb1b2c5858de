/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/events/record_events.h"

#include "common/diag.h"
#include "common/interrupted.h"
#include "common/scope.h"
#include "probes/plan/probe_file.h"
#include "recorder/events/event_attr.h"
#include "recorder/events/event_list.h"

#include <errno.h>
#include <fcntl.h>
#include <perf/core.h>
#include <perf/cpumap.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <perf/threadmap.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* A large side ring: while all processes are inspected at the beginning, nothing drains it. */
#define SIDE_RING_PAGES_ALL 512

static int libperf_print(enum libperf_print_level level, const char *format, va_list args)
{
	/* libperf's debug messages are for its own tests; we see failures as return values. */
	return 0;
}

static int report_open_failure(int err)
{
	if (err == ESRCH)
		return -ESRCH;
	if (err == EMFILE || err == ENFILE)
		diag_error(
			"cannot open the perf events: %s; raise the limit on open files (ulimit -n)",
			strerror(err));
	else
		diag_error("cannot open the perf events: %s%s", probe_file_attach_error(err),
			   diag_rights_hint(err));
	return -err;
}

static int read_ids(struct record_group *group, size_t nr_cpus, size_t nr_threads)
{
	for (size_t i = 0; i < group->nr_events; i++) {
		struct record_event *event = &group->events[i];

		event->ids = calloc(nr_cpus * nr_threads, sizeof(*event->ids));
		if (!event->ids)
			return -ENOMEM;
		for (size_t cpu = 0; cpu < nr_cpus; cpu++) {
			for (size_t thread = 0; thread < nr_threads; thread++) {
				struct perf_counts_values count = {0};
				int err;

				if (is_interrupted())
					return -EINTR;
				err = perf_evsel__read(event->evsel, (int)cpu, (int)thread, &count);

				if (err < 0) {
					diag_error("cannot read the id of event %s: %s",
						   event->name, strerror(-err));
					return err;
				}
				event->ids[event->nr_ids++] = count.id;
			}
		}
	}
	return 0;
}

/* Collects the rings of a group, each with room for the descriptors of its first event. */
static int collect_rings(struct record_group *group, size_t nr_threads)
{
	struct perf_mmap *map;

	perf_evlist__for_each_mmap (group->evlist, map, false) {
		struct record_ring *ring;

		ring = reallocarray(group->rings, group->nr_rings + 1, sizeof(*ring));
		if (!ring)
			return -ENOMEM;
		group->rings = ring;
		ring += group->nr_rings++;
		*ring = (struct record_ring){.map = map, .nr_fds = nr_threads};
		ring->fds = malloc(nr_threads * sizeof(*ring->fds));
		if (!ring->fds)
			return -ENOMEM;
		for (size_t i = 0; i < nr_threads; i++)
			ring->fds[i] = -1;
	}
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* An event's ids ascend: the kernel numbers events as they are opened (perf_event_alloc()). */
static void place_fd(struct record_group *group, size_t nr_threads, uint64_t id, int fd)
{
	const struct record_event *first = &group->events[0];
	const uint64_t *found = bsearch(&id, first->ids, first->nr_ids, sizeof(id), compare_ids);
	size_t index = found ? (size_t)(found - first->ids) : 0;

	if (found && index / nr_threads < group->nr_rings)
		group->rings[index / nr_threads].fds[index % nr_threads] = fd;
}

static bool has_id(const struct record_event *event, uint64_t id)
{
	return bsearch(&id, event->ids, event->nr_ids, sizeof(id), compare_ids);
}

/* Sets the filter of the event to which @fd with @id belongs. */
static int apply_filter(const struct record_group *group, uint64_t id, int fd)
{
	for (size_t i = 0; i < group->nr_events; i++) {
		const struct record_event *event = &group->events[i];

		if (!event->filter || !has_id(event, id) ||
		    ioctl(fd, PERF_EVENT_IOC_SET_FILTER, event->filter) == 0)
			continue;
		int err = errno;

		diag_error("cannot filter %s by \"%s\": %s; `leakprobe add --pid PID "
			   "--dry-run` shows its fields",
			   event->name, event->filter, strerror(err));
		return -err;
	}
	return 0;
}

/* Finds the events' descriptors and sets FD_CLOEXEC, which libperf does not. */
static int collect_fds(struct record_events *events)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int err = 0;

	if (!dir) {
		err = errno;

		diag_error("cannot list /proc/self/fd: %s", strerror(err));
		return -err;
	}
	while (!err && (entry = readdir(dir))) {
		char link[32] = "";
		int fd = (int)strtol(entry->d_name, NULL, 10);
		uint64_t id;

		if (is_interrupted())
			return -EINTR;
		if (readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1) < 0 ||
		    strcmp(link, "anon_inode:[perf_event]") != 0 ||
		    ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
			continue;
		fcntl(fd, F_SETFD, FD_CLOEXEC);
		place_fd(&events->side, events->nr_threads, id, fd);
		if (events->probes.nr_events)
			place_fd(&events->probes, events->nr_threads, id, fd);
		err = apply_filter(&events->probes, id, fd);
	}
	return err;
}

static int open_group(struct record_group *group, struct perf_cpu_map *cpus,
		      struct perf_thread_map *threads, uint32_t pages, size_t *nr_left_out)
{
	int err;

	/* The evlist takes over the references it is given. */
	group->ring_bytes = (size_t)pages * (size_t)getpagesize();
	perf_evlist__set_maps(group->evlist, perf_cpu_map__get(cpus),
			      perf_thread_map__get(threads));
	err = record_group_open(group, cpus, threads, nr_left_out);
	if (err < 0)
		return err == -EINTR ? err : report_open_failure(-err);
	errno = 0;
	err = perf_evlist__mmap(group->evlist, (int)pages);
	if (err < 0) {
		err = errno ? errno : -err;
		diag_error("cannot map rings of %u pages: %s%s%s", pages, strerror(err),
			   err == EPERM ? "; give a smaller -m" : "", diag_rights_hint(err));
		return -err;
	}
	err = read_ids(group, (size_t)perf_cpu_map__nr(cpus), (size_t)perf_thread_map__nr(threads));
	return err ? err : collect_rings(group, (size_t)perf_thread_map__nr(threads));
}

/*
 * Opens the breakers before all other events, so that no task created meanwhile has a cloned
 * context.
 */
static int open_breakers(struct context_breakers *breakers, const pid_t *tids, size_t nr_tids)
{
	int err = 0;

	for (size_t i = 0; i < nr_tids && !err; i++)
		err = is_interrupted() ? -EINTR : context_breakers_add(breakers, tids[i]);
	return err && err != -ENOMEM && err != -EINTR ? report_open_failure(-err) : err;
}

void record_events_raise_fd_limit(size_t wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	struct rlimit higher = {wanted, limit.rlim_max > wanted ? limit.rlim_max : wanted};
	if (setrlimit(RLIMIT_NOFILE, &higher) < 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int record_events_open(struct record_events *ret, const struct probe_set *const *probes,
		       size_t nr_probes, const struct record_config *config, const pid_t *tids,
		       size_t nr_tids)
{
	struct perf_cpu_map *cpus = perf_cpu_map__new(NULL);
	struct perf_thread_map *threads = perf_thread_map__new_array((int)nr_tids, (pid_t *)tids);
	uint64_t format = event_attr_read_format();
	int err = -ENOMEM;

	libperf_init(libperf_print);
	*ret = (struct record_events){.nr_threads = nr_tids};
	ret->side.evlist = perf_evlist__new();
	ret->probes.evlist = perf_evlist__new();
	if (!cpus || !threads || !ret->side.evlist || !ret->probes.evlist)
		goto out;
	err = event_list_add_side(&ret->side, config, format);
	/* If BPF programs record probes, they record system calls, too. */
	if (!err && nr_probes)
		err = event_list_add_probes(&ret->probes, probes, nr_probes, config, format);
	if (err)
		goto out;
	/* One event may have its descriptors twice: apart_open(). */
	record_events_raise_fd_limit((ret->side.nr_events + ret->probes.nr_events + 1) * nr_tids *
					     (size_t)perf_cpu_map__nr(cpus) +
				     2 * nr_tids + 256);
	if (nr_probes && config->scope == RECORD_PROCESSES && event_attr_contexts_swap())
		err = open_breakers(&ret->breakers, tids, nr_tids);
	if (!err)
		err = open_group(&ret->side, cpus, threads,
				 *tids >= 0 ? SIDE_RING_PAGES : SIDE_RING_PAGES_ALL, NULL);
	if (!err && ret->probes.nr_events)
		err = open_group(&ret->probes, cpus, threads, config->ring_pages,
				 config->scope == RECORD_PROCESSES ? NULL : &ret->nr_left_out);
	if (!err)
		err = collect_fds(ret);
out:
	if (err == -ENOMEM)
		diag_error("cannot open the perf events: out of memory");
	perf_thread_map__put(threads);
	perf_cpu_map__put(cpus);
	return err;
}

int record_events_enable(struct record_group *group)
{
	for (size_t i = 0; i < group->nr_events; i++) {
		if (is_interrupted())
			return -EINTR;
		if (group->events[i].evsel)
			perf_evsel__enable(group->events[i].evsel);
	}
	return 0;
}

static int close_evsels(struct record_group *group)
{
	for (size_t i = 0; i < group->nr_events; i++) {
		if (is_interrupted())
			return -EINTR;
		if (group->events[i].evsel)
			perf_evsel__close(group->events[i].evsel);
	}
	return 0;
}

int record_events_give_up(struct record_events *events)
{
	int err = close_evsels(&events->side);

	if (!err)
		err = close_evsels(&events->probes);
	if (!err)
		record_events_close(events);
	return err;
}

void record_events_close(struct record_events *events)
{
	record_group_close(&events->side);
	record_group_close(&events->probes);
	side_filter_destroy(events->filter);
	events->filter = NULL;
	context_breakers_deinit(&events->breakers);
}

int record_events_add_written(struct record_events *events, const struct record_config *config,
			      char *name, char *format, uint64_t type, uint64_t id, bool has_stack)
{
	struct record_group *group = &events->probes;
	struct record_event *event =
		reallocarray(group->events, group->nr_events + 1, sizeof(*event));

	if (!event) {
		free(name);
		free(format);
		return -ENOMEM;
	}
	group->events = event;
	event += group->nr_events++;
	*event = (struct record_event){.name = name, .format = format, .has_stack = has_stack};
	event_attr_init(&event->attr, event_attr_read_format());
	event->attr.type = PERF_TYPE_TRACEPOINT;
	event->attr.config = type;
	event->attr.sample_type |= PERF_SAMPLE_RAW;
	if (has_stack)
		event_attr_want_stack(&event->attr, config);
	event_attr_describe_stack(&event->attr, config);
	event->ids = malloc(sizeof(*event->ids));
	if (!name || !format || !event->ids)
		return -ENOMEM;
	event->ids[event->nr_ids++] = id;
	return 0;
}

struct record_totals record_events_totals(const struct record_events *events)
{
	struct record_totals totals = events->removed;

	for (size_t i = 0; i < events->probes.nr_events; i++)
		record_event_add_totals(&events->probes.events[i], events->nr_threads, &totals);
	return totals;
}
