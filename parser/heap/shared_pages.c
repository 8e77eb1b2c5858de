/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/heap/shared_pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct shared_page *new_page(uint32_t size_bytes, uint64_t owner,
				    struct shared_memory *memory)
{
	struct shared_page *page = malloc(sizeof(*page) + size_bytes);

	if (!page)
		return NULL;
	page->owner = owner;
	page->refs = 1;
	page->size_bytes = size_bytes;
	memory->bytes += sizeof(*page) + size_bytes;
	return page;
}

static void put_page(struct shared_page *page, struct shared_memory *memory)
{
	if (!page || --page->refs)
		return;
	memory->bytes -= sizeof(*page) + page->size_bytes;
	free(page);
}

int shared_pages_add(struct shared_pages *pages, uint32_t size_bytes, uint64_t owner,
		     struct shared_memory *memory)
{
	struct shared_page *page;

	if (pages->nr == pages->capacity) {
		uint32_t capacity = pages->capacity ? 2 * pages->capacity : 4;
		struct shared_page **larger =
			reallocarray(pages->pages, capacity, sizeof(struct shared_page *));

		if (!larger)
			return -ENOMEM;
		memory->bytes += (capacity - pages->capacity) * sizeof(struct shared_page *);
		pages->pages = larger;
		pages->capacity = capacity;
	}
	page = new_page(size_bytes, owner, memory);
	if (!page)
		return -ENOMEM;
	pages->pages[pages->nr++] = page;
	return 0;
}

int shared_pages_copy(struct shared_pages *copy, const struct shared_pages *pages,
		      struct shared_memory *memory)
{
	if (!pages->nr)
		return 0;
	copy->pages = calloc(pages->nr, sizeof(struct shared_page *));
	if (!copy->pages)
		return -ENOMEM;
	memcpy(copy->pages, pages->pages, pages->nr * sizeof(struct shared_page *));
	copy->nr = copy->capacity = pages->nr;
	memory->bytes += copy->capacity * sizeof(struct shared_page *);
	for (uint32_t i = 0; i < copy->nr; i++)
		copy->pages[i]->refs++;
	return 0;
}

struct shared_page *shared_pages_own(struct shared_pages *pages, uint32_t index, uint64_t owner,
				     struct shared_memory *memory)
{
	struct shared_page *page = pages->pages[index], *copy;

	if (page->refs == 1) {
		page->owner = owner;
		return page;
	}
	copy = new_page(page->size_bytes, owner, memory);
	if (!copy)
		return NULL;
	memcpy(copy->elements, page->elements, page->size_bytes);
	page->refs--;
	pages->pages[index] = copy;
	return copy;
}

void shared_pages_drop(struct shared_pages *pages, uint32_t index, struct shared_memory *memory)
{
	put_page(pages->pages[index], memory);
	pages->pages[index] = NULL;
}

size_t shared_pages_bytes(const struct shared_pages *pages)
{
	size_t page_bytes = pages->nr ? sizeof(**pages->pages) + pages->pages[0]->size_bytes : 0;

	return pages->nr * page_bytes + pages->capacity * sizeof(struct shared_page *);
}

void shared_pages_clear(struct shared_pages *pages, struct shared_memory *memory)
{
	for (uint32_t i = 0; i < pages->nr; i++)
		put_page(pages->pages[i], memory);
	memory->bytes -= pages->capacity * sizeof(struct shared_page *);
	free(pages->pages);
	*pages = (struct shared_pages){0};
}
