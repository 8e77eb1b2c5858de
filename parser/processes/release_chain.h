/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recognises one release that several probes see: operator delete[] calls operator delete, which
 * calls free(); perf probe puts a second probe on a PLT stub. Releases are recorded only at their
 * entries, so the caller tells whether one is inside another.
 */
#ifndef LEAKTOOLS_PARSER_RELEASE_CHAIN_H
#define LEAKTOOLS_PARSER_RELEASE_CHAIN_H

#include <stdint.h>

#define RELEASE_CHAIN_MAX 8

/* The thread's last releases, with no other probe event between them. */
struct release_chain {
	uint64_t address;		    /* of the block */
	uint64_t probes[RELEASE_CHAIN_MAX]; /* probes that saw it, outermost first; 0: not known */
	int nr;				    /* 0: there is no such release */
	uint64_t caller;		    /* of the innermost; 0: not known */
};

enum release_place {
	RELEASE_NEW,   /* a new release */
	RELEASE_AGAIN, /* the same release, seen by another probe */
	RELEASE_WITHIN /* of another block, from inside the previous release */
};

/* Adds the thread's next release. @probe and @caller may be 0: not known. */
enum release_place release_chain_add(struct release_chain *chain, uint64_t address, uint64_t probe,
				     uint64_t caller);

static inline void release_chain_end(struct release_chain *chain)
{
	chain->nr = 0;
}

#endif
