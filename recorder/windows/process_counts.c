/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/windows/process_counts.h"

#include "common/scope.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

uint64_t cpu_clock_of(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
		return 0;
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

double cpu_part_of_thread(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/loadavg", "re");
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN), nr_ready = 0;

	/* The fourth number: nr_running() (fs/proc/loadavg.c), with this thread. */
	if (!f || fscanf(f, "%*s %*s %*s %ld", &nr_ready) != 1 || nr_ready <= nr_cpus)
		return 1;
	return (double)nr_cpus / (double)nr_ready;
}

uint64_t process_counts_read(struct process_counts *counts, struct target_table *table,
			     count_of_process_fn *count_of)
{
	for (struct target *target = NULL; (target = target_table_next(table, target));) {
		size_t i = (size_t)(target - table->targets);
		unsigned long long tgid = target->tgid;
		bool is_new = counts->seen[i].tgid != tgid;
		uint64_t now;

		/* It may have ended just now. */
		if (!target_is_process(tgid))
			continue;
		now = count_of((pid_t)tgid);
		if (is_new) {
			counts->seen[i].tgid = tgid;
			counts->seen[i].last = counts->has_begun ? 0 : now;
		}
		if (now <= counts->seen[i].last)
			continue;
		counts->total += now - counts->seen[i].last;
		counts->seen[i].last = now;
	}
	counts->has_begun = true;
	return counts->total;
}
