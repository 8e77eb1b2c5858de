/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/process_status.h"

#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>

#define KERNEL_THREAD_FLAG 0x00200000 /* PF_KTHREAD in the kernel's include/linux/sched.h (6.1) */

enum {
	FIELD_STATE = 3,
	FIELD_PARENT = 4,
	FIELD_GROUP = 5,
	FIELD_SESSION = 6,
	FIELD_TERMINAL = 7,
	FIELD_FLAGS = 9,
	FIELD_NR_THREADS = 20,
	FIELD_START_TIME = 22,
};

static void set_field(struct process_status *ret, int field, uint64_t value)
{
	switch (field) {
	case FIELD_PARENT:
		ret->parent = (pid_t)value;
		break;
	case FIELD_GROUP:
		ret->group = (pid_t)value;
		break;
	case FIELD_SESSION:
		ret->session = (pid_t)value;
		break;
	case FIELD_TERMINAL:
		ret->terminal = value;
		break;
	case FIELD_FLAGS:
		ret->kernel_thread = value & KERNEL_THREAD_FLAG;
		break;
	case FIELD_NR_THREADS:
		ret->nr_threads = value;
		break;
	case FIELD_START_TIME:
		ret->start_time_ticks = value;
		break;
	default:
		break;
	}
}

int process_status_parse(const char *text, struct process_status *ret)
{
	/* The command name, field 2, may hold blanks and brackets: the last bracket ends it. */
	const char *field = strrchr(text, ')');

	if (!field || field[1] != ' ' || !field[2])
		return -EINVAL;
	field += 2;
	*ret = (struct process_status){.state = *field};
	for (int i = FIELD_STATE + 1; i <= FIELD_START_TIME; i++) {
		field = strchr(field, ' ');
		if (!field)
			return -EINVAL;
		field++;
		set_field(ret, i, strtoull(field, NULL, 10));
	}
	return 0;
}

/* Reads the beginning of /proc/PID/FILE. Returns 0 or a negative errno. */
static int read_file(pid_t pid, const char *file, char *text, size_t size)
{
	_cleanup_close_ int fd = -1;
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	len = read(fd, text, size - 1);
	if (len < 0)
		return -errno;
	text[len] = '\0';
	return 0;
}

int process_status_read(pid_t pid, struct process_status *ret)
{
	char text[1024];
	int err = read_file(pid, "stat", text, sizeof(text));

	return err ? err : process_status_parse(text, ret);
}

/* The number behind @key, which begins with "\n", in /proc/PID/status, or a negative errno. */
static pid_t read_number(pid_t pid, const char *key)
{
	char text[1024];
	int err = read_file(pid, "status", text, sizeof(text));
	/* The name before it has its line feeds escaped. */
	const char *field = err ? NULL : strstr(text, key);

	if (err)
		return err;
	return field ? (pid_t)strtol(field + strlen(key), NULL, 10) : -EINVAL;
}

pid_t process_status_of_thread(pid_t tid)
{
	return read_number(tid, "\nTgid:");
}

pid_t process_status_tracer(pid_t pid)
{
	return read_number(pid, "\nTracerPid:");
}
