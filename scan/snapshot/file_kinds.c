/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/file_kinds.h"

#include "common/proc/proc_file.h"
#include "common/scope.h"

#include <errno.h>

struct file_system {
	uint64_t device;
	enum file_kind kind;
};

static bool is_one_of(const char *name, const char *const *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

static bool begins_with_one_of(const char *name, const char *const *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (strncmp(name, list[i], strlen(list[i])) == 0)
			return true;
	return false;
}

/* A type that is not known may be of a network. Local ones have a block device, or are listed. */
static enum file_kind kind_of_type(unsigned major, const char *type)
{
	static const char *const memory[] = {"tmpfs", "ramfs", "hugetlbfs"};
	static const char *const disk[] = {"overlay", "btrfs", "zfs", "bcachefs"};

	if (is_one_of(type, memory, ARRAY_SIZE(memory)))
		return FILE_MEMORY;
	if (strcmp(type, "devtmpfs") == 0)
		return FILE_DEVICE;
	if (strncmp(type, "fuse", 4) == 0)
		return FILE_OTHER;
	return major || is_one_of(type, disk, ARRAY_SIZE(disk)) ? FILE_DISK : FILE_NETWORK;
}

static int compare_systems(const void *a, const void *b)
{
	const struct file_system *x = a, *y = b;

	return x->device < y->device ? -1 : x->device > y->device;
}

int file_kinds_add(struct file_kinds *kinds, FILE *mountinfo)
{
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;

	while (getline(&line, &capacity, mountinfo) > 0) {
		struct file_system *grown;
		unsigned major, minor;
		char type[32];
		const char *dash = strstr(line, " - ");

		if (!dash || sscanf(line, "%*s %*s %8u:%8u", &major, &minor) != 2 ||
		    sscanf(dash, " - %31s", type) != 1)
			continue;
		/* Grows by doubling, whenever the number is a power of two. */
		if ((kinds->nr & (kinds->nr - 1)) == 0) {
			grown = reallocarray(kinds->systems, kinds->nr ? kinds->nr * 2 : 1,
					     sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			kinds->systems = grown;
		}
		kinds->systems[kinds->nr++] = (struct file_system){(uint64_t)major << 32 | minor,
								   kind_of_type(major, type)};
	}
	if (kinds->nr)
		qsort(kinds->systems, kinds->nr, sizeof(*kinds->systems), compare_systems);
	return 0;
}

int file_kinds_init(struct file_kinds *ret, pid_t pid)
{
	/* What a process in a chroot can get to does not include all that it has mapped. */
	const pid_t pids[] = {pid, getpid()};
	int err = 0;

	*ret = (struct file_kinds){0};
	for (size_t i = 0; i < ARRAY_SIZE(pids) && !err; i++) {
		_cleanup_fclose_ FILE *mountinfo = proc_file_open(pids[i], "mountinfo");

		if (mountinfo)
			err = file_kinds_add(ret, mountinfo);
	}
	return err;
}

void file_kinds_deinit(struct file_kinds *kinds)
{
	free(kinds->systems);
	*kinds = (struct file_kinds){0};
}

/*
 * File systems of the kernel's own are mounted nowhere; the names are those of mm/shmem.c,
 * mm/memfd.c, ipc/shm.c, fs/hugetlbfs/inode.c, fs/aio.c and drivers/dma-buf/dma-buf.c, 6.1.
 */
static enum file_kind kind_of_name(const char *path)
{
	static const char *const memory[] = {"/dev/zero (deleted)", "/memfd:", "/SYSV",
					     "/anon_hugepage"};
	static const char *const device[] = {"/[aio]", "/dmabuf:"};

	if (begins_with_one_of(path, memory, ARRAY_SIZE(memory)))
		return FILE_MEMORY;
	/* "anon_inode:[perf_event]", "socket:[1234]" */
	if (path[0] != '/' || begins_with_one_of(path, device, ARRAY_SIZE(device)))
		return FILE_DEVICE;
	return FILE_OTHER;
}

enum file_kind file_kinds_of(const struct file_kinds *kinds, const struct scan_region *region)
{
	struct file_system wanted = {.device = region->device}, *found = NULL;

	if (kinds->nr)
		found = bsearch(&wanted, kinds->systems, kinds->nr, sizeof(wanted),
				compare_systems);
	return found ? found->kind : kind_of_name(region->path);
}
