/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns the C library's unbounded or locale-bound string functions into compile errors. Forced into
 * every translation unit by cmake/targets.cmake (the idea is git's banned.h).
 */
#ifndef LEAKTOOLS_COMMON_BANNED_H
#define LEAKTOOLS_COMMON_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets
#pragma GCC poison atoi atol atoll gmtime localtime ctime asctime strtok tmpnam mktemp tempnam
#pragma GCC poison system popen alloca

#endif
