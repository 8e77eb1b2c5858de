/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What leakscan has said of the blocks of a recording (leakrec:reach and leakrec:holder, of leakrec
 * --scan). It is evidence of its own: it does not depend on how blocks came and went.
 */
#ifndef LEAKTOOLS_PARSER_REACH_H
#define LEAKTOOLS_PARSER_REACH_H

#include "common/schema/reach_class.h"
#include "parser/heap/heap_block.h"
#include "parser/records/perf_event_types.h"

struct reach;

/* NULL: out of memory. */
struct reach *reach_create(void);
void reach_destroy(struct reach *reach);

/* Adds a sample of leakrec:reach; one that is malformed is left out. Returns 0 or -ENOMEM. */
int reach_add(struct reach *reach, const struct perf_sample *sample);

/*
 * What was said of @block, which is held where the recording ends. REACH_NOT_SCANNED: nothing, as
 * it was allocated after the scan, in another process, or outside of the heaps that were scanned;
 * or the scan had another block there. Sorts what was added when it is first called.
 */
enum reach_class reach_of(struct reach *reach, const struct heap_block *block);

/* What leads to a block. Holders of several processes with one name are one. */
enum {
	HOLDER_NOT_KNOWN,    /* the scan has named it for other blocks only */
	HOLDER_WITHOUT_NAME, /* it is none of the largest, or nothing is known to lead there */
	HOLDER_FIRST,	     /* from here on they have names */
};

/* Adds a sample of leakrec:holder; after many, it is left out. Returns 0 or -ENOMEM. */
int reach_add_holder(struct reach *reach, const struct perf_sample *sample);

/* What leads to @block, of which reach_of() has said that something does. */
uint32_t reach_holder_of(const struct reach *reach, const struct heap_block *block);

/* Holders are less than this. */
uint32_t reach_nr_holders(const struct reach *reach);

/*
 * What a scan after the recording says (leakscan --recording), of each block that it knows
 * something about: @class, also REACH_GONE; @holder is the process's number of what leads to it, or
 * 0. Returns 0 or -ENOMEM.
 */
int reach_say(struct reach *reach, const struct heap_block *block, enum reach_class class,
	      uint64_t holder);

/* Names process @pid's holder @number, as reach_add_holder(). */
int reach_name_holder(struct reach *reach, pid_t pid, uint64_t number, const char *text);

/*
 * Process @pid may have the only pointer to a lost block in places that a scan does not see: @text,
 * of leakscan's words, such as "2 pipes with unread bytes". A scan has said so at @time_ns. Returns
 * 0 or -ENOMEM.
 */
int reach_add_unseen(struct reach *reach, pid_t pid, uint64_t time_ns, const char *text);

/* What the last scan of the @nth such process has said, from 0 on; NULL: there are no more. */
const char *reach_unseen(const struct reach *reach, size_t nth, pid_t *ret_pid);

/* True if the scan was after the recording: nobody saw what the process freed in between. */
bool reach_is_later(const struct reach *reach);

/* True if malloc() of @block may give a block of which the program may use @usable_bytes. */
bool reach_fits(const struct heap_block *block, uint64_t usable_bytes);

/* The name, which is untrusted; NULL: it has none. */
const char *reach_holder_name(const struct reach *reach, uint32_t holder);

/* True if anything was scanned. */
bool reach_has_any(const struct reach *reach);

/*
 * The group of the blocks that nothing leads to: REACH_GROUP_NO_HOLDER if only recorded blocks were
 * known of all heaps that were scanned (reach_class.h), else REACH_GROUP_LOST.
 */
enum reach_group reach_worst_group(const struct reach *reach);

#endif
