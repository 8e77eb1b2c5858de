/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/reach.h"

#include "common/diag.h"
#include "common/hash.h"
#include "common/partition_point.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * A chunk of glibc has at most this much more than what was asked for: its size is a multiple of
 * 16, the smallest has 24 bytes, and a rest of less than 32 is not split off.
 */
#define MAX_MORE_BYTES 56
#define PAGE_BYTES     4096 /* a chunk with a mapping of its own fills pages */

/* leakscan names 256 of a process in a scan, and a recording may have many scans. */
#define MAX_HOLDERS 65536

#define MAX_UNSEEN  64 /* leakrec scans 16 processes at most */

/* A block that is not held, a part of a heap, or blocks with one holder. */
struct reach_entry {
	pid_t pid;
	uint64_t address, size_bytes, stopped_ns;
	enum reach_class class;
	uint64_t number; /* the process's, of the holder */
};

/* A holder's name. */
struct holder_name {
	char text[HOLDER_TEXT_BYTES];
	uint32_t holder;
	UT_hash_handle hh;
};

/* Which holder a process's number stands for. */
struct holder_number {
	uint64_t key[2]; /* process, number */
	uint32_t holder;
	UT_hash_handle hh;
};

/* What a scan of a process does not see. */
struct reach_unseen {
	pid_t pid;
	uint64_t time_ns;
	char text[HOLDER_TEXT_BYTES];
};

struct reach_list {
	struct reach_entry *entries;
	size_t nr, capacity;
};

struct reach {
	struct reach_list blocks, heaps, held;
	bool is_sorted, is_later;
	struct holder_number *numbers;
	struct holder_name *names;	     /* by text */
	struct holder_name **names_in_order; /* [holder - HOLDER_FIRST] */
	uint32_t nr_names;
	struct reach_unseen *unseen; /* one for each process */
	size_t nr_unseen;
};

struct reach *reach_create(void)
{
	return calloc(1, sizeof(struct reach));
}

void reach_destroy(struct reach *reach)
{
	struct holder_number *number, *next;

	if (!reach)
		return;
	HASH_ITER (hh, reach->numbers, number, next) {
		HASH_DEL(reach->numbers, number);
		free(number);
	}
	HASH_CLEAR(hh, reach->names);
	for (uint32_t i = 0; i < reach->nr_names; i++)
		free(reach->names_in_order[i]);
	free(reach->names_in_order);
	free(reach->unseen);
	free(reach->held.entries);
	free(reach->blocks.entries);
	free(reach->heaps.entries);
	free(reach);
}

