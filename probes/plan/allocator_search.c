/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/allocator_search.h"

#include "probes/elf/analysis_limit.h"
#include "probes/plan/allocator_plan.h"
#include "common/proc/mapped_files.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/hash.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

/* Analysing all thousand libraries of a machine takes some seconds. */
#define USER_NS 30000000000ULL

/* A known file. Of several with the same device and inode, only the last one exists. */
struct known_file {
	uint64_t key[2]; /* device, inode */
	struct stat stat;
	bool is_probed, on_overlay;
	UT_hash_handle hh;
};

struct file_table {
	struct known_file *files;  /* in the order in which they were found */
	struct known_file *untold; /* those from here on are new to allocator_search_next() */
};

/* An owner of analysed files, and the CPU time that they have taken. */
struct user {
	uid_t uid;
	uint64_t since_ns, spent_ns;
};

/* What is left of the time of one call. */
struct slice {
	uint64_t end_ns;
	bool has_analysed;
};

struct allocator_search {
	struct file_table probed, others;
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
	(*ret)->limits = (struct allocator_search_limits){
		.user_ns = USER_NS,
		.nr_files = ALLOCATOR_SEARCH_FILES,
	};
	return 0;
}

static struct file_table *table_of(struct allocator_search *search, const struct known_file *known)
{
	return known->is_probed ? &search->probed : &search->others;
}

static void forget(struct allocator_search *search, struct known_file *known)
{
	struct file_table *table = table_of(search, known);

	if (table->untold == known)
		table->untold = known->hh.next;
	HASH_DELETE(hh, table->files, known);
	free(known);
}

/* The file at the device and inode of @stat, as it was when it was found. */
static struct known_file *find(const struct allocator_search *search, const struct stat *stat)
{
	const uint64_t key[2] = {stat->st_dev, stat->st_ino};
	const unsigned int hash = (unsigned int)hash_words(key, 2, hash_seed());
	struct known_file *found;

	HASH_FIND_BYHASHVALUE(hh, search->probed.files, key, sizeof(key), hash, found);
	if (!found)
		HASH_FIND_BYHASHVALUE(hh, search->others.files, key, sizeof(key), hash, found);
	return found;
}

/*
 * A user can make any number of files. The oldest without an allocator is forgotten, and analysed
 * again if a process maps it again. Those with one must be known: they would be probed twice.
 */
static int remember(struct allocator_search *search, const struct known_file *file)
{
	struct file_table *table = table_of(search, file);
	struct known_file *known = find(search, &file->stat);

	if (known)
		forget(search, known);
	if (search->limits.nr_files && HASH_COUNT(search->others.files) >= search->limits.nr_files)
		forget(search, search->others.files);
	known = malloc(sizeof(*known));
	if (!known)
		return -ENOMEM;
	*known = *file;
	known->key[0] = file->stat.st_dev;
	known->key[1] = file->stat.st_ino;
	HASH_ADD_BYHASHVALUE(hh, table->files, key, sizeof(known->key),
			     (unsigned int)hash_words(known->key, 2, hash_seed()), known);
	if (!hash_added(known)) {
		free(known);
		return -ENOMEM;
	}
	if (!table->untold)
		table->untold = known;
	return 0;
}

void allocator_search_destroy(struct allocator_search *search)
{
	if (!search)
		return;
	while (search->probed.files)
		forget(search, search->probed.files);
	while (search->others.files)
		forget(search, search->others.files);
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
	for (const struct known_file *known = search->probed.files; known; known = known->hh.next)
		if (is_same_file(known, file))
			return true;
	return false;
}

/* So many files of users are far more than can be recorded, as a message has said by then. */
static bool is_one_too_many(const struct allocator_search *search, const struct known_file *file)
{
	return file->stat.st_uid != 0 && search->limits.nr_files &&
	       HASH_COUNT(search->probed.files) >= search->limits.nr_files;
}

/* Plans @file, unless it was planned through another mount. */
static int plan(struct allocator_search *search, struct mapped_file *file, struct known_file *known,
		struct probe_set *set)
{
	size_t nr_before = set->nr_files;
	int err;

	if (is_planned(search, known) || is_one_too_many(search, known))
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
	const struct known_file *known = find(search, stat);

	return known && probe_stat_is_alike(&known->stat, stat);
}

/* Plans @file if its owner has time left. */
static int plan_in_time(struct allocator_search *search, struct mapped_file *file,
			struct known_file *known, struct probe_set *set)
{
	struct user *user = find_user(search, file->stat.st_uid);
	uint64_t begin_ns = analysis_limit_thread_ns();
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
	user->spent_ns += analysis_limit_thread_ns() - begin_ns;
	return err;
}

/* Analyses @file if it is not known. @set: gets its probes; NULL: it is only marked as known. */
static int analyse(struct allocator_search *search, struct mapped_file *file, struct probe_set *set,
		   struct slice *slice)
{
	struct known_file known;
	struct statfs fs;
	int err;

	if (is_known(search, &file->stat))
		return 0;
	/* At least one file is analysed in each slice. */
	if (slice->has_analysed && analysis_limit_thread_ns() > slice->end_ns)
		return 1;
	slice->has_analysed = true;
	known = (struct known_file){
		.stat = file->stat,
		.on_overlay = fstatfs(file->fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC,
		/* Without a set, the caller plans the file itself: allocator_search_skip(). */
		.is_probed = !set,
	};
	err = set ? plan_in_time(search, file, &known, set) : 0;
	return err ? err : remember(search, &known);
}

/* True if a process that is not there any more, or must not be read, gives this error. */
static bool is_skipped(int err)
{
	return err == -ENOENT || err == -ESRCH || err == -EACCES || err == -EPERM;
}

static int analyse_process(struct allocator_search *search, pid_t pid, struct probe_set *set)
{
	struct mapped_files files;
	int err = mapped_files_try_open(&files, pid);
	struct slice slice = {.end_ns = UINT64_MAX};

	if (is_skipped(err))
		return 0;
	if (search->limits.slice_ns)
		slice.end_ns = analysis_limit_thread_ns() + search->limits.slice_ns;
	for (size_t i = 0; i < files.nr && !err; i++)
		err = analyse(search, &files.files[i], set, &slice);
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
	struct known_file *known = find(search, stat);

	if (known)
		forget(search, known);
}

bool allocator_search_next(struct allocator_search *search, struct stat *ret)
{
	struct file_table *table = search->probed.untold ? &search->probed : &search->others;

	if (!table->untold)
		return false;
	*ret = table->untold->stat;
	table->untold = table->untold->hh.next;
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
