/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/events/event_list.h"

#include "common/diag.h"
#include "common/schema/syscall_schema.h"
#include "common/scope.h"
#include "recorder/events/event_attr.h"
#include "recorder/events/mark_format.h"

#include <errno.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <stdarg.h>

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

int event_list_add_side(struct record_group *group, const struct record_config *config,
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

static int add_probe_event(struct record_group *group, const struct probe_file *file,
			   const struct probe *probe, const struct record_config *config,
			   uint64_t format)
{
	struct perf_event_attr attr;
	struct record_event *event;
	uint16_t caller_at;
	int err;

	event_attr_init(&attr, format);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = (uint64_t)probe->tracefs_id;
	attr.sample_type |= PERF_SAMPLE_RAW;
	event_attr_want_wakeup(&attr, config);
	if (probe->schema->effect == HEAP_MARK)
		event_attr_want_text(&attr);
	else if (probe_point_is_return(probe->point) || event_attr_entry_has_stack(probe, config))
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
		return describe_mark(event, probe);
	event_attr_describe_stack(&event->attr, config);
	return 0;
}

/* Adds the events of the probes that tracefs has. */
static int add_file_events(struct record_group *group, const struct probe_file *file,
			   const struct record_config *config, uint64_t format)
{
	int err = 0;

	for (size_t i = 0; i < file->nr_probes && !err; i++)
		if (file->probes[i].tracefs_id >= 0)
			err = add_probe_event(group, file, &file->probes[i], config, format);
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

int event_list_add_probes(struct record_group *group, const struct probe_set *const *sets,
			  size_t nr_sets, const struct record_config *config, uint64_t format)
{
	int err = add_ring_event(group, config, format);

	for (size_t i = 0; i < nr_sets && !err; i++)
		for (size_t j = 0; j < sets[i]->nr_files && !err; j++)
			err = add_file_events(group, &sets[i]->files[j], config, format);
	if (!err)
		err = add_syscall_events(group, config, format);
	return err ? err : assign_filters(group, config);
}
