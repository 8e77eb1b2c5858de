/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a process held is looked at without any privilege: it may be made to mislead us. */
#ifndef LEAKTOOLS_SCAN_UNPRIVILEGED_H
#define LEAKTOOLS_SCAN_UNPRIVILEGED_H

/*
 * Gives up all capabilities, for good, and becomes the user who called sudo. Returns 0 or a
 * negative errno, reported.
 */
int unprivileged_become(void);

#endif
