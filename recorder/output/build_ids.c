/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/output/build_ids.h"

#include "common/elf/elf_file.h"
#include "common/perf_disk.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* A bound on memory: no ordinary process maps more files. The rest get no build-id. */
#define MAX_ENTRIES 65536

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

static int add(struct build_ids *ids, const char *path, const struct build_id *id)
{
	struct build_id_entry *entry;

	if (!id->size || path[0] != '/' || ids->nr_entries == MAX_ENTRIES)
		return 0;
	for (size_t i = 0; i < ids->nr_entries; i++)
		if (strcmp(ids->entries[i].path, path) == 0 &&
		    ids->entries[i].id.size == id->size &&
		    memcmp(ids->entries[i].id.bytes, id->bytes, id->size) == 0)
			return 0;

	entry = reallocarray(ids->entries, ids->nr_entries + 1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	ids->entries = entry;
	entry += ids->nr_entries;
	*entry = (struct build_id_entry){.path = strdup(path), .id = *id};
	if (!entry->path)
		return -ENOMEM;
	ids->nr_entries++;
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
	*ids = (struct build_ids){0};
}
