/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/events/record_events.h"

#include "common/diag.h"
#include "common/interrupted.h"
#include "common/scope.h"
#include "common/schema/syscall_schema.h"
#include "probes/plan/probe_file.h"
#include "recorder/events/event_attr.h"
#include "recorder/events/mark_format.h"

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

#define SIDE_RING_PAGES 64
/* A large side ring: while all processes are inspected at the beginning, nothing drains it. */
#define SIDE_RING_PAGES_ALL 512

static int libperf_print(enum libperf_print_level level, const char *format, va_list args)
{
	/* libperf's debug messages are for its own tests; we see failures as return values. */
	return 0;
}

static int add_event(struct record_group *group, struct perf_event_attr *attr, const char *format,
		     ...) __attribute__((format(printf, 3, 4)));

static int add_event(struct record_group *group, struct perf_event_attr *attr, const char *format,
		     ...)
{
	struct record_event *event;
	va_list args;
	int len;

	event = reallocarray(group->events, group->nr_events + 1, sizeof(*event));
	if (!event)
		return -ENOMEM;
	group->events = event;
	event += group->nr_events;
	*event = (struct record_event){.attr = *attr,
				       .has_stack = attr->sample_type & PERF_SAMPLE_CALLCHAIN};

	va_start(args, format);
	len = vasprintf(&event->name, format, args);
	va_end(args);
	if (len < 0) {
		event->name = NULL;
		return -ENOMEM;
	}
	group->nr_events++;
	event->evsel = perf_evsel__new(attr);
	if (!event->evsel)
		return -ENOMEM;
	perf_evlist__add(group->evlist, event->evsel);
	return 0;
}

/* The id of a tracepoint of the kernel's own, or -1 where it does not exist. */
static long tracepoint_id(const char *tracepoint)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	const char *tracefs = probe_tracefs_dir();
	long id;

	if (!tracefs || asprintf(&path, "%s/events/%s/id", tracefs, tracepoint) < 0)
		return -1;
	f = fopen(path, "re");
	return f && fscanf(f, "%ld", &id) == 1 ? id : -1;
}

static int add_side_events(struct record_group *group, const struct record_config *config,
			   uint64_t format)
{
	struct perf_event_attr attr;
	long newtask = tracepoint_id("task/task_newtask");
	int err;

	event_attr_init(&attr, format);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.exclude_kernel = 1;
	if (!event_attr_contexts_swap())
		event_attr_want_own_context(&attr);
	/* perf unwinds a dump with .eh_frame, which may lie in a mapping that is not executable. */
	attr.mmap_data = record_config_keeps_dumps(config);
	attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
	attr.build_id = 1;
	/* Half of a small ring. All processes together fill a large one fast. */
	event_attr_want_wakeup_at(&attr, SIDE_RING_PAGES / 2);
	err = add_event(group, &attr, "dummy:u");
	if (err)
		return err;

	if (newtask < 0) {
		diag_warn("cannot tell vfork from fork: there is no tracepoint task:task_newtask");
		return 0;
	}
	event_attr_init(&attr, format);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = (uint64_t)newtask;
	attr.sample_type |= PERF_SAMPLE_RAW;
	return add_event(group, &attr, "task:task_newtask");
}

/* Adds the event to which the rings belong. It counts nothing. */
static int add_ring_event(struct record_group *group, const struct record_config *config,
			  uint64_t format)
{
	struct perf_event_attr attr;

	event_attr_init(&attr, format);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.exclude_kernel = 1;
	event_attr_want_wakeup(&attr, config);
	return add_event(group, &attr, "dummy:u");
}

/* Adds the event of one end of a system call. */
static int add_syscall_event(struct record_group *group, const struct syscall_schema *schema,
			     bool is_exit, const struct record_config *config, uint64_t format)
{
	const char *end = is_exit ? "exit" : "enter";
	struct perf_event_attr attr;
	char path[64];
	long id;
	int err;

	snprintf(path, sizeof(path), SYSCALL_SYSTEM "/sys_%s_%s", end, schema->name);
	id = tracepoint_id(path);
	if (id < 0) {
		diag_error(
			"cannot record the system call %s: tracefs has no events/%s; that takes a "
			"kernel with CONFIG_FTRACE_SYSCALLS",
			schema->name, path);
		return -ENOENT;
	}
	event_attr_init(&attr, format);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = (uint64_t)id;
	attr.sample_type |= PERF_SAMPLE_RAW;
	event_attr_want_wakeup(&attr, config);
	if (event_attr_syscall_has_stack(schema, is_exit, config))
		event_attr_want_stack(&attr, config);
	err = add_event(group, &attr, SYSCALL_SYSTEM ":sys_%s_%s", end, schema->name);
	if (err)
		return err;
	group->events[group->nr_events - 1].is_syscall = true;
	event_attr_describe_stack(&group->events[group->nr_events - 1].attr, config);
	return 0;
}

