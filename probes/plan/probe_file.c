/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/probe_file.h"

#include "common/proc/mapped_files.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>

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
	file->fd = fcntl(source->image->fd, F_DUPFD_CLOEXEC, 0);
	if (file->fd < 0)
		return -errno;
	file->owner = source->stat->st_uid;
	probe_fd_path(file->fd, fd_path);
	file->path = strdup(mapped_file_path_fits_tracefs(source->path) ? source->path : fd_path);
	file->display = strdup(source->display);
	file->allocator = strdup(allocator);
	if (!file->path || !file->display || !file->allocator)
		return -ENOMEM;
	group_name_set_file(ret, source->display);
	ret->inode_hash = group_name_inode_hash(source->stat->st_dev, source->stat->st_ino);
	return elf_image_build_hash(source->image, &ret->build_hash);
}

bool probe_is_exit_of_same(const struct probe *a, const struct probe *b)
{
	return a->point == PROBE_EXIT && b->point == PROBE_EXIT && a->schema == b->schema &&
	       a->function_offset == b->function_offset;
}

const char *probe_file_attach_error(int err)
{
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
