/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/output/build_ids.h"

#include "common/elf/elf_file.h"
#include "common/hash.h"
#include "common/perf_disk.h"
#include "common/scope.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A bound on memory: no ordinary process maps more files. The rest get no build-id. */
#define MAX_ENTRIES 65536
#define NR_SLOTS    ((size_t)2 * MAX_ENTRIES)

void build_id_read(int fd, struct build_id *ret)
{
	const void *bits;
	ssize_t size;
	Elf *elf;

	ret->size = 0;
	elf = elf_file_begin(fd);
	size = elf ? dwelf_elf_gnu_build_id(elf, &bits) : 0;
	if (size > 0 && size <= BUILD_ID_SIZE) {
		memcpy(ret->bytes, bits, (size_t)size);
		ret->size = (uint8_t)size;
	}
	elf_end(elf);
}

static bool is_equal(const struct build_id_entry *entry, const char *path,
		     const struct build_id *id)
{
	return strcmp(entry->path, path) == 0 && entry->id.size == id->size &&
	       memcmp(entry->id.bytes, id->bytes, id->size) == 0;
}

/* The slot of the pair, or the free one where it belongs. */
static uint32_t *find_slot(const struct build_ids *ids, const char *path, const struct build_id *id)
{
	uint64_t words[(BUILD_ID_SIZE + sizeof(uint64_t) - 1) / sizeof(uint64_t)] = {0};
	uint64_t hash;

	memcpy(words, id->bytes, id->size);
	/* Both are the process's choice. */
	hash = hash_text(path, hash_words(words, ARRAY_SIZE(words), hash_seed()));
	for (size_t i = hash % NR_SLOTS;; i = (i + 1) % NR_SLOTS)
		if (!ids->slots[i] || is_equal(&ids->entries[ids->slots[i] - 1], path, id))
			return &ids->slots[i];
}

static int add(struct build_ids *ids, const char *path, const struct build_id *id)
{
	size_t nr = ids->nr_entries;
	struct build_id_entry *entry;
	uint32_t *slot;

	if (!id->size || path[0] != '/' || nr == MAX_ENTRIES)
		return 0;
	if (!ids->slots)
		ids->slots = calloc(NR_SLOTS, sizeof(*ids->slots));
	if (!ids->slots)
		return -ENOMEM;
	slot = find_slot(ids, path, id);
	if (*slot)
		return 0;

	/* There is room for a power of two. */
	if ((nr & (nr - 1)) == 0) {
		entry = reallocarray(ids->entries, nr ? 2 * nr : 1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		ids->entries = entry;
	}
	entry = &ids->entries[nr];
	*entry = (struct build_id_entry){.path = strdup(path), .id = *id};
	if (!entry->path)
		return -ENOMEM;
	*slot = (uint32_t)++ids->nr_entries;
	return 0;
}

int build_ids_add_record(struct build_ids *ids, const struct perf_event_header *record)
{
	const struct perf_disk_mmap2 *mmap2 = (const struct perf_disk_mmap2 *)record;
	struct build_id id;

	if (record->type != PERF_RECORD_MMAP2 || !perf_disk_has_build_id(mmap2))
		return 0;
	id.size = mmap2->build_id_size;
	memcpy(id.bytes, mmap2->build_id, BUILD_ID_SIZE);
	return add(ids, (const char *)(mmap2 + 1), &id);
}

void build_ids_deinit(struct build_ids *ids)
{
	for (size_t i = 0; i < ids->nr_entries; i++)
		free(ids->entries[i].path);
	free(ids->entries);
	free(ids->slots);
	*ids = (struct build_ids){0};
}
