/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/allocator_search.h"

#include "probes/elf/analysis_limit.h"
#include "probes/plan/allocator_plan.h"
#include "common/proc/mapped_files.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

/* Analysing all thousand libraries of a machine takes some seconds. */
#define USER_NS 30000000000ULL

/* A known file. */
struct known_file {
	struct stat stat;
	bool is_probed, on_overlay;
};

/* An owner of analysed files, and the CPU time that they have taken. */
struct user {
	uid_t uid;
	uint64_t since_ns, spent_ns;
};

/* All processes of a machine map some thousand files: few enough for linear searches. */
struct allocator_search {
	struct known_file *files;
	size_t nr_files;
	struct allocator_search_limits limits;
	struct user *users;
	size_t nr_users;
	bool has_warned_of_fuse;
};

int allocator_search_create(struct allocator_search **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret) {
		diag_error("cannot look for allocators: out of memory");
		return -ENOMEM;
	}
	(*ret)->limits.user_ns = USER_NS;
	return 0;
}

void allocator_search_destroy(struct allocator_search *search)
{
	if (!search)
		return;
	free(search->files);
	free(search->users);
	free(search);
}

void allocator_search_limit(struct allocator_search *search,
			    const struct allocator_search_limits *limits)
{
	search->limits = *limits;
	search->nr_users = 0;
}

/* The entry of @uid, or NULL: out of memory. */
static struct user *find_user(struct allocator_search *search, uid_t uid)
{
	struct user *grown;

	for (size_t i = 0; i < search->nr_users; i++)
		if (search->users[i].uid == uid)
			return &search->users[i];
	grown = reallocarray(search->users, search->nr_users + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	search->users = grown;
	grown[search->nr_users] = (struct user){.uid = uid};
	return &grown[search->nr_users++];
}

/* True if the user's files have used up the time. */
static bool is_out_of_time(const struct allocator_search *search, struct user *user)
{
	uint64_t now_ns = clock_now_ns();

	if (!search->limits.user_ns)
		return false;
	if (search->limits.window_ns && now_ns - user->since_ns > search->limits.window_ns)
		*user = (struct user){.uid = user->uid, .since_ns = now_ns};
	return user->spent_ns > search->limits.user_ns;
}

/* True if the two are one file, through different mounts. */
static bool is_same_file(const struct known_file *a, const struct known_file *b)
{
	return (a->on_overlay || b->on_overlay) && a->stat.st_dev != b->stat.st_dev &&
	       probe_stat_is_alike(&a->stat, &b->stat);
}

/* True if @file was planned before, through another mount. */
static bool is_planned(const struct allocator_search *search, const struct known_file *file)
{
	for (size_t i = 0; i < search->nr_files; i++)
		if (search->files[i].is_probed && is_same_file(&search->files[i], file))
			return true;
	return false;
}

/* Plans @file, unless it was planned through another mount. */
static int plan(struct allocator_search *search, struct mapped_file *file, struct known_file *known,
		struct probe_set *set)
{
	size_t nr_before = set->nr_files;
	int err;

	if (is_planned(search, known))
		return 0;
	if (probe_file_is_on_fuse(file->fd)) {
		if (!search->has_warned_of_fuse)
			diag_warn("%s and other files on FUSE are not probed: a server that does "
				  "not answer could block all forks; -p records those that a "
				  "process has mapped before",
				  file->display);
		search->has_warned_of_fuse = true;
		return 0;
	}
	err = allocator_plan_mapped(set, file);
	/* Invalid files are reported, but the others are recorded. */
	known->is_probed = set->nr_files > nr_before;
	return err == -ENOMEM ? err : 0;
}

static bool is_known(const struct allocator_search *search, const struct stat *stat)
{
	for (size_t i = 0; i < search->nr_files; i++)
		if (search->files[i].stat.st_dev == stat->st_dev &&
		    probe_stat_is_alike(&search->files[i].stat, stat))
			return true;
	return false;
}

/* Plans @file if its owner has time left. The time it takes is also subtracted from *@slice_ns. */
static int plan_in_time(struct allocator_search *search, struct mapped_file *file,
			struct known_file *known, struct probe_set *set, int64_t *slice_ns)
{
	struct user *user = find_user(search, file->stat.st_uid);
	uint64_t begin_ns = analysis_limit_thread_ns(), spent_ns;
	int err;

