/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An array in pages that a fork's two sides share until one of them writes: who writes to a page
 * that another array has too, gets a copy of its own. The elements are the caller's (heap_model.c).
 *
 * A page has an owner, the depth of the heap that wrote to it last: a fork's child is one deeper
 * than its parent. All pages that a heap can reach are its own or its ancestors', whose depths all
 * differ. So a page of another depth has not changed since a fork.
 */
#ifndef LEAKTOOLS_PARSER_SHARED_PAGES_H
#define LEAKTOOLS_PARSER_SHARED_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shared_page {
	uint64_t owner;
	uint32_t refs; /* arrays that have it */
	uint32_t size_bytes;
	char elements[] __attribute__((aligned(8)));
};

struct shared_pages {
	struct shared_page **pages;
	uint32_t nr, capacity;
};

/* What the pages of all arrays with the same @bytes take. */
struct shared_memory {
	size_t bytes;
};

/* Appends a page of @size_bytes, not cleared. Returns 0 or -ENOMEM. */
int shared_pages_add(struct shared_pages *pages, uint32_t size_bytes, uint64_t owner,
		     struct shared_memory *memory);

/* Makes @copy, which is empty, an array of the same pages. Returns 0 or -ENOMEM. */
int shared_pages_copy(struct shared_pages *copy, const struct shared_pages *pages,
		      struct shared_memory *memory);

/* Page @index for @owner to write to: copied if others have it. NULL: out of memory. */
struct shared_page *shared_pages_own(struct shared_pages *pages, uint32_t index, uint64_t owner,
				     struct shared_memory *memory);

/* Gives up page @index, which nobody may ask for any more. */
void shared_pages_drop(struct shared_pages *pages, uint32_t index, struct shared_memory *memory);

/* What the array takes by itself, shared pages included. All its pages are of one size. */
size_t shared_pages_bytes(const struct shared_pages *pages);

/* Leaves the array empty. */
void shared_pages_clear(struct shared_pages *pages, struct shared_memory *memory);

#endif
