/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/probe_file.h"

#include "common/proc/mapped_files.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

struct probe *probe_file_append(struct probe_file *file)
{
	struct probe *grown = reallocarray(file->probes, file->nr_probes + 1, sizeof(*grown));

	if (!grown)
		return NULL;
	file->probes = grown;
	grown = &file->probes[file->nr_probes++];
	*grown = (struct probe){
		.tracefs_id = -1,
		.instruction = {.class = PLACEMENT_UNKNOWN, .text = "?"},
	};
	return grown;
}

struct uprobe_spec probe_file_spec(const struct probe_file *file, const struct probe *probe)
{
	return (struct uprobe_spec){
		.group = file->group,
		.event = probe->event,
		.is_return = probe->point == PROBE_RETURN,
		.fd = file->fd,
		.path = file->path,
		.offset = probe->offset,
		.fetch_args = probe->fetch_args,
	};
}

int probe_file_set_group(struct probe_file *file, const struct group_name *name)
{
	group_name_format(name, file->group);
	for (size_t i = 0; i < file->nr_probes; i++) {
		struct uprobe_spec spec = probe_file_spec(file, &file->probes[i]);
		char *definition = tracefs_uprobe_definition(&spec);

		if (!definition)
			return -ENOMEM;
		free(file->probes[i].definition);
		file->probes[i].definition = definition;
	}
	return 0;
}

int probe_file_set_source(struct probe_file *file, const struct probe_source *source,
			  const char *allocator, struct group_name *ret)
{
	char fd_path[PROBE_FD_PATH_MAX];

	*ret = (struct group_name){.owner = GROUP_OF_LEAKPROBE};
	file->fd = fcntl(source->fd, F_DUPFD_CLOEXEC, 0);
	if (file->fd < 0)
		return -errno;
	file->is_on_fuse = probe_file_is_on_fuse(file->fd);
	file->owner = source->stat->st_uid;
	file->stat = *source->stat;
	probe_fd_path(file->fd, fd_path);
	file->path = strdup(mapped_file_path_fits_tracefs(source->path) ? source->path : fd_path);
	file->display = strdup(source->display);
	file->allocator = strdup(allocator);
	if (!file->path || !file->display || !file->allocator)
		return -ENOMEM;
	group_name_set_file(ret, source->display);
	ret->inode_hash = group_name_inode_hash(source->stat->st_dev, source->stat->st_ino);
	return source->image ? elf_image_build_hash(source->image, &ret->build_hash) : 0;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool probe_stat_is_alike(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       is_same_time(&a->st_mtim, &b->st_mtim) && is_same_time(&a->st_ctim, &b->st_ctim);
}

bool probe_file_is_unchanged(const struct probe_file *file)
{
	struct stat now;

	return fstat(file->fd, &now) == 0 && probe_stat_is_alike(&now, &file->stat);
}

bool probe_is_exit_of_same(const struct probe *a, const struct probe *b)
{
	return a->point == PROBE_EXIT && b->point == PROBE_EXIT && a->schema == b->schema &&
	       a->function_offset == b->function_offset;
}

bool probe_file_is_on_fuse(int fd)
{
	struct statfs fs;

	/* It fails only on FUSE, whose server may answer with an error. */
	return fstatfs(fd, &fs) < 0 || fs.f_type == FUSE_SUPER_MAGIC;
}

/* Reads a byte of the file; if the server does not answer, only we wait. True if its page stays. */
static bool is_cached(int fd, uint64_t offset)
{
	const size_t size = (size_t)getpagesize();
	unsigned char byte, state = 0;
	void *page = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, (off_t)(offset & ~(size - 1)));

	if (page == MAP_FAILED)
		return false;
	if (pread(fd, &byte, 1, (off_t)offset) < 0 || mincore(page, size, &state))
		state = 0;
	munmap(page, size);
	return state & 1;
}

/* The kernel reads as much as an instruction may have: copy_insn() in kernel/events/uprobes.c. */
static bool is_instruction_cached(int fd, uint64_t offset)
{
	return is_cached(fd, offset) && is_cached(fd, offset + PLACEMENT_MAX_INSTRUCTION_BYTES);
}

int probe_file_check_blocking(const struct probe_file *file)
{
	if (!file->is_on_fuse)
		return 0;
	for (size_t i = 0; i < file->nr_probes; i++) {
		const struct probe *probe = &file->probes[i];

		if (!is_instruction_cached(file->fd, probe->offset))
			return -EREMOTE;
		for (size_t j = 0; j < probe->nr_points; j++)
			if (!is_instruction_cached(file->fd, probe->function_offset +
								     probe->points[j].offset))
				return -EREMOTE;
	}
	return 0;
}

const char *probe_file_attach_error(int err)
{
	if (err == EREMOTE)
		return "it is on FUSE and not in memory: all forks would wait for its server";
	if (err == EREMOTEIO)
		return "it is on FUSE: at each window, forks could wait for its server; leave "
		       "--budget out";
	/* ENOTSUPP: include/linux/errno.h (6.18) */
	return err == 524 ? "the kernel does not take a probe there" : strerror(err);
}

void probe_file_deinit(struct probe_file *file)
{
	for (size_t i = 0; i < file->nr_probes; i++) {
		free(file->probes[i].fetch_args);
		free(file->probes[i].definition);
		free(file->probes[i].points);
	}
	free(file->probes);
	free(file->path);
	free(file->display);
	free(file->allocator);
	if (file->fd >= 0)
		close(file->fd);
}