	if (!user)
		return -ENOMEM;
	if (is_out_of_time(search, user)) {
		if (user->spent_ns != UINT64_MAX)
			diag_warn("%s and later files of user %u are not probed: that user's files "
				  "take too long to analyse",
				  file->display, (unsigned int)user->uid);
		user->spent_ns = UINT64_MAX;
		return 0;
	}
	err = plan(search, file, known, set);
	spent_ns = analysis_limit_thread_ns() - begin_ns;
	user->spent_ns += spent_ns;
	*slice_ns -= (int64_t)spent_ns;
	return err;
}

/* Analyses @file if it is not known. @set: gets its probes; NULL: it is only marked as known. */
static int analyse(struct allocator_search *search, struct mapped_file *file, struct probe_set *set,
		   int64_t *slice_ns)
{
	struct known_file *grown, known;
	struct statfs fs;
	int err;

	if (is_known(search, &file->stat))
		return 0;
	/* At least one file is analysed in each slice. */
	if (search->limits.slice_ns && *slice_ns < 0)
		return 1;
	known = (struct known_file){
		.stat = file->stat,
		.on_overlay = fstatfs(file->fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC,
		/* Without a set, the caller plans the file itself: allocator_search_skip(). */
		.is_probed = !set,
	};
	err = set ? plan_in_time(search, file, &known, set, slice_ns) : 0;
	if (err)
		return err;
	grown = reallocarray(search->files, search->nr_files + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	search->files = grown;
	search->files[search->nr_files++] = known;
	return 0;
}

/* True if a process that is not there any more, or must not be read, gives this error. */
static bool is_skipped(int err)
{
	return err == -ENOENT || err == -ESRCH || err == -EACCES || err == -EPERM;
}

static int analyse_process(struct allocator_search *search, pid_t pid, struct probe_set *set)
{
	int64_t slice_ns = (int64_t)search->limits.slice_ns;
	struct mapped_files files;
	int err = mapped_files_try_open(&files, pid);

	if (is_skipped(err))
		return 0;
	for (size_t i = 0; i < files.nr && !err; i++)
		err = analyse(search, &files.files[i], set, &slice_ns);
	mapped_files_deinit(&files);
	if (err < 0)
		diag_error("cannot look for allocators in process %d: %s", (int)pid,
			   strerror(-err));
	return err;
}

int allocator_search_process(struct allocator_search *search, pid_t pid, struct probe_set *set)
{
	return analyse_process(search, pid, set);
}

int allocator_search_skip(struct allocator_search *search, pid_t pid)
{
	return analyse_process(search, pid, NULL);
}

void allocator_search_forget(struct allocator_search *search, const struct stat *stat)
{
	for (size_t i = 0; i < search->nr_files; i++)
		if (search->files[i].stat.st_ino == stat->st_ino &&
		    search->files[i].stat.st_dev == stat->st_dev)
			search->files[i] = (struct known_file){0};
}

bool allocator_search_file(const struct allocator_search *search, size_t nr, struct stat *ret)
{
	if (nr >= search->nr_files)
		return false;
	*ret = search->files[nr].stat;
	return true;
}

static bool was_seen(const struct allocator_search *search, const struct probe_file *file)
{
	struct known_file known = {0};
	struct statfs fs;

	if (fstat(file->fd, &known.stat) < 0 || fstatfs(file->fd, &fs) < 0)
		return false;
	known.on_overlay = fs.f_type == OVERLAYFS_SUPER_MAGIC;
	return is_planned(search, &known);
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
