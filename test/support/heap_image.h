/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A made-up process with a heap of glibc's: one page each of the libc's code and data, of chunks,
 * of a module's data and of the main thread's stack.
 */
#ifndef LEAKTOOLS_TEST_HEAP_IMAGE_H
#define LEAKTOOLS_TEST_HEAP_IMAGE_H

#include "scan/snapshot/snapshot.h"

#define HEAP_IMAGE_CODE	 0x7f0000000000ull
#define HEAP_IMAGE_LIBC	 0x7f0000001000ull
#define HEAP_IMAGE_HEAP	 0x555500000000ull
#define HEAP_IMAGE_DATA	 0x555400000000ull
#define HEAP_IMAGE_STACK 0x7ffe00000000ull

/* The thread's control block, and its stack pointer. */
#define HEAP_IMAGE_TLS (HEAP_IMAGE_DATA + 0xc00)
#define HEAP_IMAGE_SP  (HEAP_IMAGE_STACK + 0x800)

/* A thread-local variable of the thread, @bytes from its control block. */
#define HEAP_IMAGE_VARIABLE(bytes)                                                                 \
	(THREAD_TLS_BELOW ? HEAP_IMAGE_TLS - (bytes) : HEAP_IMAGE_TLS + (bytes))

/* The arena's pointer to its top, and its system_mem. */
#define HEAP_IMAGE_TOP	  (HEAP_IMAGE_LIBC + 0x160)
#define HEAP_IMAGE_SYSTEM (HEAP_IMAGE_LIBC + 0x988)

/* The bytes of chunks with a mapping of their own, now; and in the word behind it, at most. */
#define HEAP_IMAGE_MAPPED (HEAP_IMAGE_LIBC + 0xdf0)

struct heap_image {
	struct snapshot snapshot;
	uint64_t at;	 /* the next chunk */
	uint64_t top_at; /* the arena's pointer to its top */
	bool was_free;
};

/* Begins with an empty heap. Release with heap_image_deinit(). */
void heap_image_init(struct heap_image *ret);
/* The same as glibc 2.43 has it: its arenas have no fastbins. HEAP_IMAGE_TOP and _SYSTEM are not
 * for it. */
void heap_image_init_2_43(struct heap_image *ret);
/* With a heap of @size_bytes, whose chunks have @chunk bytes each; it is ended. */
void heap_image_init_large(struct heap_image *ret, uint64_t size_bytes, uint64_t chunk);
void heap_image_deinit(struct heap_image *image);

/* Makes the mapping that begins at @start, which has one page, larger. */
void heap_image_enlarge(struct heap_image *image, uint64_t start, uint64_t size_bytes);

/* Appends a chunk with a block of @size_bytes, 24 or 16 more and so on. Returns the block. */
uint64_t heap_image_add(struct heap_image *image, uint64_t size_bytes);

/* Appends one that is free: in a bin, as far as can be seen. */
uint64_t heap_image_add_free(struct heap_image *image, uint64_t size_bytes);

/* Makes the rest the top chunk. */
void heap_image_end(struct heap_image *image);

/* Adds a page of memory at @address, above all others. */
void heap_image_add_page(struct heap_image *image, uint64_t address);

/* Writes a word of the process. */
void heap_image_set(struct heap_image *image, uint64_t address, uint64_t word);
uint64_t heap_image_get(const struct heap_image *image, uint64_t address);

/* Makes the free list from the fastbin of that size; the blocks have to be of it. */
void heap_image_set_fastbin(struct heap_image *image, uint64_t first);

/* The link to @next that glibc writes into the free block @block; @bias: 16 in fastbins. */
uint64_t heap_image_link(uint64_t block, uint64_t next, uint64_t bias);

/* The process as a core file, which the caller frees. */
uint8_t *heap_image_core(const struct heap_image *image, size_t *ret_size);

#endif
