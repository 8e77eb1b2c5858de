/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/output/perf_features.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <sys/utsname.h>
#include <tracefs.h>

/*
 * Adds a string as perf stores it: its length, rounded up to a multiple of 64; its bytes; NULs up
 * to that length.
 */
static void add_string(struct byte_buffer *section, const char *text)
{
	size_t len = strlen(text) + 1, padded = (len + 63) / 64 * 64;

	byte_buffer_add_u32(section, (uint32_t)padded);
	byte_buffer_add(section, text, len);
	byte_buffer_add_zeros(section, padded - len);
}

/*
 * Adds the number of attributes and their size, then for each attribute itself, its ids and its
 * name.
 */
static void add_event_descriptions(struct byte_buffer *section, const struct record_events *events)
{
	const struct record_group *groups[] = {&events->side, &events->probes};

	byte_buffer_add_u32(section, (uint32_t)(events->side.nr_events + events->probes.nr_events));
	byte_buffer_add_u32(section, sizeof(struct perf_event_attr));
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		for (size_t i = 0; i < groups[g]->nr_events; i++) {
			const struct record_event *event = &groups[g]->events[i];

			byte_buffer_add(section, &event->attr, sizeof(struct perf_event_attr));
			byte_buffer_add_u32(section, (uint32_t)event->nr_ids);
			add_string(section, event->name);
			byte_buffer_add(section, event->ids, event->nr_ids * sizeof(*event->ids));
		}
	}
}

/* The caller frees it. NULL: reported, with errno set. */
static char *read_tracefs_file(const char *name, int *ret_size)
{
	char *text = tracefs_instance_file_read(NULL, name, ret_size);
	int err;

	if (text)
		return text;
	err = errno ? errno : EIO;
	diag_error("cannot read %s of tracefs: %s", name, strerror(err));
	errno = err;
	return NULL;
}

char *perf_features_event_format(const struct record_event *event)
{
	size_t len = strcspn(event->name, ":");
	_cleanup_free_ char *path = NULL;
	int size;

	if (event->format)
		return strdup(event->format);
	if (asprintf(&path, "events/%.*s/%s/format", (int)len, event->name, event->name + len + 1) <
	    0)
		return NULL;
	return read_tracefs_file(path, &size);
}

/* Adds a file of tracefs: its base name, its size, its text. */
static int add_tracefs_file(struct byte_buffer *section, const char *name)
{
	int size = 0;
	_cleanup_free_ char *text = read_tracefs_file(name, &size);
	const char *base = strrchr(name, '/') + 1;

	if (!text)
		return -errno;
	byte_buffer_add(section, base, strlen(base) + 1);
	byte_buffer_add_u64(section, (uint64_t)size);
	byte_buffer_add(section, text, (size_t)size);
	return 0;
}

static void add_text(struct byte_buffer *section, const char *text)
{
	byte_buffer_add_u64(section, strlen(text));
	byte_buffer_add(section, text, strlen(text));
}

/* Adds the formats of the @nr tracepoints @events ("system:event"), all of one system. */
static int add_system(struct byte_buffer *section, const struct record_event *const *events,
		      size_t nr)
{
	const char *name = events[0]->name;
	size_t len = strcspn(name, ":");

	byte_buffer_add(section, name, len);
	byte_buffer_add_zeros(section, 1);
	byte_buffer_add_u32(section, (uint32_t)nr);
	for (size_t i = 0; i < nr; i++) {
		_cleanup_free_ char *text = perf_features_event_format(events[i]);

		if (!text)
			return -errno;
		add_text(section, text);
	}
	return 0;
}

static int add_systems(struct byte_buffer *section, const struct record_events *events)
{
	const struct record_group *groups[] = {&events->side, &events->probes};
	size_t nr_events = events->side.nr_events + events->probes.nr_events, nr = 0,
	       nr_systems = 0;
	_cleanup_free_ const struct record_event **traced =
		calloc(nr_events, sizeof(const struct record_event *));
	int err = 0;

	if (!traced)
		return -ENOMEM;
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++)
		for (size_t i = 0; i < groups[g]->nr_events; i++)
			if (groups[g]->events[i].attr.type == PERF_TYPE_TRACEPOINT)
				traced[nr++] = &groups[g]->events[i];

	/*
	 * Events of a system are neighbours: the probes of a tracefs group are one file of the
	 * probe set.
	 */
	size_t count_at = section->size;
	byte_buffer_add_u32(section, 0);
	for (size_t first = 0, next; first < nr && !err; first = next) {
		size_t len = strcspn(traced[first]->name, ":") + 1;

		for (next = first + 1; next < nr; next++)
			if (strncmp(traced[next]->name, traced[first]->name, len) != 0)
				break;
		err = add_system(section, traced + first, next - first);
		nr_systems++;
	}
	if (!section->failed)
		memcpy(section->bytes + count_at, &(uint32_t){(uint32_t)nr_systems}, 4);
	return err;
}

