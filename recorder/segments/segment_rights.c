/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/segments/segment_rights.h"

#include "common/diag.h"
#include "common/sandbox/unprivileged.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

int segment_rights_start_thread(pthread_t *ret, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(ret, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

int segment_rights_take(const struct stat *owner, const char *who)
{
	bool has_taken;

	syscall(SYS_setfsgid, owner->st_gid);
	syscall(SYS_setfsuid, owner->st_uid);
	/* These do not tell whether they failed; an invalid id changes nothing. */
	has_taken = (gid_t)syscall(SYS_setfsgid, -1) == owner->st_gid &&
		    (uid_t)syscall(SYS_setfsuid, -1) == owner->st_uid;
	unprivileged_drop_capabilities(who);
	if (has_taken || geteuid() != 0)
		return 0;
	diag_error("%s cannot take the rights of user %u, who owns the directory, and root's are "
		   "too many: CAP_SETUID and CAP_SETGID are missing",
		   who, owner->st_uid);
	return -EPERM;
}
