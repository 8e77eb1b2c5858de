/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An array in pages that both sides of a fork share. A write to a shared page copies it first. The
 * caller defines the elements (heap_model.c).
 *
 * A page has an owner: the depth of the heap that wrote to it last. A forked child is one deeper
 * than its parent. The pages that a heap can reach are its own or its ancestors', whose depths all
 * differ. So a page of another depth has not changed since a fork.
 */
#ifndef LEAKTOOLS_PARSER_SHARED_PAGES_H
#define LEAKTOOLS_PARSER_SHARED_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shared_page {
	uint64_t owner;
	uint32_t refs; /* arrays that contain it */
	uint32_t size_bytes;
	char elements[] __attribute__((aligned(8)));
};

struct shared_pages {
	struct shared_page **pages;
	uint32_t nr, capacity;
};

/* The memory of the pages of all arrays that count in it. */
struct shared_memory {
	size_t bytes;
};

/* Appends an uninitialised page of @size_bytes. Returns 0 or -ENOMEM. */
int shared_pages_add(struct shared_pages *pages, uint32_t size_bytes, uint64_t owner,
		     struct shared_memory *memory);

/* Makes the empty @copy share all pages. Returns 0 or -ENOMEM. */
int shared_pages_copy(struct shared_pages *copy, const struct shared_pages *pages,
		      struct shared_memory *memory);

/* Page @index, writable for @owner; copied if it is shared. NULL: out of memory. */
struct shared_page *shared_pages_own(struct shared_pages *pages, uint32_t index, uint64_t owner,
				     struct shared_memory *memory);

/* Frees page @index, which must not be used any more. */
void shared_pages_drop(struct shared_pages *pages, uint32_t index, struct shared_memory *memory);

/* The array's memory, shared pages included. All its pages have one size. */
size_t shared_pages_bytes(const struct shared_pages *pages);

/* Empties the array. */
void shared_pages_clear(struct shared_pages *pages, struct shared_memory *memory);

#endif
