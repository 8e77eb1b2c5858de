/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/process_stat.h"

#include "common/proc/proc_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* PF_EXITING and PF_KTHREAD in the kernel's include/linux/sched.h (6.1 to 6.18) */
#define EXITING_FLAG	   0x00000004
#define KERNEL_THREAD_FLAG 0x00200000

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

static void set_field(struct process_stat *ret, int field, uint64_t value)
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
		ret->is_ending = value & EXITING_FLAG;
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

int process_stat_parse(const char *text, struct process_stat *ret)
{
	/* The command name, field 2, may hold blanks and brackets: the last bracket ends it. */
	const char *field = strrchr(text, ')');

	if (!field || field[1] != ' ' || !field[2])
		return -EINVAL;
	field += 2;
	*ret = (struct process_stat){.state = *field};
	for (int i = FIELD_STATE + 1; i <= FIELD_START_TIME; i++) {
		field = strchr(field, ' ');
		if (!field)
			return -EINVAL;
		field++;
		set_field(ret, i, strtoull(field, NULL, 10));
	}
	return 0;
}

int process_stat_read(pid_t pid, struct process_stat *ret)
{
	char text[1024];
	int err = proc_file_read(pid, "stat", text, sizeof(text));

	return err ? err : process_stat_parse(text, ret);
}
