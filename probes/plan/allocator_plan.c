/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/allocator_plan.h"

#include "probes/plan/file_analysis.h"
#include "common/proc/living_thread.h"
#include "common/proc/mapped_files.h"
#include "common/proc/process_stat.h"
#include "common/proc/process_status.h"
#include "common/proc/proc_file.h"

#include "common/diag.h"
#include "common/elf/elf_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

int allocator_plan_mapped(struct probe_set *set, const struct mapped_file *file)
{
	struct file_findings findings;

	return file_analysis_run(file, 1, set, &findings);
}

/*
 * Looks at the program of process @pid. Returns false if it cannot be read. *@ret_path: where it
 * is; "" if that is not known.
 */
static bool look_at_program(pid_t pid, struct file_findings *ret, char ret_path[static PATH_MAX])
{
	char link[PROC_FILE_PATH_SIZE];
	struct mapped_file file = {.path = link, .display = ret_path};
	ssize_t len;

	proc_file_path(link, living_thread(pid), "exe");
	len = readlink(link, ret_path, PATH_MAX - 1);
	ret_path[len > 0 ? len : 0] = '\0';
	_cleanup_close_ int fd = elf_file_open(link, &file.stat);
	file.fd = fd;
	return fd >= 0 && file_analysis_run(&file, 1, NULL, ret) == 0 && ret->is_elf;
}

int allocator_plan_check_program(pid_t pid)
{
	struct file_findings findings;
	char exe[PATH_MAX];

	if (!look_at_program(pid, &findings, exe) || findings.is_native)
		return 0;
	diag_error("cannot record process %d: %s is 32-bit code or another architecture's; only "
		   "this machine's 64-bit programs can be recorded",
		   (int)pid, exe);
	return -ENOEXEC;
}

/* Reports why nothing was found in process @pid; the likeliest cause first. */
static int report_none_found(pid_t pid, const struct mapped_files *files, const char *foreign)
{
	struct file_findings findings;
	char exe[PATH_MAX];
	bool is_static =
		look_at_program(pid, &findings, exe) && findings.is_native && findings.is_static;

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

/* Analyses the files. The caller frees *@ret_findings. */
static int analyse_all(const struct mapped_files *files, struct probe_set *set,
		       struct file_findings **ret_findings)
{
	*ret_findings = calloc(files->nr + 1, sizeof(**ret_findings));
	if (!*ret_findings) {
		diag_error("cannot analyse files: out of memory");
		return -ENOMEM;
	}
	return file_analysis_run(files->files, files->nr, set, *ret_findings);
}

int allocator_plan_pid(struct probe_set *ret, pid_t pid, bool operators)
{
	_cleanup_free_ struct file_findings *findings = NULL;
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
	err = analyse_all(&files, ret, &findings);
	for (size_t i = 0; i < files.nr && !err; i++) {
		has_allocator |= findings[i].is_allocator;
		if (findings[i].is_elf && !findings[i].is_native && !foreign)
			foreign = files.files[i].display;
	}
	if (!err && !has_allocator)
		err = report_none_found(pid, &files, foreign);
	mapped_files_deinit(&files);
	if (err)
		probe_set_deinit(ret);
	return err;
}

bool allocator_is_mapped(pid_t pid, bool *ret_has_libc)
{
	_cleanup_free_ struct file_findings *findings = NULL;
	struct mapped_files files;
	bool found = false;

	*ret_has_libc = false;
	if (mapped_files_open(&files, pid))
		return false;
	if (analyse_all(&files, NULL, &findings) == 0) {
		for (size_t i = 0; i < files.nr; i++) {
			found |= findings[i].is_allocator;
			*ret_has_libc |= findings[i].is_libc;
		}
	}
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
	struct file_findings findings;
	struct mapped_file file;
	int err = open_candidate(&file, path);

	if (!err)
		err = file_analysis_run(&file, 1, set, &findings);
	candidate_deinit(&file);
	return err ? err : findings.is_allocator;
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

static int report_no_allocator(const char *path, const struct file_findings *findings)
{
	if (!findings->is_native)
		diag_error("%s is 32-bit or another architecture's; only this machine's 64-bit "
			   "files can be probed",
			   path);
	else if (findings->interpreter[0])
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
static int plan_indirectly(struct probe_set *set, const char *path,
			   const struct file_findings *findings)
{
	int planned = 0;

	if (!findings->is_elf) {
		diag_error("%s is not an ELF file, or is truncated", path);
		return -ENOEXEC;
	}
	if (findings->is_native && findings->interpreter[0])
		planned = plan_program_libc(set, findings->interpreter);
	if (planned == 0)
		planned = report_no_allocator(path, findings);
	return planned < 0 ? planned : 0;
}

int allocator_plan_file(struct probe_set *ret, const char *path, bool operators)
{
	struct file_findings findings;
	struct mapped_file file;
	int err;

	*ret = (struct probe_set){.with_operators = operators};
	err = open_candidate(&file, path);
	if (err == -ENOEXEC)
		diag_error("%s is not a regular file", path);
	else if (err)
		diag_error("cannot open %s: %s", path, strerror(-err));
	if (!err) {
		err = file_analysis_run(&file, 1, ret, &findings);
		if (!err && !findings.is_allocator)
			err = plan_indirectly(ret, path, &findings);
	}
	candidate_deinit(&file);
	if (err)
		probe_set_deinit(ret);
	return err;
}
