/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/bystanders.h"

#include "common/diag.h"
#include "common/scope.h"
#include "recorder/process_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#define MAX_ANCESTORS 256

/* One end of a pipe that a process has open. */
struct pipe_end {
	pid_t pid;
	bool reads; /* or writes */
	dev_t device;
	ino_t inode;
};

struct pipe_ends {
	struct pipe_end *ends;
	size_t nr;
};

/* The number behind @key in a file of /proc, in base @base; -1: there is none. */
static long read_number(const char *path, const char *key, int base)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			return strtol(line + strlen(key), NULL, base);
	return -1;
}

static void spare_ancestors(struct gate *gate)
{
	pid_t pid = getpid();

	gate_set_role(gate, 1, GATE_SPARED);
	for (int i = 0; i < MAX_ANCESTORS && pid > 1; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
		pid = (pid_t)read_number(path, "PPid:", 10);
		if (pid > 1)
			gate_set_role(gate, pid, GATE_SPARED);
	}
}

static int add_end(struct pipe_ends *ends, const struct pipe_end *end)
{
	if ((ends->nr & (ends->nr - 1)) == 0) {
		struct pipe_end *grown =
			reallocarray(ends->ends, ends->nr ? ends->nr * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		ends->ends = grown;
	}
	ends->ends[ends->nr++] = *end;
	return 0;
}

/* Adds what @pid has open of pipes. */
static int add_ends_of(struct pipe_ends *ends, pid_t pid)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[64];
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !err && (entry = readdir(dir))) {
		struct stat st;
		bool reads;
		long flags;

		if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 ||
		    !S_ISFIFO(st.st_mode))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.20s", (int)pid, entry->d_name);
		flags = read_number(path, "flags:", 8);
		if (flags < 0)
			continue;
		/*
		 * What is open for both is read, to be on the safe side. What a shell has left open
		 * beside standard output and error is seldom written.
		 */
		reads = (flags & O_ACCMODE) != O_WRONLY;
		if (!reads && strtol(entry->d_name, NULL, 10) > STDERR_FILENO)
			continue;
		err = add_end(ends, &(struct pipe_end){.pid = pid,
						       .reads = reads,
						       .device = st.st_dev,
						       .inode = st.st_ino});
	}
	return err;
}

static int find_ends(struct pipe_ends *ret)
{
	struct process_list list = {0};
	int err = process_list_add_all(&list);

	for (size_t i = 0; i < list.nr && !err; i++) {
		err = list.pids[i] == getpid() ? 0 : add_ends_of(ret, list.pids[i]);
		if (err)
			diag_error("cannot find the recording's reader: %s", strerror(-err));
	}
	process_list_deinit(&list);
	return err;
}

/* Adds those that read from the pipe to @readers, if they are not there. */
static int add_readers(const struct pipe_ends *ends, dev_t device, ino_t inode,
		       struct process_list *readers)
{
	for (size_t i = 0; i < ends->nr; i++) {
		const struct pipe_end *end = &ends->ends[i];
		bool is_known = false;

		if (!end->reads || end->device != device || end->inode != inode)
			continue;
		for (size_t j = 0; j < readers->nr; j++)
			is_known |= readers->pids[j] == end->pid;
		if (!is_known && process_list_add(readers, end->pid))
			return -ENOMEM;
	}
	return 0;
}

/* The readers of the pipe, of what they write, and so on. */
static int find_readers(const struct pipe_ends *ends, const struct stat *pipe,
			struct process_list *ret)
{
	int err = add_readers(ends, pipe->st_dev, pipe->st_ino, ret);

	for (size_t i = 0; i < ret->nr && !err; i++)
		for (size_t j = 0; j < ends->nr && !err; j++)
			if (ends->ends[j].pid == ret->pids[i] && !ends->ends[j].reads)
				err = add_readers(ends, ends->ends[j].device, ends->ends[j].inode,
						  ret);
	if (err)
		diag_error("cannot find the recording's reader: out of memory");
	return err;
}

static int leave_readers_out(struct gate *gate, const struct stat *pipe)
{
	struct process_list readers = {0};
	struct pipe_ends ends = {0};
	int err = find_ends(&ends);

	if (!err)
		err = find_readers(&ends, pipe, &readers);
	for (size_t i = 0; i < readers.nr && !err; i++)
		gate_set_role(gate, readers.pids[i], GATE_LEFT_OUT);
	process_list_deinit(&readers);
	free(ends.ends);
	return err;
}

int bystanders_exempt(struct gate *gate, const char *output)
{
	struct stat st;
	int found = strcmp(output, "-") == 0 ? fstat(STDOUT_FILENO, &st) : stat(output, &st);

	spare_ancestors(gate);
	gate_set_role(gate, getpid(), GATE_LEFT_OUT);
	gate_set_role(gate, gate_guard_pid(gate), GATE_LEFT_OUT);
	if (found < 0 || !S_ISFIFO(st.st_mode))
		return 0;
	return leave_readers_out(gate, &st);
}
