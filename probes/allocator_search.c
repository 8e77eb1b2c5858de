/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/allocator_search.h"

#include "probes/probe_plan.h"
#include "probes/process_maps.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

/* A file that was looked at. */
struct looked_at {
	dev_t device;
	ino_t inode;
	bool is_probed, on_overlay;
	off_t size;
	struct timespec modified, changed;
};

/* A machine's processes map some thousand files in all: few enough to be gone through. */
struct allocator_search {
	struct looked_at *files;
	size_t nr_files;
};

int allocator_search_create(struct allocator_search **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (*ret)
		return 0;
	diag_error("cannot look for allocators: out of memory");
	return -ENOMEM;
}

void allocator_search_destroy(struct allocator_search *search)
{
	if (!search)
		return;
	free(search->files);
	free(search);
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* True if @file is a file that was planned before, seen through another mount. */
static bool shows_through(const struct allocator_search *search, const struct looked_at *file)
{
	for (size_t i = 0; i < search->nr_files; i++) {
		const struct looked_at *other = &search->files[i];

		if (other->is_probed && (other->on_overlay || file->on_overlay) &&
		    other->inode == file->inode && other->size == file->size &&
		    is_same_time(&other->modified, &file->modified) &&
		    is_same_time(&other->changed, &file->changed))
			return true;
	}
	return false;
}

/*
 * Plans @file, unless it shows through. Its descriptor goes to the set, and the path by which the
 * process showed it is replaced by ours, which stays.
 */
static int plan(struct allocator_search *search, struct mapped_file *file, struct looked_at *looked,
		struct probe_set *set)
{
	struct probe_file *planned;
	size_t nr_before = set->nr_files;
	int err;

	if (shows_through(search, looked))
		return 0;
	err = probe_set_plan_mapped(set, file);
	/* A file that is broken is told of, and no reason to record nothing. */
	if (err || set->nr_files == nr_before)
		return err == -ENOMEM ? err : 0;
	looked->is_probed = true;
	planned = &set->files[set->nr_files - 1];
	if (strncmp(planned->path, "/proc/", strlen("/proc/")) != 0)
		return 0;
	free(planned->path);
	if (asprintf(&planned->path, "/proc/%d/fd/%d", (int)getpid(), file->fd) < 0) {
		planned->path = NULL;
		return -ENOMEM;
	}
	planned->fd = steal_fd(file->fd);
	return 0;
}

static bool was_looked_at(const struct allocator_search *search, const struct stat *stat)
{
	for (size_t i = 0; i < search->nr_files; i++)
		if (search->files[i].inode == stat->st_ino &&
		    search->files[i].device == stat->st_dev)
			return true;
	return false;
}

/* @set: for what is new; NULL: it is known elsewhere. */
static int look_at(struct allocator_search *search, struct mapped_file *file, struct probe_set *set)
{
	struct looked_at looked = {
		.device = file->stat.st_dev,
		.inode = file->stat.st_ino,
		.size = file->stat.st_size,
		.modified = file->stat.st_mtim,
		.changed = file->stat.st_ctim,
	};
	struct looked_at *grown;
	struct statfs fs;
	int err;

	if (was_looked_at(search, &file->stat))
		return 0;
	looked.on_overlay = fstatfs(file->fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
	/* What was planned elsewhere shows through, too. */
	looked.is_probed = !set;
	err = set ? plan(search, file, &looked, set) : 0;
	if (err)
		return err;
	grown = reallocarray(search->files, search->nr_files + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	search->files = grown;
	search->files[search->nr_files++] = looked;
	return 0;
}

static int look_at_process(struct allocator_search *search, pid_t pid, struct probe_set *set)
{
	struct mapped_files files;
	int err = mapped_files_try_open(&files, pid);

	if (err)
		return 0;
	for (size_t i = 0; i < files.nr && !err; i++)
		err = look_at(search, &files.files[i], set);
	mapped_files_deinit(&files);
	if (err)
		diag_error("cannot look for allocators: out of memory");
	return err;
}

int allocator_search_process(struct allocator_search *search, pid_t pid, struct probe_set *set)
{
	return look_at_process(search, pid, set);
}

int allocator_search_skip(struct allocator_search *search, pid_t pid)
{
	return look_at_process(search, pid, NULL);
}

bool allocator_search_file(const struct allocator_search *search, size_t nr, dev_t *ret_device,
			   ino_t *ret_inode)
{
	if (nr >= search->nr_files)
		return false;
	*ret_device = search->files[nr].device;
	*ret_inode = search->files[nr].inode;
	return true;
}
