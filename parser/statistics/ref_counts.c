/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/statistics/ref_counts.h"

#include "common/hash.h"
#include "unwind/stacks/stack_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_OBJECT, KEY_PID, KEY_WORDS };

struct ref_entry {
	uint64_t key[KEY_WORDS];
	struct ref_object object;
	UT_hash_handle hh;
};

struct ref_counts {
	struct ref_entry *entries;
	uint64_t seed;
};

struct ref_counts *ref_counts_create(void)
{
	struct ref_counts *counts = calloc(1, sizeof(*counts));

	if (counts)
		counts->seed = hash_seed();
	return counts;
}

static unsigned int hash_key(const struct ref_counts *counts, const uint64_t key[KEY_WORDS])
{
	return (unsigned int)hash_words(key, KEY_WORDS, counts->seed);
}

static void remove_entry(struct ref_counts *counts, struct ref_entry *entry)
{
	HASH_DEL(counts->entries, entry);
	free(entry->object.history);
	free(entry);
}

void ref_counts_destroy(struct ref_counts *counts)
{
	struct ref_entry *entry, *next;

	if (!counts)
		return;
	HASH_ITER (hh, counts->entries, entry, next)
		remove_entry(counts, entry);
	free(counts);
}

static struct ref_entry *find_entry(const struct ref_counts *counts, pid_t pid, uint64_t key)
{
	const uint64_t wanted[KEY_WORDS] = {[KEY_OBJECT] = key, [KEY_PID] = (uint64_t)pid};
	struct ref_entry *entry;

	HASH_FIND_BYHASHVALUE(hh, counts->entries, wanted, sizeof(wanted), hash_key(counts, wanted),
			      entry);
	return entry;
}

const struct ref_object *ref_counts_find(const struct ref_counts *counts, pid_t pid, uint64_t key)
{
	const struct ref_entry *entry = find_entry(counts, pid, key);

	return entry ? &entry->object : NULL;
}

static struct ref_entry *add_entry(struct ref_counts *counts, pid_t pid, uint64_t key)
{
	struct ref_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->key[KEY_OBJECT] = key;
	entry->key[KEY_PID] = (uint64_t)pid;
	HASH_ADD_BYHASHVALUE(hh, counts->entries, key, sizeof(entry->key),
			     hash_key(counts, entry->key), entry);
	if (hash_added(entry))
		return entry;
	free(entry);
	return NULL;
}

/* The history of the stack; a new one at its first use. NULL: out of memory. */
static struct ref_history *find_history(struct ref_object *object, uint32_t stack_id,
					const struct probe_schema *schema)
{
	struct ref_history *grown;

	for (size_t i = 0; i < object->nr_history; i++)
		if (object->history[i].stack_id == stack_id &&
		    (object->history[i].schema == schema || stack_id == STACK_NONE))
			return &object->history[i];
	if (object->nr_history >= REF_MAX_STACKS - 1 && stack_id != STACK_NONE)
		return find_history(object, STACK_NONE, schema);
	grown = reallocarray(object->history, object->nr_history + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	object->history = grown;
	grown += object->nr_history++;
	*grown = (struct ref_history){.stack_id = stack_id, .schema = schema};
	return grown;
}

int ref_counts_change(struct ref_counts *counts, pid_t pid, uint64_t key, int change,
		      uint32_t stack_id, const struct probe_schema *schema, uint64_t *ret_count)
{
	struct ref_entry *entry = find_entry(counts, pid, key);
	struct ref_history *history;

	if (!entry)
		entry = add_entry(counts, pid, key);
	history = entry ? find_history(&entry->object, stack_id, schema) : NULL;
	if (!history)
		return -ENOMEM;
	if (change > 0) {
		history->refs++;
		entry->object.count++;
	} else {
		history->unrefs++;
		entry->object.count -= entry->object.count > 0;
	}
	*ret_count = entry->object.count;
	return 0;
}

void ref_counts_remove(struct ref_counts *counts, pid_t pid, uint64_t key)
{
	struct ref_entry *entry = find_entry(counts, pid, key);

	if (entry)
		remove_entry(counts, entry);
}
