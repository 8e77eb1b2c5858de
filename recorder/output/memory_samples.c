/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/output/memory_samples.h"

#include "common/clock.h"
#include "common/proc/process_memory.h"
#include "common/proc/proc_file.h"
#include "common/schema/memory_values.h"
#include "recorder/output/own_samples.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define MS		 1000000ULL
#define SHORTEST_NS	 (100 * MS)
#define LONGEST_NS	 (1000 * MS)
#define TURNS_A_DOUBLING 256
#define PROCESS_NS	 (50 * MS)  /* 20 processes a second */
#define FORGET_NS	 (100 * MS) /* it takes up to 5 ms */

void memory_samples_deinit(struct memory_samples *samples)
{
	for (size_t i = 0; i < samples->nr; i++)
		close(samples->processes[i].proc_fd);
	samples->nr = 0;
}

static void forget_ended(struct memory_samples *samples)
{
	size_t nr_left = 0;

	for (size_t i = 0; i < samples->nr; i++) {
		const struct memory_process process = samples->processes[i];
		struct process_memory memory;

		if (process_memory_read_at(process.proc_fd, &memory))
			close(process.proc_fd);
		else
			samples->processes[nr_left++] = process;
	}
	samples->nr = nr_left;
}

/* The next turn may be hours away: until then, those that have ended must not keep others out. */
static bool has_room(struct memory_samples *samples)
{
	uint64_t now_ns;

	if (samples->nr < MEMORY_MAX_PROCESSES)
		return true;
	now_ns = clock_now_ns();
	if (now_ns < samples->full_ns + FORGET_NS)
		return false;
	samples->full_ns = now_ns;
	forget_ended(samples);
	return samples->nr < MEMORY_MAX_PROCESSES;
}

void memory_samples_add(struct memory_samples *samples, pid_t pid)
{
	char path[PROC_FILE_PATH_SIZE];
	int fd;

	if (pid == getpid())
		return;
	if (!has_room(samples)) {
		samples->left_out = true;
		return;
	}
	proc_file_path(path, pid, "");
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		samples->processes[samples->nr++] = (struct memory_process){pid, fd};
}

bool memory_samples_fork(struct memory_samples *samples, pid_t pid, pid_t ppid)
{
	bool is_known = false;

	for (size_t i = 0; i < samples->nr && !is_known; i++)
		is_known = samples->processes[i].pid == ppid;
	is_known &= pid != ppid;
	if (is_known)
		memory_samples_add(samples, pid);
	return is_known;
}

/*
 * So that a program that ends soon gets some samples, too, the pause is first the time since the
 * start. It grows to one second at most; that limit doubles after each 256 turns.
 */
uint64_t memory_samples_pause_ns(const struct memory_samples *samples, uint64_t now_ns)
{
	uint32_t nr_doublings = samples->nr_turns / TURNS_A_DOUBLING;
	uint64_t longest_ns = LONGEST_NS << (nr_doublings < 20 ? nr_doublings : 20);
	uint64_t pause_ns = now_ns - samples->start_ns;

	if (samples->longest_ns && longest_ns > samples->longest_ns)
		longest_ns = samples->longest_ns;
	if (pause_ns > longest_ns)
		pause_ns = longest_ns;
	if (pause_ns < SHORTEST_NS)
		pause_ns = SHORTEST_NS;
	if (pause_ns < samples->nr * PROCESS_NS)
		pause_ns = samples->nr * PROCESS_NS;
	return pause_ns;
}

int memory_samples_write(struct memory_samples *samples, struct perf_writer *writer)
{
	uint64_t now_ns = clock_now_ns();
	size_t nr_left = 0;
	int err = 0;

	if (!samples->nr_turns++)
		samples->start_ns = now_ns;
	for (size_t i = 0; i < samples->nr; i++) {
		const struct memory_process process = samples->processes[i];
		struct process_memory memory;

		if (process_memory_read_at(process.proc_fd, &memory)) {
			close(process.proc_fd);
			continue;
		}
		samples->processes[nr_left++] = process;
		if (!err)
			err = own_samples_write(writer, OWN_MEMORY, process.pid, clock_now_ns(),
						samples->nr_turns,
						(const uint64_t[MEMORY_NR_VALUES]){
							[MEMORY_ANON] = memory.anon_bytes,
							[MEMORY_FILE] = memory.file_bytes,
							[MEMORY_SHARED] = memory.shared_bytes,
							[MEMORY_SWAP] = memory.swap_bytes,
							[MEMORY_DATA] = memory.data_bytes,
						});
	}
	samples->nr = nr_left;
	samples->next_ns = now_ns + memory_samples_pause_ns(samples, now_ns);
	return err;
}