/*
 * Version 0.6 of the trace data that perf embeds: page headers, ftrace's own events (none: nothing
 * here uses them), the formats of each system's events, kernel symbols, printk formats and command
 * lines (none: no kernel address is recorded).
 */
static int add_tracing_data(struct byte_buffer *section, const struct record_events *events)
{
	static const char magic[] = {23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g'};
	const uint8_t big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	int err;

	byte_buffer_add(section, magic, sizeof(magic));
	byte_buffer_add(section, "0.6", 4);
	byte_buffer_add(section, &big_endian, 1);
	byte_buffer_add(section, &(uint8_t){sizeof(long)}, 1);
	byte_buffer_add_u32(section, (uint32_t)getpagesize());
	err = add_tracefs_file(section, "events/header_page");
	if (!err)
		err = add_tracefs_file(section, "events/header_event");
	if (err)
		return err;
	byte_buffer_add_u32(section, 0); /* ftrace events */
	err = add_systems(section, events);
	if (err)
		return err;
	byte_buffer_add_u32(section, 0); /* kallsyms */
	byte_buffer_add_u32(section, 0); /* printk formats */
	byte_buffer_add_u64(section, 0); /* saved command lines */
	return 0;
}

static void add_cmdline(struct byte_buffer *section, int argc, char *const *argv)
{
	byte_buffer_add_u32(section, (uint32_t)argc);
	for (int i = 0; i < argc; i++)
		add_string(section, argv[i]);
}

/* All events have CLOCK_MONOTONIC's times (recorder/events/event_attr.c). */
static void add_clock(struct byte_buffer *section)
{
	struct perf_clock_data data = {PERF_CLOCK_DATA_VERSION, CLOCK_MONOTONIC, 0, 0};
	struct timespec day;

	clock_gettime(CLOCK_REALTIME, &day);
	data.clock_ns = clock_now_ns();
	data.day_ns = (uint64_t)day.tv_sec * 1000000000 + (uint64_t)day.tv_nsec;
	byte_buffer_add(section, &data, sizeof(data));
}

int perf_features_collect(struct perf_features *ret, const struct record_events *events, int argc,
			  char *const *argv)
{
	struct byte_buffer *sections = ret->sections;
	struct utsname uts;
	int err;

	*ret = (struct perf_features){0};
	err = add_tracing_data(&sections[PERF_FEATURE_TRACING_DATA], events);
	if (err)
		return err;
	if (uname(&uts) == 0) {
		add_string(&sections[PERF_FEATURE_HOSTNAME], uts.nodename);
		add_string(&sections[PERF_FEATURE_OSRELEASE], uts.release);
		add_string(&sections[PERF_FEATURE_ARCH], uts.machine);
	}
	add_string(&sections[PERF_FEATURE_VERSION], "leakrec " LEAKTOOLS_VERSION);
	byte_buffer_add_u32(&sections[PERF_FEATURE_NRCPUS],
			    (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
	byte_buffer_add_u32(&sections[PERF_FEATURE_NRCPUS],
			    (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	add_cmdline(&sections[PERF_FEATURE_CMDLINE], argc, argv);
	add_event_descriptions(&sections[PERF_FEATURE_EVENT_DESC], events);
	add_clock(&sections[PERF_FEATURE_CLOCK_DATA]);

	for (size_t i = 0; i < PERF_FEATURES_MAX; i++)
		if (sections[i].failed)
			return -ENOMEM;
	return 0;
}

void perf_features_deinit(struct perf_features *features)
{
	for (size_t i = 0; i < PERF_FEATURES_MAX; i++)
		byte_buffer_deinit(&features->sections[i]);
}
