/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/mapped_files.h"

#include "common/diag.h"
#include "common/elf/elf_file.h"
#include "common/proc/living_thread.h"
#include "common/proc/process_maps.h"
#include "common/proc/process_namespace.h"
#include "common/proc/proc_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>

#define MAX_MAPPED_FILES 4096
#define MAX_ATTEMPTS	 10
#define DELETED_SUFFIX	 " (deleted)"

bool mapped_file_path_fits_tracefs(const char *path)
{
	return path[strcspn(path, " \t\n\v\f\r#")] == '\0';
}

static bool is_same_file(const char *path, const struct stat *expected)
{
	struct stat actual = {0};

	return mapped_file_path_fits_tracefs(path) && stat(path, &actual) == 0 &&
	       actual.st_dev == expected->st_dev && actual.st_ino == expected->st_ino;
}

/* The first of three paths that leads to the file. */
static char *usable_path(const char *path, const char *root_path, const char *mapping_path,
			 const struct stat *stat)
{
	if (is_same_file(path, stat))
		return strdup(path);
	return strdup(is_same_file(root_path, stat) ? root_path : mapping_path);
}

/* Returns 0, or a negative errno if the file cannot be opened (-ENOMEM included). */
static int open_mapping(struct mapped_file *ret, pid_t pid,
			const struct process_namespace *namespace,
			const struct process_mapping *mapping)
{
	_cleanup_free_ char *root_path = NULL, *display = NULL;
	_cleanup_close_ int fd = -1;
	const char *own_path = process_namespace_path(namespace, mapping->path);
	size_t len = strlen(own_path);
	char mapping_path[PROC_FILE_PATH_SIZE];

	proc_file_mapping_path(mapping_path, pid, mapping->start, mapping->end);
	if (asprintf(&root_path, "/proc/%d/root%s", (int)pid, own_path) < 0) {
		root_path = NULL;
		return -ENOMEM;
	}
	fd = elf_file_open(mapping_path, &ret->stat);
	/* map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE; a dry run works without them. */
	if (fd == -EPERM || fd == -EACCES)
		fd = elf_file_open(root_path, &ret->stat);
	if (fd < 0)
		return fd;
	if (len > strlen(DELETED_SUFFIX) &&
	    strcmp(own_path + len - strlen(DELETED_SUFFIX), DELETED_SUFFIX) == 0)
		len -= strlen(DELETED_SUFFIX);
	display = strndup(own_path, len);
	ret->path = usable_path(mapping->path, root_path, mapping_path, &ret->stat);
	if (!display || !ret->path) {
		free(ret->path);
		return -ENOMEM;
	}
	ret->display = steal_ptr(display);
	ret->fd = steal_fd(fd);
	return 0;
}

/* The index of the file; files->nr: it is not there. */
static size_t find_file(const struct mapped_files *files, const struct stat *stat)
{
	size_t i = 0;

	while (i < files->nr && (files->files[i].stat.st_dev != stat->st_dev ||
				 files->files[i].stat.st_ino != stat->st_ino))
		i++;
	return i;
}

static void mapped_file_deinit(struct mapped_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file->display);
}

/* *@ret_nr: the index of the file; SIZE_MAX: it is not there. */
static int add_mapping(struct mapped_files *files, pid_t pid,
		       const struct process_namespace *namespace,
		       const struct process_mapping *mapping, size_t *ret_nr)
{
	struct mapped_file file, *grown;
	int err = open_mapping(&file, pid, namespace, mapping);

	*ret_nr = SIZE_MAX;
	if (err == -ENOMEM)
		return err;
	if (err) {
		files->nr_unreadable++;
		return 0;
	}
	*ret_nr = find_file(files, &file.stat);
	if (*ret_nr < files->nr) {
		mapped_file_deinit(&file);
		return 0;
	}
	grown = reallocarray(files->files, files->nr + 1, sizeof(*grown));
	if (!grown) {
		mapped_file_deinit(&file);
		return -ENOMEM;
	}
	files->files = grown;
	files->files[files->nr++] = file;
	return 0;
}

/* True if the mapping is wanted: all are, or it has one of the places. */
static bool is_wanted(const struct process_mapping *mapping, const struct mapped_place *places,
		      size_t nr)
{
	bool is_wanted = !places;

	for (size_t i = 0; i < nr && !is_wanted; i++)
		is_wanted = places[i].address >= mapping->start && places[i].address < mapping->end;
	return is_wanted;
}

/* Only the files with @places, unless that is NULL. */
static int read_maps(struct mapped_files *files, pid_t pid, struct mapped_place *places, size_t nr)
{
	_cleanup_fclose_ FILE *maps = proc_file_open(pid, "maps");
	_cleanup_free_ char *line = NULL;
	struct process_namespace namespace;
	size_t size = 0;

	if (!maps)
		return -errno;
	process_namespace_read(pid, &namespace);
	while (getline(&line, &size, maps) > 0) {
		struct process_mapping mapping;
		size_t file;
		int err;

		if (process_maps_parse_line(line, &mapping) || !process_mapping_is_code(&mapping) ||
		    !is_wanted(&mapping, places, nr))
			continue;
		if (files->nr == MAX_MAPPED_FILES) {
			diag_warn(
				"process %d maps more than %d files as code; the rest is not searched",
				(int)pid, MAX_MAPPED_FILES);
			break;
		}
		err = add_mapping(files, pid, &namespace, &mapping, &file);
		if (err)
			return err;
		for (size_t i = 0; i < nr; i++) {
			if (places[i].address < mapping.start || places[i].address >= mapping.end)
				continue;
			places[i].file = file;
			places[i].offset = places[i].address - mapping.start + mapping.file_offset;
		}
	}
	return ferror(maps) ? -errno : 0;
}

int mapped_files_try_open(struct mapped_files *ret, pid_t pid)
{
	pid_t thread = living_thread(pid), ended = -1;
	int err = 0;

	*ret = (struct mapped_files){0};
	/* If the thread has ended meanwhile, files are missing. */
	for (int i = 0; i < MAX_ATTEMPTS && thread != ended && !err; i++) {
		mapped_files_deinit(ret);
		err = read_maps(ret, thread, NULL, 0);
		ended = thread;
		thread = living_thread(pid);
	}
	if (err)
		mapped_files_deinit(ret);
	return err;
}

int mapped_files_open(struct mapped_files *ret, pid_t pid)
{
	int err = mapped_files_try_open(ret, pid);

	if (err == -EACCES || err == -EPERM)
		diag_error("cannot read what process %d maps: %s%s", (int)pid, strerror(-err),
			   diag_rights_hint(err));
	else if (err)
		diag_error("cannot read /proc/%d/maps: %s", (int)pid, strerror(-err));
	return err;
}

void mapped_files_deinit(struct mapped_files *files)
{
	for (size_t i = 0; i < files->nr; i++)
		mapped_file_deinit(&files->files[i]);
	free(files->files);
	*files = (struct mapped_files){0};
}

int mapped_files_try_open_at(struct mapped_files *ret, pid_t pid, struct mapped_place *places,
			     size_t nr)
{
	int err;

	*ret = (struct mapped_files){0};
	for (size_t i = 0; i < nr; i++)
		places[i].file = SIZE_MAX;
	err = read_maps(ret, living_thread(pid), places, nr);
	if (err)
		mapped_files_deinit(ret);
	return err;
}
