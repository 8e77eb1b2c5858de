/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scope guards: a variable marked with one of these is released when it leaves its scope. To hand
 * the resource on, return it through steal_ptr() or steal_fd().
 */
#ifndef LEAKTOOLS_COMMON_SCOPE_H
#define LEAKTOOLS_COMMON_SCOPE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void scope_free(void *p)
{
	free(*(void **)p);
}

static inline void scope_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void scope_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

static inline void scope_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define _cleanup_free_	   __attribute__((cleanup(scope_free)))
#define _cleanup_fclose_   __attribute__((cleanup(scope_fclose)))
#define _cleanup_closedir_ __attribute__((cleanup(scope_closedir)))
#define _cleanup_close_	   __attribute__((cleanup(scope_close)))

/* Moves a pointer or descriptor out of its guard. */
#define steal_ptr(p)                                                                               \
	({                                                                                         \
		typeof(p) stolen = (p);                                                            \
		(p) = NULL;                                                                        \
		stolen;                                                                            \
	})
#define steal_fd(fd)                                                                               \
	({                                                                                         \
		int stolen = (fd);                                                                 \
		(fd) = -1;                                                                         \
		stolen;                                                                            \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
