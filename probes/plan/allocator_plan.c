/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/allocator_plan.h"

#include "probes/elf/analysis_limit.h"
#include "probes/elf/debug_symbols.h"
#include "probes/plan/probe_plan.h"
#include "common/proc/living_thread.h"
#include "common/proc/mapped_files.h"
#include "common/proc/process_stat.h"
#include "common/proc/process_status.h"
#include "common/proc/proc_file.h"
#include "probes/plan/usdt_plan.h"

#include "common/diag.h"
#include "common/elf/elf_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

/*
 * Plans @file if it has an allocator or USDT probes. Returns 1 if it has an allocator, 0 if not, or
 * a negative errno, reported. *@ret_is_foreign: it is of another architecture.
 */
static int plan_if_probed(struct probe_set *set, const struct mapped_file *file,
			  bool *ret_is_foreign)
{
	struct allocator allocator;
	struct elf_image image;
	size_t nr_before = set->nr_files;
	bool is_allocator;
	int err;

	*ret_is_foreign = false;
	analysis_limit_begin(set->limit_ns ? set->limit_ns : ANALYSIS_LIMIT_NS);
	err = elf_image_init(&image, file->fd);
	if (err)
		return 0;
	*ret_is_foreign = !image.is_native;
	debug_symbols_use(&image, file->path, file->display);
	err = allocator_init(&allocator, &image, set->with_operators);
	if (err)
		diag_error("cannot look for allocators in %s: %s", file->display, strerror(-err));
	is_allocator = !err && allocator.nr > 0;
	if (is_allocator && set->with_operators && allocator.shares_code)
		diag_note("%s: some of malloc, free and C++'s operators are one function there; "
			  "mismatches between them are not found",
			  file->display);
	if (is_allocator || (!err && usdt_plan_has_probes(&image))) {
		const struct probe_source source = {&image, &file->stat, file->path, file->display};

		err = probe_plan_file(set, &source, &allocator);
	}
	allocator_deinit(&allocator);
	elf_image_deinit(&image);
	if (!analysis_limit_end())
		return err ? err : is_allocator;
	while (set->nr_files > nr_before)
		probe_file_deinit(&set->files[--set->nr_files]);
	diag_warn("%s: its symbol tables are damaged, or it takes too long to analyse; it is not "
		  "probed",
		  file->display);
	return 0;
}

int allocator_plan_mapped(struct probe_set *set, const struct mapped_file *file)
{
	bool is_foreign;
	int planned = plan_if_probed(set, file, &is_foreign);

	return planned < 0 ? planned : 0;
}

int allocator_plan_check_program(pid_t pid)
{
	struct elf_image image;
	char link[PROC_FILE_PATH_SIZE], exe[PATH_MAX];
	bool is_native;
	ssize_t len;

	proc_file_path(link, living_thread(pid), "exe");
	if (elf_image_open(&image, link))
		return 0;
	is_native = image.is_native;
	elf_image_deinit(&image);
	if (is_native)
		return 0;
	len = readlink(link, exe, sizeof(exe) - 1);
	exe[len > 0 ? len : 0] = '\0';
	diag_error("cannot record process %d: %s is 32-bit code or another architecture's; only "
		   "this machine's 64-bit programs can be recorded",
		   (int)pid, exe);
	return -ENOEXEC;
}

