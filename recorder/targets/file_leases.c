/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/targets/file_leases.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>

int file_leases_init(struct file_leases *ret)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigprocmask(SIG_BLOCK, &set, NULL);
	*ret = (struct file_leases){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
	if (ret->fd >= 0)
		return 0;
	diag_error("cannot watch files: %s", strerror(errno));
	return -errno;
}

void file_leases_deinit(struct file_leases *leases)
{
	if (leases->fd >= 0)
		close(leases->fd);
	free(leases->files);
	*leases = (struct file_leases){.fd = -1};
}

int file_leases_take(struct file_leases *leases, struct probe_file *file)
{
	struct probe_file **grown =
		reallocarray(leases->files, leases->nr_files + 1, sizeof(struct probe_file *));

	if (!grown)
		return -ENOMEM;
	leases->files = grown;
	if (fcntl(file->fd, F_SETLEASE, F_RDLCK) < 0)
		return -errno;
	if (!probe_file_is_unchanged(file)) {
		fcntl(file->fd, F_SETLEASE, F_UNLCK);
		return -ESTALE;
	}
	leases->files[leases->nr_files++] = file;
	return 0;
}

const char *file_leases_reason(int err)
{
	switch (err) {
	case -EAGAIN:
		return "it is open for writing, or on a server that does not tell who writes to it";
	case -EINVAL:
		return "its file system has no leases";
	case -ESTALE:
		return "it has changed since it was analysed";
	default:
		return strerror(-err);
	}
}

void file_leases_warn(const struct probe_file *file, int err)
{
	/* Without CAP_LEASE, only root can overwrite the usual files. */
	if (err == -EACCES)
		return;
	diag_warn("do not overwrite %s in place, because processes that use it then could crash: "
		  "it cannot be watched: %s; a new file in its place does no harm",
		  file->display, file_leases_reason(err));
}

int file_leases_take_all(struct file_leases *leases, struct probe_set *set, size_t *nr_given_up)
{
	for (size_t i = 0; i < set->nr_files; i++) {
		struct probe_file *file = &set->files[i];
		int err = file_leases_take(leases, file);

		if (err == -ESTALE && nr_given_up) {
			diag_warn("%s is not recorded: %s", file->display, file_leases_reason(err));
			file->is_given_up = true;
			(*nr_given_up)++;
			continue;
		}
		if (err == -ESTALE)
			diag_error("cannot record: %s has changed since it was analysed; try again",
				   file->display);
		if (err == -ENOMEM || err == -ESTALE)
			return err;
		if (err)
			file_leases_warn(file, err);
	}
	return 0;
}

struct probe_file *file_leases_next_wanted(struct file_leases *leases)
{
	struct signalfd_siginfo info;

	/* One signal may stand for several files. */
	while (read(leases->fd, &info, sizeof(info)) == sizeof(info))
		leases->is_wanted = true;
	for (size_t i = 0; i < leases->nr_files && leases->is_wanted; i++)
		/* This is what the lease is about to become, or has become. */
		if (fcntl(leases->files[i]->fd, F_GETLEASE) != F_RDLCK)
			return leases->files[i];
	leases->is_wanted = false;
	return NULL;
}

void file_leases_give(struct file_leases *leases, const struct probe_file *file)
{
	for (size_t i = 0; i < leases->nr_files; i++) {
		if (leases->files[i] != file)
			continue;
		fcntl(file->fd, F_SETLEASE, F_UNLCK);
		leases->files[i] = leases->files[--leases->nr_files];
		return;
	}
}
