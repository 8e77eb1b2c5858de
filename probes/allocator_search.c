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

/* True if the two are one file, seen through different mounts. */
static bool is_seen_through(const struct looked_at *a, const struct looked_at *b)
{
	return (a->on_overlay || b->on_overlay) && a->device != b->device && a->inode == b->inode &&
	       a->size == b->size && is_same_time(&a->modified, &b->modified) &&
	       is_same_time(&a->changed, &b->changed);
}

/* True if @file was planned before, seen through another mount. */
static bool shows_through(const struct allocator_search *search, const struct looked_at *file)
{
	for (size_t i = 0; i < search->nr_files; i++)
		if (search->files[i].is_probed && is_seen_through(&search->files[i], file))
			return true;
	return false;
}

static struct looked_at describe(const struct stat *stat, bool on_overlay)
{
	return (struct looked_at){
		.device = stat->st_dev,
		.inode = stat->st_ino,
		.on_overlay = on_overlay,
		.size = stat->st_size,
		.modified = stat->st_mtim,
		.changed = stat->st_ctim,
	};
}

/* Plans @file, unless it shows through. */
static int plan(struct allocator_search *search, struct mapped_file *file, struct looked_at *looked,
		struct probe_set *set)
{
	size_t nr_before = set->nr_files;
	int err;

	if (shows_through(search, looked))
		return 0;
	err = probe_set_plan_mapped(set, file);
	/* A file that is broken is told of, and no reason to record nothing. */
	looked->is_probed = set->nr_files > nr_before;
	return err == -ENOMEM ? err : 0;
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
	struct looked_at *grown, looked;
	struct statfs fs;
	int err;

	if (was_looked_at(search, &file->stat))
		return 0;
	looked = describe(&file->stat,
			  fstatfs(file->fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC);
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

static bool was_seen(const struct allocator_search *search, const struct probe_file *file)
{
	struct looked_at looked;
	struct statfs fs;
	struct stat st;

	if (fstat(file->fd, &st) < 0 || fstatfs(file->fd, &fs) < 0)
		return false;
	looked = describe(&st, fs.f_type == OVERLAYFS_SUPER_MAGIC);
	return shows_through(search, &looked);
}

void allocator_search_drop_seen(const struct allocator_search *search, struct probe_set *set)
{
	size_t nr = 0;

	for (size_t i = 0; i < set->nr_files; i++) {
		if (was_seen(search, &set->files[i]))
			probe_file_deinit(&set->files[i]);
		else
			set->files[nr++] = set->files[i];
	}
	set->nr_files = nr;
}