/* Reports why nothing was found in process @pid; the likeliest cause first. */
static int report_none_found(pid_t pid, const struct mapped_files *files, const char *foreign)
{
	struct elf_image image;
	char link[PROC_FILE_PATH_SIZE], exe[PATH_MAX];
	ssize_t len;
	bool is_static = false;

	proc_file_path(link, living_thread(pid), "exe");
	len = readlink(link, exe, sizeof(exe) - 1);
	exe[len > 0 ? len : 0] = '\0';
	if (elf_image_open(&image, link) == 0) {
		is_static = image.is_native && elf_image_is_static(&image);
		elf_image_deinit(&image);
	}
	if (foreign)
		diag_error("process %d runs 32-bit code or another architecture's (%s); only this "
			   "machine's 64-bit programs can be probed",
			   (int)pid, foreign);
	else if (is_static)
		diag_error("process %d: %s is statically linked and has no symbols malloc and free "
			   "(stripped?), so its allocator cannot be found; leakrec --with mmap "
			   "records what it maps",
			   (int)pid, exe);
	else if (files->nr_unreadable > 0)
		diag_error("process %d: none of the files that could be opened defines malloc and "
			   "free, and %zu could not be opened%s",
			   (int)pid, files->nr_unreadable, diag_rights_hint(EACCES));
	else
		diag_error("process %d (%s) has mapped no file that defines malloc and free; "
			   "leakrec --with mmap records what it maps",
			   (int)pid, exe);
	return -ENODATA;
}

/* Returns 0 if process @pid has a heap; otherwise reports why not. */
static int check_process(pid_t pid)
{
	struct process_stat stat;
	struct process_status status;
	int err = pid > 0 ? process_stat_read(pid, &stat) : -ESRCH;
	pid_t process = err || process_status_read(pid, &status) ? pid : status.tgid;

	if (err == -ESRCH) {
		diag_error("no process %d", (int)pid);
	} else if (err) {
		diag_error("cannot read /proc/%d/stat: %s", (int)pid, strerror(-err));
	} else if (process_stat_is_dead(&stat)) {
		diag_error("process %d has ended and is a zombie", (int)pid);
		err = -ESRCH;
	} else if (process != pid) {
		diag_error("%d is a thread of process %d: give that process", (int)pid,
			   (int)process);
		err = -ENOENT;
	} else if (stat.kernel_thread) {
		diag_error("process %d is a kernel thread and has no heap", (int)pid);
		err = -ENOENT;
	}
	return err;
}

int allocator_plan_pid(struct probe_set *ret, pid_t pid, bool operators)
{
	struct mapped_files files;
	const char *foreign = NULL;
	bool has_allocator = false;
	int err;

	*ret = (struct probe_set){.with_operators = operators};
	err = check_process(pid);
	if (!err)
		err = mapped_files_open(&files, pid);
	if (err)
		return err;
	for (size_t i = 0; i < files.nr && err >= 0; i++) {
		bool is_foreign = false;

		err = plan_if_probed(ret, &files.files[i], &is_foreign);
		has_allocator |= err > 0;
		if (is_foreign && !foreign)
			foreign = files.files[i].display;
	}
	if (err >= 0)
		err = has_allocator ? 0 : report_none_found(pid, &files, foreign);
	mapped_files_deinit(&files);
	if (err)
		probe_set_deinit(ret);
	return err;
}

bool allocator_is_mapped(pid_t pid, bool *ret_has_libc)
{
	struct mapped_files files;
	bool found = false;

	*ret_has_libc = false;
	if (mapped_files_open(&files, pid))
		return false;
	for (size_t i = 0; i < files.nr && !*ret_has_libc; i++) {
		struct allocator allocator;
		struct elf_image image;

		analysis_limit_begin(ANALYSIS_LIMIT_NS);
		if (elf_image_init(&image, files.files[i].fd))
			continue;
		debug_symbols_use(&image, files.files[i].path, files.files[i].display);
		if (allocator_init(&allocator, &image, false) == 0 && allocator.nr > 0) {
			found = true;
			*ret_has_libc |= allocator.is_libc;
		}
		allocator_deinit(&allocator);
		elf_image_deinit(&image);
	}
	analysis_limit_end();
	mapped_files_deinit(&files);
	return found;
}

