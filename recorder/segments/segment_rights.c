/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/segments/segment_rights.h"

#include "common/sandbox/unprivileged.h"

#include <signal.h>
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

void segment_rights_take(const struct stat *owner, const char *who)
{
	syscall(SYS_setfsgid, owner->st_gid);
	syscall(SYS_setfsuid, owner->st_uid);
	unprivileged_drop_capabilities(who);
}
