/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/process_memory.h"

#include "common/proc/living_thread.h"
#include "common/proc/proc_file.h"
#include "common/scope.h"

#include <errno.h>

int process_memory_parse(const char *text, struct process_memory *ret)
{
	const struct {
		const char *key;
		uint64_t *bytes;
	} lines[] = {
		{"RssAnon:", &ret->anon_bytes},	   {"RssFile:", &ret->file_bytes},
		{"RssShmem:", &ret->shared_bytes}, {"VmSwap:", &ret->swap_bytes},
		{"VmData:", &ret->data_bytes},
	};

	*ret = (struct process_memory){0};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		uint64_t kib;

		if (proc_file_number(text, lines[i].key, &kib))
			return -ENODATA;
		*lines[i].bytes = kib * 1024;
	}
	return 0;
}

int process_memory_read_at(int proc_fd, struct process_memory *ret)
{
	char text[PROC_FILE_STATUS_SIZE];
	char name[PROC_FILE_PATH_SIZE];
	int err = proc_file_read_at(proc_fd, "status", text, sizeof(text));
	pid_t thread;

	if (!err)
		err = process_memory_parse(text, ret);
	if (err != -ENODATA)
		return err;
	thread = living_thread_at(proc_fd);
	if (!thread)
		return -ENODATA;
	snprintf(name, sizeof(name), "task/%d/status", (int)thread);
	err = proc_file_read_at(proc_fd, name, text, sizeof(text));
	return err ? err : process_memory_parse(text, ret);
}
