/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Giving up capabilities. For rooms that link libcap-ng. */
#ifndef LEAKTOOLS_COMMON_CAPABILITIES_H
#define LEAKTOOLS_COMMON_CAPABILITIES_H

#include <cap-ng.h>

/*
 * Applies what capng_clear() and capng_update() have set. Without CAP_SETPCAP, which leakrec does
 * not keep while it records, the bounding set stays as it is: that is no failure. capng_apply() of
 * both sets at once fails then in libcap-ng 0.8.5, but not in 0.8.3. Returns 0 or a negative
 * number.
 */
static inline int capabilities_apply(void)
{
	(void)!capng_apply(CAPNG_SELECT_BOUNDS);
	return capng_apply(CAPNG_SELECT_CAPS);
}

#endif
