/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/conditions/condition_sources.h"

#include "common/diag.h"
#include "common/proc/cgroup.h"
#include "common/proc/process_memory.h"
#include "common/proc/proc_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 512
#define CENT	   100 /* hundredths of a percent in one */

static bool has_kind(const struct condition *conditions, size_t nr, enum condition_kind first,
		     enum condition_kind last)
{
	for (size_t i = 0; i < nr; i++)
		if (conditions[i].kind >= first && conditions[i].kind <= last)
			return true;
	return false;
}

static int open_at(int dir_fd, const char *name)
{
	return dir_fd < 0 ? -1 : openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

static int open_pressure(int cgroup_fd)
{
	int fd = open_at(cgroup_fd, "memory.pressure");

	if (fd < 0)
		fd = open("/proc/pressure/memory", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		fd = -errno;
		diag_error("cannot watch memory pressure: /proc/pressure/memory: %s; leave out "
			   "--when pressure, or boot with psi=1",
			   strerror(-fd));
	}
	return fd;
}

static int open_events(int cgroup_fd)
{
	int fd = open_at(cgroup_fd, "memory.events");

	if (fd < 0) {
		fd = -ENOENT;
		diag_error("cannot watch the memory of the cgroup: it has no memory.events; that "
			   "needs a cgroup of version 2, not the root, with the controller memory");
	}
	return fd;
}

int condition_sources_open(struct condition_sources *ret, const struct condition *conditions,
			   size_t nr, const struct memory_samples *memory, int cgroup_fd, pid_t pid)
{
	bool wants_pressure = has_kind(conditions, nr, CONDITION_PRESSURE, CONDITION_PRESSURE);
	bool wants_events = has_kind(conditions, nr, CONDITION_HIGH, CONDITION_OOM);
	_cleanup_close_ int own_fd = -1;

	*ret = (struct condition_sources){.pressure_fd = -1, .events_fd = -1};
	if (has_kind(conditions, nr, CONDITION_RSS, CONDITION_RSS_GROWTH))
		ret->memory = memory;
	if (cgroup_fd < 0 && (wants_pressure || wants_events))
		own_fd = cgroup_open_of(pid);
	if (own_fd >= 0)
		cgroup_fd = own_fd;
	if (wants_pressure)
		ret->pressure_fd = open_pressure(cgroup_fd);
	if (wants_events)
		ret->events_fd = open_events(cgroup_fd);
	if (wants_pressure && ret->pressure_fd < 0)
		return ret->pressure_fd;
	return wants_events && ret->events_fd < 0 ? ret->events_fd : 0;
}

void condition_sources_close(struct condition_sources *sources)
{
	if (sources->pressure_fd >= 0)
		close(sources->pressure_fd);
	if (sources->events_fd >= 0)
		close(sources->events_fd);
	sources->pressure_fd = sources->events_fd = -1;
}

static void read_rss(const struct memory_samples *samples, struct condition_values *values)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < samples->nr; i++) {
		struct process_memory memory;

		if (process_memory_read_at(samples->processes[i].proc_fd, &memory))
			continue;
		bytes += memory.anon_bytes + memory.file_bytes + memory.shared_bytes;
		values->nr_processes++;
	}
	if (values->nr_processes)
		values->rss_bytes = bytes;
}

/* Reads a file of the kernel again from its beginning. Returns false if that fails. */
static bool read_text(int fd, char text[TEXT_BYTES])
{
	ssize_t len = fd < 0 ? -1 : pread(fd, text, TEXT_BYTES - 1, 0);

	if (len <= 0)
		return false;
	text[len] = '\0';
	return true;
}

uint64_t condition_sources_pressure(const char *text)
{
	const char *some = "some avg10=";
	char *end;
	unsigned long whole, cents;

	if (strncmp(text, some, strlen(some)) != 0)
		return UINT64_MAX;
	whole = strtoul(text + strlen(some), &end, 10);
	if (*end != '.' || whole > 100)
		return UINT64_MAX;
	/* The kernel prints two digits: "%lu.%02lu" (psi_show(), kernel/sched/psi.c, 6.1). */
	cents = strtoul(end + 1, &end, 10);
	return *end == ' ' && cents < CENT ? whole * CENT + cents : UINT64_MAX;
}

struct condition_values condition_sources_read(const struct condition_sources *sources,
					       uint64_t now_ns)
{
	struct condition_values values = {
		now_ns, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0,
	};
	char text[TEXT_BYTES];
	uint64_t killed;

	if (sources->memory)
		read_rss(sources->memory, &values);
	if (read_text(sources->pressure_fd, text))
		values.pressure = condition_sources_pressure(text);
	if (!read_text(sources->events_fd, text))
		return values;
	/* On failure, they stay as they are. */
	proc_file_number(text, "high", &values.high);
	proc_file_number(text, "max", &values.max);
	/* What the whole machine's lack of memory ends counts as killed only. */
	if (proc_file_number(text, "oom", &values.oom) == 0 &&
	    proc_file_number(text, "oom_kill", &killed) == 0)
		values.oom += killed;
	return values;
}
