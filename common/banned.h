/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes calls of the C library's unsafe functions compile errors: those that do not know the size
 * of their buffer, report no errors, share a static buffer, or start a shell. cmake/targets.cmake
 * includes this in every translation unit. The idea is from git's banned.h.
 */
#ifndef LEAKTOOLS_COMMON_BANNED_H
#define LEAKTOOLS_COMMON_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Function-like, so that the same word may still name a parameter or a field. */
#define LEAKTOOLS_BANNED(name) banned_function_##name##_see_common_banned_h

#undef strcpy
#define strcpy(...) LEAKTOOLS_BANNED(strcpy)()
#undef strcat
#define strcat(...) LEAKTOOLS_BANNED(strcat)()
#undef strncpy
#define strncpy(...) LEAKTOOLS_BANNED(strncpy)()
#undef strncat
#define strncat(...) LEAKTOOLS_BANNED(strncat)()
#undef sprintf
#define sprintf(...) LEAKTOOLS_BANNED(sprintf)()
#undef vsprintf
#define vsprintf(...) LEAKTOOLS_BANNED(vsprintf)()
#undef atoi
#define atoi(...) LEAKTOOLS_BANNED(atoi)()
#undef atol
#define atol(...) LEAKTOOLS_BANNED(atol)()
#undef atoll
#define atoll(...) LEAKTOOLS_BANNED(atoll)()
#undef gmtime
#define gmtime(...) LEAKTOOLS_BANNED(gmtime)()
#undef localtime
#define localtime(...) LEAKTOOLS_BANNED(localtime)()
#undef ctime
#define ctime(...) LEAKTOOLS_BANNED(ctime)()
#undef asctime
#define asctime(...) LEAKTOOLS_BANNED(asctime)()
#undef strtok
#define strtok(...) LEAKTOOLS_BANNED(strtok)()
#undef tmpnam
#define tmpnam(...) LEAKTOOLS_BANNED(tmpnam)()
#undef mktemp
#define mktemp(...) LEAKTOOLS_BANNED(mktemp)()
#undef tempnam
#define tempnam(...) LEAKTOOLS_BANNED(tempnam)()
#undef system
#define system(...) LEAKTOOLS_BANNED(system)()
#undef popen
#define popen(...) LEAKTOOLS_BANNED(popen)()
#undef alloca
#define alloca(...) LEAKTOOLS_BANNED(alloca)()

#endif
