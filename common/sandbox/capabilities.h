/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Giving up capabilities. For rooms that link libcap-ng. */
#ifndef LEAKTOOLS_COMMON_CAPABILITIES_H
#define LEAKTOOLS_COMMON_CAPABILITIES_H

#include <cap-ng.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not by libcap-ng, whose state is what will be applied. */
static inline bool capabilities_have(unsigned int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, data) == 0 &&
	       data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

/*
 * Applies what capng_clear() and capng_update() have set. Without CAP_SETPCAP, which leakrec does
 * not keep while it records, the bounding set stays as it is: that is no failure, but libcap-ng
 * complains in the system's log. Returns 0 or a negative number.
 */
static inline int capabilities_apply(void)
{
	if (capabilities_have(CAP_SETPCAP))
		(void)!capng_apply(CAPNG_SELECT_BOUNDS);
	return capng_apply(CAPNG_SELECT_CAPS);
}

#endif
