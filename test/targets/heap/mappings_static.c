/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The allocator is a part of the program: only names tell its mappings from the program's. */
#include "mappings.c"
