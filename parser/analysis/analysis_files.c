/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/analysis.h"

#include "common/diag.h"
#include "common/scope.h"
#include "parser/analysis/segment_files.h"
#include "parser/bytes/perf_source.h"
#include "parser/perfdata/perf_input.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static void on_progress(void *context, uint64_t done, uint64_t total)
{
	const struct analysis *analysis = context;

	progress_update(analysis->progress, done, total);
}

/* Reads one file of the recording. */
static int read_file(struct analysis *analysis, int fd, const char *path)
{
	struct perf_consumer consumer = analysis_consumer(analysis);
	int err;

	/* While the target was idle, perf record --switch-output wrote files without events. */
	if (analysis->file.start_ns)
		analysis->file.start_before_ns = analysis->file.start_ns;
	analysis->file.start_ns = 0;
	analysis->file.path = path;
	if (analysis->progress) {
		progress_init(analysis->progress);
		consumer.on_progress = on_progress;
	}
	err = perf_input_read(fd, path, &consumer, &analysis->input);
	if (analysis->progress)
		progress_end(analysis->progress);
	return err;
}

static int read_stdin(struct analysis *analysis)
{
	if (isatty(STDIN_FILENO)) {
		diag_error(
			"standard input is a terminal; redirect a recording to it, or give -i FILE");
		return -EINVAL;
	}
	return read_file(analysis, STDIN_FILENO, "standard input");
}

/* Reads the segments in a directory. The last one may still be written. */
static int read_dir(struct analysis *analysis, int dir_fd, const char *path)
{
	struct segment_files files;
	int err = segment_files_open(dir_fd, path, &files);

	for (size_t i = 0; i < files.nr && !err; i++) {
		analysis->input.may_grow = i + 1 == files.nr;
		err = read_file(analysis, files.list[i].fd, files.list[i].path);
	}
	analysis->input.may_grow = false;
	segment_files_close(&files);
	return err;
}

static int read_path(struct analysis *analysis, const char *path)
{
	_cleanup_close_ int fd = perf_source_open(path);
	struct stat st;
	int err = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

	if (err) {
		diag_error("cannot read %s: %s", path, strerror(-err));
		return err;
	}
	return S_ISDIR(st.st_mode) ? read_dir(analysis, fd, path) : read_file(analysis, fd, path);
}

int analysis_read(struct analysis *analysis, const char *const *paths, size_t nr_paths)
{
	int err = nr_paths == 0 ? read_stdin(analysis) : 0;

	for (size_t i = 0; !err && i < nr_paths; i++)
		err = read_path(analysis, paths[i]);
	return analysis_finish(analysis, err);
}
