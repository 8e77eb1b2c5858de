/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/module_file.h"

#include "common/diag.h"
#include "common/elf/elf_file.h"
#include "common/elf/root_file.h"
#include "common/proc/living_thread.h"
#include "common/scope.h"
#include "unwind/modules/module_segments.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DELETED_SUFFIX " (deleted)"

/*
 * perf before 5.11 pads build-ids to 20 bytes with zeros and stores no size. Longer ones (sha256)
 * it cuts (tools/perf/util/build-id.c).
 */
static bool build_id_matches(const struct module *module, const uint8_t *build_id, size_t size)
{
	size_t common = size < module->build_id_size ? size : module->build_id_size;

	if (!common || memcmp(module->build_id, build_id, common) != 0)
		return false;
	for (size_t i = common; i < module->build_id_size; i++)
		if (module->build_id[i])
			return false;
	return size <= module->build_id_size || module->build_id_size == BUILD_ID_MAX;
}

/* @root confines @path; NULL: "/". Returns a descriptor or a negative number. */
static int open_below(const char *root, const char *path, struct stat *ret_stat)
{
	return root ? root_file_open(root, path, ret_stat) : elf_file_open(path, ret_stat);
}

static bool has_inode(const struct module *module, const struct stat *st)
{
	return st->st_ino == module->inode &&
	       (st->st_dev == module->device || st->st_dev == module->other_device);
}

/*
 * Uses @path below @root as the module's file if it is the recorded one, by its build-id, and
 * @by_inode also by its inode. Returns 0, -ENOENT, or -ESTALE if it has another build-id.
 */
static int try_file(struct module *module, const char *root, const char *path, bool by_inode)
{
	struct stat st;
	const void *build_id;

	_cleanup_close_ int fd = open_below(root, path, &st);
	if (fd < 0 || (by_inode && !has_inode(module, &st)))
		return -ENOENT;

	Elf *elf = elf_file_begin(fd);
	if (!elf)
		return -ENOENT;

	int err = module_read_segments(module, elf);
	if (!err && module->build_id_size) {
		ssize_t size = dwelf_elf_gnu_build_id(elf, &build_id);

		if (size <= 0 || !build_id_matches(module, build_id, (size_t)size))
			err = -ESTALE;
	}
	elf_end(elf);
	if (err)
		return err == -ESTALE ? err : -ENOENT;

	if (asprintf(&module->file_path, "%s%s", root ? root : "", path) < 0)
		module->file_path = NULL;
	module->file_root = root;
	module->file_stat = st;
	module->owner = elf_file_owner(fd, &st);
	return module->file_path ? 0 : -ENOENT;
}

/* Tries the file that @format makes of pid, range and path, for each of the module's users. */
static int try_users(struct module *module, const char *path,
		     int (*format)(char **ret, const struct module_user *user, const char *path))
{
	bool by_inode = !module->build_id_size;
	int result = -ENOENT;

	if (by_inode && !module->inode)
		return result; /* the pid may belong to another process by now */
	for (size_t i = 0; i < MODULE_MAX_PIDS; i++) {
		_cleanup_free_ char *found = NULL;

		if (module->users[i].pid <= 0)
			continue;
		if (format(&found, &module->users[i], path) < 0) {
			found = NULL;
			break;
		}
		int err = try_file(module, NULL, found, by_inode);
		if (!err)
			return 0;
		if (err == -ESTALE)
			result = err;
	}
	return result;
}

/* The file as the process sees it; its root may be a container's. */
static int format_in_root(char **ret, const struct module_user *user, const char *path)
{
	return asprintf(ret, "/proc/%d/root%s", (int)living_thread(user->pid), path);
}

/* The mapped file, even if it was replaced or deleted since. */
static int format_mapped(char **ret, const struct module_user *user, const char *path)
{
	return asprintf(ret, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
			(int)living_thread(user->pid), user->start, user->end);
}

/* The file that has the recorded inode. */
static int try_inode(struct module *module, const char *path)
{
	int err;

	if (module->build_id_size || !module->inode)
		return -ENOENT;
	err = try_file(module, NULL, path, true);
	if (err)
		err = try_users(module, path, format_in_root);
	return err ? try_users(module, path, format_mapped) : 0;
}

static int try_places(const struct module_table *table, struct module *module)
{
	size_t len = strlen(module->path), suffix_len = strlen(DELETED_SUFFIX);
	_cleanup_free_ char *path = strdup(module->path);
	int result = -ENOENT, err;

	if (!path)
		return -ENOENT;
	/*
	 * The kernel marks the path of a file that was unlinked or replaced. A file of that path
	 * needs a matching build-id. Its inode may be another file's by now, except where it is
	 * still mapped.
	 */
	if (len > suffix_len && strcmp(path + len - suffix_len, DELETED_SUFFIX) == 0) {
		if (!module->build_id_size)
			return try_users(module, path, format_mapped);
		path[len - suffix_len] = '\0';
	}

	if (table->symfs) {
		err = try_file(module, table->symfs, path, false);
		if (!err)
			return 0;
		result = err;
	}
	if (!try_inode(module, path))
		return 0;
	err = try_file(module, NULL, path, false);
	if (!err)
		return 0;
	if (err == -ESTALE)
		result = err;
	err = try_users(module, path, format_in_root);
	if (!err)
		return 0;
	if (err == -ESTALE)
		result = err;
	err = try_users(module, path, format_mapped);
	return err == -ENOENT ? result : err;
}

int module_find_file(const struct module_table *table, struct module *module)
{
	if (module->state == MODULE_UNTRIED) {
		int err = module->has_file ? try_places(table, module) : -ENOENT;

		module->state = err ? MODULE_MISSING : MODULE_FOUND;
		if (err == -ESTALE)
			diag_warn(
				"%s: not the recorded file: its build-id differs; give --symfs DIR with the recorded file at DIR%s",
				module->path, module->path);
	}
	return module->state == MODULE_FOUND ? 0 : -ENOENT;
}

bool module_is_at_its_path(const struct module_table *table, struct module *module)
{
	if (module->state == MODULE_UNTRIED && module->has_file && module->build_id_size &&
	    !table->symfs && try_file(module, NULL, module->path, false) == 0)
		module->state = MODULE_FOUND;
	return module->state == MODULE_FOUND;
}

int module_open_file(const struct module_table *table, struct module *module)
{
	const struct stat *found = &module->file_stat;
	struct stat st;

	if (module_find_file(table, module))
		return -ENOENT;

	_cleanup_close_ int fd = open_below(
		module->file_root,
		module->file_path + (module->file_root ? strlen(module->file_root) : 0), &st);
	if (fd < 0)
		return -ENOENT;
	if (st.st_dev != found->st_dev || st.st_ino != found->st_ino ||
	    st.st_size != found->st_size || st.st_mtim.tv_sec != found->st_mtim.tv_sec ||
	    st.st_mtim.tv_nsec != found->st_mtim.tv_nsec)
		return -ESTALE;
	return steal_fd(fd);
}
