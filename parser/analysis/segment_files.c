/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/segment_files.h"

#include "common/diag.h"
#include "common/perf_disk.h"
#include "common/scope.h"
#include "parser/bytes/perf_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_TRIES 16 /* of a list from which a file is gone when it is to be opened */
#define MAX_HOLES 3  /* of these, how many because of a missing file, which may be gone for good */

void segment_files_close(struct segment_files *files)
{
	for (size_t i = 0; i < files->nr; i++) {
		if (files->list[i].fd >= 0)
			close(files->list[i].fd);
		free(files->list[i].path);
	}
	free(files->list);
	*files = (struct segment_files){0};
}

static int compare_files(const void *a, const void *b)
{
	const struct segment_file *x = a, *y = b;

	return segment_name_compare(&x->name, &y->name);
}

static int add(struct segment_files *files, struct segment_name name)
{
	struct segment_file *grown = reallocarray(files->list, files->nr + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	files->list = grown;
	grown[files->nr++] = (struct segment_file){.name = name, .fd = -1};
	return 0;
}

/* Lists all segments in order. */
static int list(int dir_fd, struct segment_files *ret)
{
	_cleanup_closedir_ DIR *entries = NULL;
	int err = segment_names_open(dir_fd, &entries);
	struct segment_name name;

	if (err)
		return err;
	while (!err && segment_names_next(entries, &name))
		err = add(ret, name);
	if (!err && ret->nr)
		qsort(ret->list, ret->nr, sizeof(*ret->list), compare_files);
	return err;
}

/* Drops the first @nr of the list, which are not opened. */
static void drop_first(struct segment_files *files, size_t nr)
{
	files->nr -= nr;
	memmove(files->list, files->list + nr, files->nr * sizeof(*files->list));
}

/* Keeps the newest recording's. Returns how many are of earlier ones. */
static size_t keep_newest(struct segment_files *files)
{
	uint32_t newest = files->list[files->nr - 1].name.recording;
	size_t nr = 0;

	while (files->list[nr].name.recording != newest)
		nr++;
	drop_first(files, nr);
	if (files->nr > SEGMENT_FILES_MAX)
		drop_first(files, files->nr - SEGMENT_FILES_MAX);
	return nr;
}

static int open_file(int dir_fd, const char *dir, struct segment_file *file)
{
	char name[SEGMENT_NAME_BYTES];
	struct stat st;

	segment_name_format(file->name, name);
	if (asprintf(&file->path, "%s/%s", dir, name) < 0) {
		file->path = NULL;
		return -ENOMEM;
	}
	file->fd = perf_source_open_in(dir_fd, name, file->path);
	if (file->fd < 0)
		return file->fd;
	if (fstat(file->fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? 0 : -EINVAL;
}

/* True if leakrec has begun the file, and not come to its first record. */
static bool has_no_records(const struct segment_file *file)
{
	struct perf_disk_header header;
	struct stat st;
	uint64_t start;

	if (fstat(file->fd, &st) < 0 ||
	    pread(file->fd, &header, sizeof(header), 0) != sizeof(header))
		return true;
	/* The provisional table comes first. */
	start = header.data.offset + (uint64_t)__builtin_popcountll(header.features[0]) *
					     sizeof(struct perf_disk_section);
	return !header.data.size && (uint64_t)st.st_size <= start;
}

/*
 * Drops recordings that have not come to their first record, if there are earlier ones: a full disk
 * leaves those, and a signal at the start. Returns true if there were any.
 */
static bool drop_unused(int dir_fd, const char *dir, struct segment_files *files)
{
	size_t nr = files->nr;
	bool is_unused = true;

	while (is_unused && files->nr > 1 && files->list[files->nr - 1].name.number == 1) {
		struct segment_file *last = &files->list[files->nr - 1];

		is_unused = !open_file(dir_fd, dir, last) && has_no_records(last);
		if (last->fd >= 0)
			close(last->fd);
		free(last->path);
		*last = (struct segment_file){.name = last->name, .fd = -1};
		files->nr -= is_unused;
	}
	return files->nr < nr;
}

/*
 * True if a number is missing: a file that was made while the directory was read may be in the
 * list, and the one made before it not.
 */
static bool has_hole(const struct segment_files *files)
{
	return files->list[files->nr - 1].name.number - files->list[0].name.number + 1 != files->nr;
}

/* Opens all of them. Returns -ENOENT if one has been removed since it was listed. */
static int open_all(int dir_fd, const char *dir, struct segment_files *files)
{
	for (size_t i = 0; i < files->nr; i++) {
		struct segment_file *file = &files->list[i];
		int err = open_file(dir_fd, dir, file);

		if (!err)
			continue;
		if (err != -ENOENT)
			diag_error("cannot read %s: %s", file->path ? file->path : dir,
				   strerror(-err));
		return err;
	}
	if (files->nr > 1 && has_no_records(&files->list[files->nr - 1])) {
		close(files->list[--files->nr].fd);
		free(files->list[files->nr].path);
	}
	return 0;
}

int segment_files_open(int dir_fd, const char *dir, struct segment_files *ret)
{
	size_t nr_earlier = 0;
	bool dropped = false;
	int err = -ENOENT;

	*ret = (struct segment_files){0};
	for (int i = 0; i < MAX_TRIES && err == -ENOENT; i++) {
		segment_files_close(ret);
		err = list(dir_fd, ret);
		if (err) {
			diag_error("cannot read %s: %s", dir, strerror(-err));
			return err;
		}
		if (!ret->nr) {
			diag_error("%s: there is no recording in this directory (leakrec --keep "
				   "writes segments, 000001.00000001.data and so on; --ring writes "
				   "directories of them below it: name one)",
				   dir);
			return -ENODATA;
		}
		dropped = drop_unused(dir_fd, dir, ret);
		nr_earlier = keep_newest(ret);
		err = i < MAX_HOLES && has_hole(ret) ? -ENOENT : open_all(dir_fd, dir, ret);
	}
	if (err == -ENOENT)
		diag_error(
			"cannot read %s: its segments are removed faster than they can be opened",
			dir);
	if (!err && dropped)
		diag_note("%s: the newest recording has no records; this is an earlier one", dir);
	if (!err && nr_earlier)
		diag_note("%s also has %zu segment%s of earlier recordings; name the files to read "
			  "those",
			  dir, nr_earlier, nr_earlier == 1 ? "" : "s");
	return err;
}