static int add_syscall_events(struct record_group *group, const struct record_config *config,
			      uint64_t format)
{
	size_t nr;
	const struct syscall_schema *table = syscall_schema_table(&nr);
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		if (!(table[i].groups & config->syscalls) || table[i].number < 0)
			continue;
		err = add_syscall_event(group, &table[i], false, config, format);
		if (!err)
			err = add_syscall_event(group, &table[i], true, config, format);
	}
	return err;
}

/* leakrec writes the samples of marks as programs do (mark_texts.h). */
static int describe_mark(struct record_event *event, const struct probe *mark)
{
	event_attr_describe_text(&event->attr);
	event->mark = mark;
	event->format = mark_format_text(mark->event, event->attr.config);
	return event->format ? 0 : -ENOMEM;
}

static int add_probe_events(struct record_group *group, const struct probe_set *probes,
			    const struct record_config *config, uint64_t format)
{
	for (size_t i = 0; i < probes->nr_files; i++) {
		const struct probe_file *file = &probes->files[i];

		for (size_t j = 0; j < file->nr_probes; j++) {
			const struct probe *probe = &file->probes[j];
			struct perf_event_attr attr;
			struct record_event *event;
			uint16_t caller_at;
			int err;

			if (probe->tracefs_id < 0)
				continue;
			event_attr_init(&attr, format);
			attr.type = PERF_TYPE_TRACEPOINT;
			attr.config = (uint64_t)probe->tracefs_id;
			attr.sample_type |= PERF_SAMPLE_RAW;
			event_attr_want_wakeup(&attr, config);
			if (probe->schema->effect == HEAP_MARK)
				event_attr_want_text(&attr);
			else if (probe_point_is_return(probe->point) ||
				 event_attr_entry_has_stack(probe, config))
				event_attr_want_stack(&attr, config);
			caller_at = event_attr_want_caller(&attr, probe);
			err = add_event(group, &attr, "%s:%s", file->group, probe->event);
			if (err)
				return err;
			event = &group->events[group->nr_events - 1];
			event->file = file;
			event->caller_at = caller_at;
			event->has_dump = attr.sample_type & PERF_SAMPLE_REGS_USER;
			if (probe->schema->effect == HEAP_MARK)
				err = describe_mark(event, probe);
			else
				event_attr_describe_stack(&event->attr, config);
			if (err)
				return err;
		}
	}
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

/* Gives each filter to the event that it names. */
static int assign_filters(struct record_group *group, const struct record_config *config)
{
	for (size_t i = 0; i < config->nr_filters; i++) {
		size_t len = strcspn(config->filters[i], ":"), nr_found = 0;

		for (size_t j = 0; j < group->nr_events; j++) {
			const char *name = strchr(group->events[j].name, ':') + 1;

			if (strlen(name) != len || memcmp(name, config->filters[i], len) != 0)
				continue;
			group->events[j].filter = config->filters[i] + len + 1;
			nr_found++;
			if (group->events[j].caller_at &&
			    strstr(group->events[j].filter, PROBE_FIELD_CALLER)) {
				diag_error("cannot filter by " PROBE_FIELD_CALLER
					   ": the kernel does not read it");
				return -EINVAL;
			}
		}
		if (!nr_found) {
			diag_error("--filter: there is no event %.*s; `leakprobe add --pid PID "
				   "--dry-run` shows them",
				   (int)len, config->filters[i]);
			return -ENOENT;
		}
	}
	return 0;
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
	err = add_side_events(&ret->side, config, format);
	if (!err && nr_probes)
		err = add_ring_event(&ret->probes, config, format);
	for (size_t i = 0; i < nr_probes && !err; i++)
		err = add_probe_events(&ret->probes, probes[i], config, format);
	/* If BPF programs record probes, they record system calls, too. */
	if (!err && nr_probes)
		err = add_syscall_events(&ret->probes, config, format);
	if (!err)
		err = assign_filters(&ret->probes, config);
	if (err)
		goto out;
	record_events_raise_fd_limit((ret->side.nr_events + ret->probes.nr_events) * nr_tids *
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

static void group_close(struct record_group *group)
{
	if (group->evlist) {
		perf_evlist__munmap(group->evlist);
		perf_evlist__close(group->evlist);
		perf_evlist__delete(group->evlist);
	}
	for (size_t i = 0; i < group->nr_events; i++) {
		free(group->events[i].name);
		free(group->events[i].format);
		free(group->events[i].ids);
	}
	for (size_t i = 0; i < group->nr_rings; i++)
		free(group->rings[i].fds);
	free(group->events);
	free(group->rings);
	*group = (struct record_group){0};
}

void record_events_close(struct record_events *events)
{
	group_close(&events->side);
	group_close(&events->probes);
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