static int add_entry(struct reach *reach, const struct reach_entry *entry)
{
	struct reach_list *list = entry->class == REACH_HEAP || entry->class == REACH_TRACED
					  ? &reach->heaps
				  : entry->class == REACH_HELD ? &reach->held
							       : &reach->blocks;

	if (entry->size_bytes > UINT64_MAX - entry->address)
		return 0;
	if (list->nr == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 256;
		struct reach_entry *grown = reallocarray(list->entries, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		list->entries = grown;
		list->capacity = capacity;
	}
	list->entries[list->nr++] = *entry;
	reach->is_sorted = false;
	return 0;
}

int reach_add(struct reach *reach, const struct perf_sample *sample)
{
	const struct reach_entry entry = {
		.pid = sample->origin.pid,
		.address = sample->args[REACH_ADDRESS],
		.size_bytes = sample->args[REACH_BYTES],
		.stopped_ns = sample->args[REACH_STOPPED],
		.class = (enum reach_class)sample->mark_number,
		.number = sample->args[REACH_HOLDER],
	};

	return sample->mark_number > REACH_TRACED ? 0 : add_entry(reach, &entry);
}

int reach_say(struct reach *reach, const struct heap_block *block, enum reach_class class,
	      uint64_t holder)
{
	/* As a heap of one byte: of what else is in the block, nothing is said. */
	struct reach_entry entry = {
		.pid = block->allocated.pid,
		.address = block->address,
		.size_bytes = 1,
		.stopped_ns = UINT64_MAX,
		.class = class == REACH_NO_HOLDER || class == REACH_POINTED ? REACH_TRACED
									    : REACH_HEAP,
		.number = holder,
	};
	int err = add_entry(reach, &entry);

	reach->is_later = true;
	entry.class = REACH_HELD;
	if (!err && reach_group_has_holders(reach_group_of(class)))
		err = add_entry(reach, &entry);
	entry.class = class;
	entry.size_bytes = block->size_bytes;
	return err || class == REACH_HELD || class == REACH_POINTED ? err
								    : add_entry(reach, &entry);
}

/* The holder with that name, which is added if there is none; NULL: no memory. */
static const struct holder_name *intern(struct reach *reach, const char *text)
{
	struct holder_name *name, **grown;
	uint32_t nr = reach->nr_names;

	HASH_FIND_STR(reach->names, text, name);
	if (name)
		return name;
	if ((nr & (nr - 1)) == 0) {
		grown = reallocarray(reach->names_in_order, nr ? nr * 2 : 1,
				     sizeof(struct holder_name *));
		if (!grown)
			return NULL;
		reach->names_in_order = grown;
	}
	name = calloc(1, sizeof(*name));
	if (!name)
		return NULL;
	snprintf(name->text, sizeof(name->text), "%s", text);
	name->holder = HOLDER_FIRST + nr;
	HASH_ADD_STR(reach->names, text, name);
	if (!hash_added(name)) {
		free(name);
		return NULL;
	}
	reach->names_in_order[reach->nr_names++] = name;
	return name;
}

static struct holder_number *find_number(const struct reach *reach, pid_t pid, uint64_t number)
{
	const uint64_t key[2] = {(uint64_t)pid, number};
	struct holder_number *found;

	HASH_FIND_BYHASHVALUE(hh, reach->numbers, key, sizeof(key),
			      (unsigned)hash_words(key, 2, hash_seed()), found);
	return found;
}

int reach_name_holder(struct reach *reach, pid_t pid, uint64_t number, const char *text)
{
	const struct holder_name *name;
	struct holder_number *added;
	char unescaped[HOLDER_TEXT_BYTES];

	if (find_number(reach, pid, number) || HASH_COUNT(reach->numbers) >= MAX_HOLDERS ||
	    !text[0])
		return 0;
	/* As the line of leakscan that it is from. Each report escapes it in its own way. */
	snprintf(unescaped, sizeof(unescaped), "%s", text);
	diag_unescape(unescaped);
	name = intern(reach, unescaped);
	added = name ? calloc(1, sizeof(*added)) : NULL;
	if (!added)
		return -ENOMEM;
	added->key[0] = (uint64_t)pid;
	added->key[1] = number;
	added->holder = name->holder;
	HASH_ADD_BYHASHVALUE(hh, reach->numbers, key, sizeof(added->key),
			     (unsigned)hash_words(added->key, 2, hash_seed()), added);
	if (hash_added(added))
		return 0;
	free(added);
	return -ENOMEM;
}

int reach_add_holder(struct reach *reach, const struct perf_sample *sample)
{
	return reach_name_holder(reach, sample->origin.pid, sample->mark_number, sample->mark_text);
}

int reach_add_unseen(struct reach *reach, pid_t pid, uint64_t time_ns, const char *text)
{
	struct reach_unseen *unseen = NULL;

	for (size_t i = 0; i < reach->nr_unseen && !unseen; i++)
		if (reach->unseen[i].pid == pid)
			unseen = &reach->unseen[i];
	if (!unseen) {
		if (reach->nr_unseen == MAX_UNSEEN)
			return 0;
		if (!reach->unseen)
			reach->unseen = calloc(MAX_UNSEEN, sizeof(*reach->unseen));
		if (!reach->unseen)
			return -ENOMEM;
		unseen = &reach->unseen[reach->nr_unseen++];
	}
	unseen->pid = pid;
	unseen->time_ns = time_ns;
	snprintf(unseen->text, sizeof(unseen->text), "%s", text);
	return 0;
}

/* True if no later scan of that process has a result. */
static bool is_of_last_scan(const struct reach *reach, const struct reach_unseen *unseen)
{
	bool has_heap = false;

	for (size_t i = 0; i < reach->heaps.nr; i++) {
		const struct reach_entry *heap = &reach->heaps.entries[i];

		if (heap->pid == unseen->pid && heap->stopped_ns > unseen->time_ns)
			return false;
		has_heap |= heap->pid == unseen->pid;
	}
	return has_heap;
}

const char *reach_unseen(const struct reach *reach, size_t nth, pid_t *ret_pid)
{
	for (size_t i = 0; i < reach->nr_unseen; i++) {
		if (!is_of_last_scan(reach, &reach->unseen[i]) || nth-- > 0)
			continue;
		*ret_pid = reach->unseen[i].pid;
		return reach->unseen[i].text;
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct reach_entry *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->stopped_ns > y->stopped_ns) - (x->stopped_ns < y->stopped_ns);
}

/*
 * Of several scans of a process the last one counts: an earlier one may call a block held that is
 * lost by now. Its heaps come last in the recording; what is newer than they is of a scan that is
 * not complete yet.
 */
static void drop_earlier_scans(const struct reach_list *heaps, struct reach_list *list)
{
	size_t nr = 0, heap = 0;
	uint64_t last_ns = 0;
	pid_t pid = 0;

	for (size_t i = 0; i < list->nr; i++) {
		const struct reach_entry entry = list->entries[i];

		if (entry.pid != pid)
			last_ns = 0;
		pid = entry.pid;
		for (; heap < heaps->nr && heaps->entries[heap].pid <= pid; heap++)
			if (heaps->entries[heap].pid == pid &&
			    heaps->entries[heap].stopped_ns > last_ns)
				last_ns = heaps->entries[heap].stopped_ns;
		if (entry.stopped_ns >= last_ns)
			list->entries[nr++] = entry;
	}
	list->nr = nr;
}

static void sort(struct reach *reach)
{
	/* The heaps are the last to be shortened, as they say which scan is the last one. */
	struct reach_list *const lists[] = {&reach->blocks, &reach->held, &reach->heaps};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		if (lists[i]->nr)
			qsort(lists[i]->entries, lists[i]->nr, sizeof(*lists[i]->entries), compare);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		drop_earlier_scans(&reach->heaps, lists[i]);
	reach->is_sorted = true;
}

/* The last entry of @pid at or below @address, or NULL. */
static const struct reach_entry *find(const struct reach_list *list, pid_t pid, uint64_t address)
{
	const struct reach_entry key = {.pid = pid, .address = address, .stopped_ns = UINT64_MAX};
	size_t nr = partition_point(list->nr, i, compare(&list->entries[i], &key) <= 0);

	return nr > 0 && list->entries[nr - 1].pid == pid ? &list->entries[nr - 1] : NULL;
}

/* The scan shows a block's usable size, which is a little more than what was asked for. */
bool reach_fits(const struct heap_block *block, uint64_t usable_bytes)
{
	uint64_t more = usable_bytes - block->size_bytes;

	return !block->size_known ||
	       (usable_bytes >= block->size_bytes &&
		(more < MAX_MORE_BYTES ||
		 (usable_bytes >= 16 * PAGE_BYTES && more < PAGE_BYTES + MAX_MORE_BYTES)));
}

enum reach_class reach_of(struct reach *reach, const struct heap_block *block)
{
	const struct reach_entry *heap, *entry;
	pid_t pid = block->allocated.pid;

	if (!reach->is_sorted)
		sort(reach);
	heap = find(&reach->heaps, pid, block->address);
	if (!heap || block->address - heap->address >= heap->size_bytes ||
	    block->allocated.time_ns >= heap->stopped_ns || block->inherited ||
	    probe_schema_is_resource(block->allocated.schema))
		return REACH_NOT_SCANNED;
	entry = find(&reach->blocks, pid, block->address);
	if (!entry || entry->address != block->address)
		return heap->class == REACH_TRACED ? REACH_POINTED : REACH_HELD;
	if (!reach_fits(block, entry->size_bytes))
		return REACH_NOT_SCANNED;
	/* With such an allocator, pointers to starts prove no more than others. */
	return heap->class == REACH_TRACED && entry->class == REACH_POSSIBLE ? REACH_POINTED
									     : entry->class;
}

uint32_t reach_holder_of(const struct reach *reach, const struct heap_block *block)
{
	const struct reach_entry *entry = find(&reach->held, block->allocated.pid, block->address);
	const struct holder_number *number;

	if (!entry || block->address - entry->address >= entry->size_bytes)
		return HOLDER_NOT_KNOWN;
	number = find_number(reach, entry->pid, entry->number);
	return number ? number->holder : HOLDER_WITHOUT_NAME;
}

uint32_t reach_nr_holders(const struct reach *reach)
{
	return HOLDER_FIRST + reach->nr_names;
}

const char *reach_holder_name(const struct reach *reach, uint32_t holder)
{
	return holder < HOLDER_FIRST ? NULL : reach->names_in_order[holder - HOLDER_FIRST]->text;
}

bool reach_is_later(const struct reach *reach)
{
	return reach->is_later;
}

bool reach_has_any(const struct reach *reach)
{
	return reach->heaps.nr > 0;
}

enum reach_group reach_worst_group(const struct reach *reach)
{
	for (size_t i = 0; i < reach->heaps.nr; i++)
		if (reach->heaps.entries[i].class == REACH_HEAP)
			return REACH_GROUP_LOST;
	return reach->heaps.nr ? REACH_GROUP_NO_HOLDER : REACH_GROUP_LOST;
}