/* Opens @path as a candidate. */
static int open_candidate(struct mapped_file *ret, const char *path)
{
	*ret = (struct mapped_file){.fd = -1};
	ret->display = realpath(path, NULL);
	if (!ret->display)
		return -errno;
	ret->fd = elf_file_open(ret->display, &ret->stat);
	if (ret->fd < 0)
		return ret->fd;
	ret->path = strdup(ret->display);
	return ret->path ? 0 : -ENOMEM;
}

static void candidate_deinit(struct mapped_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file->display);
}

/* Plans the file at @path. Returns 1 if it has an allocator, 0 if not, or a negative errno. */
static int plan_path(struct probe_set *set, const char *path)
{
	struct mapped_file file;
	bool is_foreign;
	int err = open_candidate(&file, path);

	if (!err)
		err = plan_if_probed(set, &file, &is_foreign);
	candidate_deinit(&file);
	return err;
}

/* True if the loader at @interpreter loaded this process. */
static bool is_own_loader(const char *interpreter)
{
	struct mapped_files own;
	struct stat loader;
	bool is_own = false;

	if (stat(interpreter, &loader) || mapped_files_open(&own, getpid()))
		return false;
	for (size_t i = 0; i < own.nr; i++)
		is_own |= own.files[i].stat.st_dev == loader.st_dev &&
			  own.files[i].stat.st_ino == loader.st_ino;
	mapped_files_deinit(&own);
	return is_own;
}

/*
 * Plans the libc that a dynamically linked program will get: its loader, if that is libc (musl), or
 * this process's own libc, if both have the same loader. Nothing of the program is run to find out.
 */
static int plan_program_libc(struct probe_set *set, const char *interpreter)
{
	struct probe_set own_set = {0};
	int planned = plan_path(set, interpreter);

	if (planned != 0 || !is_own_loader(interpreter))
		return planned < 0 ? 0 : planned;
	planned = allocator_plan_pid(&own_set, getpid(), set->with_operators);
	if (planned == 0)
		planned = probe_set_merge(set, &own_set);
	probe_set_deinit(&own_set);
	return planned < 0 ? planned : 1;
}

static int report_no_allocator(const char *path, const struct elf_image *image,
			       const char *interpreter)
{
	if (!image->is_native)
		diag_error("%s is 32-bit or another architecture's; only this machine's 64-bit "
			   "files can be probed",
			   path);
	else if (interpreter)
		diag_error("cannot find the libc of %s, which is dynamically linked; give the libc "
			   "with --lib, or a process with --pid",
			   path);
	else
		diag_error(
			"nothing to probe in %s: it defines no malloc and free, or was stripped of these symbols",
			path);
	return -ENOENT;
}

/* Plans for a file that has no allocator itself, but may use one. */
static int plan_indirectly(struct probe_set *set, const char *path, const struct mapped_file *file)
{
	_cleanup_free_ char *interpreter = NULL;
	struct elf_image image;
	int planned = 0;
	int err = elf_image_init(&image, file->fd);

	if (err) {
		diag_error("%s is not an ELF file, or is truncated", path);
		return err;
	}
	interpreter = elf_image_interpreter(&image);
	if (image.is_native && interpreter)
		planned = plan_program_libc(set, interpreter);
	if (planned == 0)
		planned = report_no_allocator(path, &image, interpreter);
	elf_image_deinit(&image);
	return planned < 0 ? planned : 0;
}

int allocator_plan_file(struct probe_set *ret, const char *path, bool operators)
{
	struct mapped_file file;
	bool is_foreign;
	int err;

	*ret = (struct probe_set){.with_operators = operators};
	err = open_candidate(&file, path);
	if (err == -ENOEXEC)
		diag_error("%s is not a regular file", path);
	else if (err)
		diag_error("cannot open %s: %s", path, strerror(-err));
	if (!err) {
		err = plan_if_probed(ret, &file, &is_foreign);
		if (err == 0)
			err = plan_indirectly(ret, path, &file);
	}
	candidate_deinit(&file);
	if (err < 0)
		probe_set_deinit(ret);
	return err < 0 ? err : 0;
}
