/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/recording/recording.h"

#include "common/clock.h"
#include "common/diag.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const char *path, const char *why)
{
	diag_error("cannot use %s: %s", path, why);
	return -EINVAL;
}

int recording_file_open(struct recording_file *ret, const char *path)
{
	struct stat stat;

	*ret = (struct recording_file){
		.path = path,
		.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY),
	};
	if (ret->fd < 0 || fstat(ret->fd, &stat) < 0)
		return refuse(path, strerror(errno));
	return S_ISREG(stat.st_mode) ? 0 : refuse(path, "it is no file");
}

void recording_file_close(struct recording_file *file)
{
	if (file->is_read)
		analysis_deinit(&file->analysis);
	file->is_read = false;
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

/*
 * When the process started, by the clock of recordings, which does not count the time that the
 * machine was suspended; all of that may have been before.
 */
static uint64_t earliest_start_ns(const struct snapshot *snapshot)
{
	uint64_t started_ns, suspended_ns, now_ns = clock_now_ns();
	struct timespec boot;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	suspended_ns = (uint64_t)boot.tv_sec * 1000000000 + (uint64_t)boot.tv_nsec - now_ns;
	started_ns = snapshot->start_ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
	return started_ns > suspended_ns ? started_ns - suspended_ns : 0;
}

/* Each start of a program has its code at other addresses, unless the user has turned that off. */
static bool has_same_code(const struct analysis *analysis, const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_regions; i++) {
		const struct scan_region *region = &snapshot->regions[i];

		if (region->is_executable && region->has_file &&
		    stack_store_is_code(analysis->stacks, snapshot->pid, region->start + 1))
			return true;
	}
	return false;
}

static int check_process(const struct analysis *analysis, const struct snapshot *snapshot,
			 const char *path)
{
	/* Only leakrec's recordings are known to have that clock. */
	bool is_later =
		analysis->known_end_ns && earliest_start_ns(snapshot) > analysis->known_end_ns;

	if (!has_same_code(analysis, snapshot))
		return refuse(path, "it is of another process, or of another program that this "
				    "process ran before");
	if (is_later || heap_tracker_life(analysis->heaps, snapshot->pid, analysis->end_ns).end_ns)
		return refuse(path, "it is of an earlier process with this id");
	return 0;
}

int recording_read(struct recording_file *file, const struct snapshot *snapshot)
{
	const struct stack_store_options stacks = {.expect_names = true, .own_vdso = true};
	struct analysis *ret = &file->analysis;
	struct perf_consumer consumer;
	int err;

	if (file->is_read)
		return 0;
	file->is_read = true;
	err = analysis_init(ret, &stacks, NULL);
	if (err)
		return err;
	consumer = analysis_consumer(ret);
	err = perf_input_read(file->fd, file->path, &consumer, &ret->input);
	err = analysis_finish(ret, err);
	return err ? err : check_process(ret, snapshot, file->path);
}
