/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The same cases in a program without libraries. */
#include "reach_memory.c"
