/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/analysis/unprivileged.h"

#include "common/diag.h"
#include "common/number.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The id in the environment variable that sudo sets; false: there is none. */
static bool sudo_id(const char *name, uint64_t *ret)
{
	const char *text = getenv(name);

	return text && number_parse(text, ret) == 0 && *ret < UINT32_MAX;
}

static int become_caller(void)
{
	uint64_t uid, gid;

	if (geteuid() != 0 || !sudo_id("SUDO_UID", &uid) || !sudo_id("SUDO_GID", &gid))
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid((gid_t)gid, (gid_t)gid, (gid_t)gid) < 0 ||
	    setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) < 0)
		return -errno;
	return 0;
}

int unprivileged_become(void)
{
	int err = become_caller();

	if (!err) {
		capng_clear(CAPNG_SELECT_BOTH);
		if (capng_apply(CAPNG_SELECT_BOTH) < 0 && geteuid() == 0)
			err = -EPERM;
	}
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		err = -errno;
	if (err)
		diag_error("cannot give up privileges before the analysis: %s", strerror(-err));
	return err;
}
