/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decides which frame of a stack asked for the memory; reports and plots name the stack after it.
 *
 * That is the first frame after the allocation function that is neither a wrapper, known by its
 * name (wrapper_names.h) or by what it does, nor code without a symbol in the allocator's own
 * module, nor a mark. If there is no such frame, it is the caller of the allocation function; if
 * that has no caller, the innermost frame. A program that reports the blocks of its own pools
 * (leak_probes.h) is the user itself: for these blocks it is the innermost frame, too.
 */
#ifndef LEAKTOOLS_COMMON_USER_FRAME_H
#define LEAKTOOLS_COMMON_USER_FRAME_H

#include <stdbool.h>

/* What the decision needs to know of a frame. */
struct frame_facts {
	const char *name;   /* the function; without a symbol: an address */
	const char *module; /* equal for frames of the same module; NULL: unknown */
	bool has_symbol;
	bool inlined; /* into the next frame */
	/* The program's own wrapper, which behaves like one (parser/statistics/own_wrappers.h). */
	bool is_own_wrapper;
};

/* The state of a search through the frames of a stack. Zero it before the innermost frame. */
struct user_frame_search {
	bool is_pool; /* the result of user_frame_is_pool() */
	bool is_over; /* the last better frame is the user's, and no other will be better */
	enum { BEFORE_INNERMOST, IN_ALLOCATOR, BEFORE_CALLER, IN_CALLERS } at;
	bool is_rust;		      /* a frame was of Rust's library */
	bool is_cgo;		      /* a frame was where Go leaves the goroutine's stack */
	const char *allocator_module; /* the innermost frame's; must stay valid during the search */
};

/*
 * Adds @frame, the next outer one. Returns true if it is a better answer than all frames before it.
 * The user's frame is the last one for which this returns true.
 */
bool user_frame_is_better(struct user_frame_search *search, const struct frame_facts *frame);

/* True if @function, which gave the blocks, is that of a program's own pools; it may be NULL. */
bool user_frame_is_pool(const char *function);

#endif
