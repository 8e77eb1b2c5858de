/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The executable contains the allocator: only names distinguish its mappings from the program's. */
#include "mappings.c"
